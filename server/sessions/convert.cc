#include "server/sessions/convert.h"

#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"
#include "core/model/views.h"
#include "google/rpc/status.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/rpc/message.h"
#include "server/sessions/example_batch.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

template <typename From, typename To>
void Append(const std::vector<From>& from, google::protobuf::RepeatedField<To>& to) {
  to.Add(from.begin(), from.end());
}

// Only this many errors have details, so that the response to a message of invalid rows is not many
// times its size.
constexpr size_t kMaxDetailedErrors = 1000;

// Whether the model has no room for the row, and never will.
bool IsCap(ValidationCode code) {
  return code == ValidationCode::kFeatureCap || code == ValidationCode::kClassCap;
}

absl::StatusCode CodeOf(ValidationCode code) {
  return IsCap(code) || code == ValidationCode::kTooManyFeatures ||
                 code == ValidationCode::kTooCostly
             ? absl::StatusCode::kResourceExhausted
             : absl::StatusCode::kInvalidArgument;
}

absl::Status CheckEnum(bool known, int value, absl::string_view field) {
  if (known) return absl::OkStatus();
  return InvalidField(
      "INVALID_FIELD", field,
      absl::StrCat(value, " is not a value of this enum; send one of those in the proto"));
}

void AddErrors(const std::vector<RowError>& row_errors, const ExampleBatch& batch,
               google::protobuf::RepeatedPtrField<v1::RowError>& errors) {
  for (const RowError& row : row_errors) {
    v1::RowError& error = *errors.Add();
    error.set_row(row.row);
    if (static_cast<size_t>(errors.size()) <= kMaxDetailedErrors) {
      ToProto(ToStatus(row, batch), *error.mutable_status());
    } else {
      error.mutable_status()->set_code(static_cast<int>(CodeOf(row.error.code)));
      error.mutable_status()->set_message(ReasonName(row.error.code));
    }
  }
}

}  // namespace

absl::Status CheckResultDetail(int detail) {
  return CheckEnum(v1::ResultDetail_IsValid(detail), detail, "result_detail");
}

absl::Status CheckStreamOrder(int order) {
  return CheckEnum(v1::StreamOrder_IsValid(order), order, "order");
}

absl::Status CheckUnknownFeatures(int choice) {
  return CheckEnum(v1::UnknownFeatures_IsValid(choice), choice, "unknown_features");
}

absl::Status CheckModelView(int view) {
  return CheckEnum(v1::ModelView_IsValid(view), view, "view");
}

v1::Model ToProto(const ModelSummary& summary) {
  v1::Model model = summary.settings;
  model.set_revision(static_cast<int64_t>(summary.revision));
  model.set_epoch(summary.epoch);
  *model.mutable_report() = summary.report;
  if (summary.stale_since.has_value()) {
    *model.mutable_stale_since() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
        absl::ToUnixNanos(*summary.stale_since));
  }
  if (summary.expire_time.has_value() && model.has_expire_after()) {
    *model.mutable_expire_time() = google::protobuf::util::TimeUtil::NanosecondsToTimestamp(
        absl::ToUnixNanos(*summary.expire_time));
  }
  if (!summary.stored_examples.has_value()) return model;
  v1::StoredExamples& stored = *model.mutable_stored_examples();
  stored.set_updates(static_cast<uint32_t>(summary.stored_examples->updates));
  stored.set_sample(static_cast<uint32_t>(summary.stored_examples->sampled));
  stored.set_memory_bytes(summary.stored_examples->memory_bytes);
  stored.set_complete(summary.stored_examples->complete);
  return model;
}

void ToProto(const WeightList& weights, v1::WeightVector& proto) {
  Append(weights.indices, *proto.mutable_indices());
  Append(weights.values, *proto.mutable_values());
  for (const std::string& name : weights.names) proto.add_names(name);
  proto.set_bias(weights.bias);
}

void ToProto(const LearningCurve& curves, v1::Model& proto) {
  *proto.mutable_report() = curves.report;
  proto.set_revision(static_cast<int64_t>(curves.report.updates()));
  proto.mutable_learning_curve()->Add(curves.points.begin(), curves.points.end());
}

void ToProto(const ExplainOutcome& outcome, v1::ExplainResponse& proto) {
  for (const Explanation& explanation : outcome.explanations) {
    v1::Explanation& one = *proto.add_explanations();
    one.set_score(explanation.score);
    one.set_label(explanation.label);
    one.set_bias(explanation.bias);
    one.set_other_contributions(explanation.other_contributions);
    one.set_other_features(explanation.other_features);
    for (const Contribution& contribution : explanation.contributions) {
      v1::FeatureContribution& feature = *one.add_contributions();
      feature.set_name(contribution.part.name);
      feature.set_index(contribution.part.index);
      feature.set_value(contribution.part.value);
      feature.set_weight(contribution.weight);
      feature.set_contribution(contribution.contribution);
    }
    for (const SupportContribution& example : explanation.support) {
      v1::SupportContribution& support = *one.add_supports();
      support.set_revision(static_cast<int64_t>(example.revision));
      support.set_label(example.label);
      support.set_kernel(example.kernel);
      support.set_dual_coefficient(example.dual_coefficient);
      support.set_contribution(example.contribution);
    }
    one.set_other_supports(explanation.other_support);
    one.set_other_supports_count(explanation.other_support_count);
    one.set_supports_complete(explanation.support_complete);
    one.set_supports_absent(explanation.support_absent);
    one.set_contributions_absent(explanation.contributions_absent);
    if (explanation.start_contribution.has_value())
      one.set_start_contribution(*explanation.start_contribution);
    one.set_start_revision(static_cast<int64_t>(explanation.start_revision));
  }
  proto.set_revision(static_cast<int64_t>(outcome.revision));
  proto.set_epoch(outcome.epoch);
  proto.set_age(outcome.age);
  Append(outcome.component_revisions, *proto.mutable_component_revisions());
}

absl::Status ToStatus(const RowError& row_error, const ExampleBatch& batch) {
  const ValidationError& error = row_error.error;
  const std::string field = batch.PathTo(row_error);
  if (IsCap(error.code)) {
    return WithRetry(MakeError(CodeOf(error.code), ReasonName(error.code),
                               absl::StrCat(field, ": ", error.description)),
                     absl::Hours(24));
  }
  return FieldError(CodeOf(error.code), ReasonName(error.code), field, error.description);
}

void ToProto(const LearnOutcome& outcome, const ExampleBatch& batch, const ModelSettings& settings,
             bool detail, v1::LearnResult& proto) {
  proto.set_examples(outcome.examples);
  proto.set_mistakes(outcome.mistakes);
  proto.set_updates(outcome.updated_rows.size());
  proto.set_duplicates(outcome.duplicates);
  proto.set_acknowledged_offset(outcome.next_offset - 1);
  proto.set_revision(static_cast<int64_t>(outcome.revision));
  proto.set_epoch(outcome.epoch);
  if (detail) {
    Append(outcome.scores,
           settings.is_multiclass() ? *proto.mutable_margins() : *proto.mutable_scores());
    Append(outcome.predicted, *proto.mutable_predicted_labels());
  }
  Append(outcome.updated_rows, *proto.mutable_updated_rows());
  Append(outcome.update_revisions, *proto.mutable_update_revisions());
  AddErrors(outcome.row_errors, batch, *proto.mutable_row_errors());
  if (outcome.pass.has_value()) *proto.mutable_completed_pass() = *outcome.pass;
  Append(outcome.component_revisions, *proto.mutable_component_revisions());
}

void ToProto(const PredictOutcome& outcome, const ExampleBatch& batch, v1::PredictResponse& proto) {
  Append(outcome.scores, *proto.mutable_scores());
  Append(outcome.labels, *proto.mutable_predicted_labels());
  Append(outcome.distances, *proto.mutable_distances());
  Append(outcome.probabilities, *proto.mutable_probabilities());
  Append(outcome.class_scores, *proto.mutable_class_scores());
  Append(outcome.class_probabilities, *proto.mutable_class_probabilities());
  proto.set_revision(static_cast<int64_t>(outcome.revision));
  proto.set_epoch(outcome.epoch);
  proto.set_age(outcome.age);
  AddErrors(outcome.row_errors, batch, *proto.mutable_row_errors());
  Append(outcome.component_revisions, *proto.mutable_component_revisions());
}

namespace {

absl::Status Limit(const char* field, uint32_t value, uint32_t maximum, size_t& option) {
  if (value > maximum) {
    return InvalidField("INVALID_FIELD", field,
                        absl::StrCat(value, " is above ", maximum, "; send 0 for the default"));
  }
  if (value > 0) option = value;
  return absl::OkStatus();
}

void SetFeatures(const StoredRow& row, v1::Example& example) {
  if (row.dense) {
    example.mutable_dense()->mutable_values()->Add(row.values.begin(), row.values.end());
    return;
  }
  v1::SparseFeatures& sparse = *example.mutable_sparse();
  sparse.mutable_indices()->Add(row.indices.begin(), row.indices.end());
  sparse.mutable_values()->Add(row.values.begin(), row.values.end());
}

// `known` points to the names of the row's known features, in the order of the row, and is advanced
// past them.
void SetNames(const StoredRow& row, std::vector<std::string>::const_iterator& known,
              v1::Example& example) {
  v1::NamedFeatures& named = *example.mutable_named();
  auto unknown = row.unknown.begin();
  for (const uint32_t number : row.indices)
    named.add_names(number == Dictionary::kUnknown ? *unknown++ : *known++);
  named.mutable_values()->Add(row.values.begin(), row.values.end());
}

v1::AnalysisStage StageOf(AnalysisStage stage) {
  switch (stage) {
    case AnalysisStage::kReading:
      return v1::ANALYSIS_STAGE_READING;
    case AnalysisStage::kSearching:
      return v1::ANALYSIS_STAGE_SEARCHING;
    case AnalysisStage::kRefining:
      return v1::ANALYSIS_STAGE_REFINING;
    case AnalysisStage::kCertifying:
      return v1::ANALYSIS_STAGE_CERTIFYING;
  }
  return v1::ANALYSIS_STAGE_UNSPECIFIED;
}

void SetVector(const Model& model, const NewWeights& weights, const NewWeights::Vector& vector,
               v1::WeightVector& proto) {
  proto.mutable_values()->Add(vector.values.begin(), vector.values.end());
  proto.set_bias(vector.bias_weight * model.settings().learner.bias_input);
  if (!model.has_names()) {
    proto.mutable_indices()->Add(vector.indices.begin(), vector.indices.end());
    return;
  }
  std::vector<uint32_t> numbers;
  std::copy_if(vector.indices.begin(), vector.indices.end(), std::back_inserter(numbers),
               [&](uint32_t index) { return index < weights.first_new; });
  // Indices ascend, so new names come last.
  for (std::string& name : FeatureNames(model, numbers)) proto.add_names(std::move(name));
  for (size_t i = numbers.size(); i < vector.indices.size(); ++i)
    proto.add_names(weights.new_names[vector.indices[i] - weights.first_new]);
}

// Sets the example, multiplier and other class of a support vector or certificate entry.
template <typename From, typename Proto>
void SetPart(const From& from, v1::StoredExample& example, Proto& proto) {
  *proto.mutable_example() = std::move(example);
  proto.set_multiplier(from.multiplier);
  if (from.rival >= 0) proto.set_rival(from.rival);
}

}  // namespace

absl::StatusOr<AnalysisOptions> ReadAnalysisOptions(const v1::AnalyzeRequest& request) {
  constexpr uint32_t kMaxRounds = 1'000'000;
  constexpr uint32_t kMaxSupport = 20'000;
  constexpr uint32_t kMaxCertificate = 2'000;
  AnalysisOptions options;
  if (request.relative_gap() != 0) {
    if (!(request.relative_gap() > 0 && request.relative_gap() < 1)) {
      return InvalidField(
          "INVALID_FIELD", "relative_gap",
          absl::StrCat(request.relative_gap(), " is not between 0 and 1; send 0 for the default"));
    }
    options.relative_gap = request.relative_gap();
  }
  const google::protobuf::Duration& limit = request.time_limit();
  if (request.has_time_limit() &&
      (limit.seconds() < 0 || limit.nanos() < 0 || (limit.seconds() == 0 && limit.nanos() == 0)))
    return InvalidField("INVALID_FIELD", "time_limit", "is not above 0; leave it out for the most");
  absl::Status status = Limit("max_rounds", request.max_rounds(), kMaxRounds, options.max_rounds);
  if (status.ok())
    status = Limit("max_support_vectors", request.max_support_vectors(), kMaxSupport,
                   options.max_support_rows);
  if (status.ok())
    status = Limit("max_certificate_examples", request.max_certificate_examples(), kMaxCertificate,
                   options.max_certificate_rows);
  if (status.ok() && request.has_expected_revision() && !request.replace_weights()) {
    status =
        InvalidField("INVALID_FIELD", "expected_revision",
                     "applies to replace_weights only; set replace_weights too, or leave it out");
  }
  if (status.ok() && request.expected_revision() < 0)
    status = InvalidField(
        "INVALID_FIELD", "expected_revision",
        absl::StrCat(request.expected_revision(), " is below 0; revisions start at 0"));
  if (!status.ok()) return status;
  return options;
}

std::vector<v1::StoredExample> ToProto(const Model& model, std::span<const StoredUpdate> examples) {
  std::vector<uint32_t> numbers;
  for (const StoredUpdate& one : examples) {
    if (!model.has_names()) break;
    std::copy_if(one.row->indices.begin(), one.row->indices.end(), std::back_inserter(numbers),
                 [](uint32_t number) { return number != Dictionary::kUnknown; });
  }
  const std::vector<std::string> names = FeatureNames(model, numbers);
  const std::vector<std::string> classes =
      model.settings().named_classes() ? LabelNames(model) : std::vector<std::string>();
  auto known = names.begin();
  std::vector<v1::StoredExample> protos;
  protos.reserve(examples.size());
  for (const StoredUpdate& one : examples) {
    v1::StoredExample& proto = protos.emplace_back();
    v1::Example& example = *proto.mutable_example();
    if (model.has_names()) {
      SetNames(*one.row, known, example);
    } else {
      SetFeatures(*one.row, example);
    }
    // Named classes are never removed, so each label has its name.
    if (classes.empty()) {
      example.set_label(one.row->label);
    } else {
      example.set_label_name(classes[static_cast<size_t>(one.row->label)]);
    }
    if (one.revision == 0) continue;
    if (one.weight != 1) example.set_weight(one.weight);
    proto.set_update_revision(static_cast<int64_t>(one.revision));
    proto.set_score(one.score);
  }
  return protos;
}

void ToProto(const ModelAnalysisProgress& from, v1::AnalysisProgress& proto) {
  proto.set_stage(StageOf(from.progress.stage));
  proto.set_examples(from.examples);
  proto.set_rounds(from.progress.round);
  proto.set_working_examples(from.progress.working_rows);
  if (from.progress.margin_floor > 0) proto.set_margin_lower(from.progress.margin_floor);
  if (std::isfinite(from.progress.margin_ceiling))
    proto.set_margin_upper(from.progress.margin_ceiling);
}

void ToProto(const Model& model, const ModelAnalysis& from, v1::AnalysisResult& proto) {
  *proto.mutable_analysis() = from.record;
  proto.set_end_reason(ToString(from.analysis.end));
  if (std::isfinite(from.analysis.update_bound)) proto.set_update_bound(from.analysis.update_bound);
  if (from.separator.has_value()) {
    for (const NewWeights::Vector& vector : from.separator->vectors)
      SetVector(model, *from.separator, vector, *proto.mutable_separator()->add_vectors());
    proto.set_separator_margin(from.separator_margin);
  }
  std::vector<StoredUpdate> cited;
  for (const SupportVector& one : from.analysis.support)
    cited.push_back(from.input.examples()[one.example]);
  for (const CertificateEntry& one : from.analysis.certificate)
    cited.push_back(from.input.examples()[one.example]);
  std::vector<v1::StoredExample> examples = ToProto(model, cited);
  auto next = examples.begin();
  for (const SupportVector& one : from.analysis.support)
    SetPart(one, *next++, *proto.add_support_vectors());
  for (const CertificateEntry& one : from.analysis.certificate)
    SetPart(one, *next++, *proto.add_certificate());
}

}  // namespace perceptrond
