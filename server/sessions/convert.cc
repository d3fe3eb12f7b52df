#include "server/sessions/convert.h"

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
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
  return IsCap(code) ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kInvalidArgument;
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

absl::Status CheckModelView(int view) {
  return CheckEnum(v1::ModelView_IsValid(view), view, "view");
}

v1::Model ToProto(const ModelSummary& summary) {
  v1::Model model = summary.settings;
  model.set_revision(static_cast<int64_t>(summary.revision));
  *model.mutable_report() = summary.report;
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
  Append(outcome.component_revisions, *proto.mutable_component_revisions());
}

absl::Status ToStatus(const RowError& row_error, const ExampleBatch& batch) {
  const ValidationError& error = row_error.error;
  const std::string field = batch.PathTo(row_error);
  if (IsCap(error.code)) {
    return WithRetry(MakeError(absl::StatusCode::kResourceExhausted, ReasonName(error.code),
                               absl::StrCat(field, ": ", error.description)),
                     absl::Hours(24));
  }
  return InvalidField(ReasonName(error.code), field, error.description);
}

void ToProto(const LearnOutcome& outcome, const ExampleBatch& batch, bool detail,
             v1::LearnResult& proto) {
  proto.set_examples(outcome.examples);
  proto.set_mistakes(outcome.mistakes);
  proto.set_updates(outcome.updated_rows.size());
  proto.set_duplicates(outcome.duplicates);
  proto.set_acknowledged_offset(outcome.next_offset - 1);
  proto.set_revision(static_cast<int64_t>(outcome.revision));
  if (detail) {
    Append(outcome.scores, *proto.mutable_scores());
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
  Append(outcome.labels, *proto.mutable_labels());
  Append(outcome.distances, *proto.mutable_distances());
  Append(outcome.probabilities, *proto.mutable_probabilities());
  Append(outcome.class_scores, *proto.mutable_class_scores());
  Append(outcome.class_probabilities, *proto.mutable_class_probabilities());
  proto.set_revision(static_cast<int64_t>(outcome.revision));
  proto.set_age(outcome.age);
  AddErrors(outcome.row_errors, batch, *proto.mutable_row_errors());
  Append(outcome.component_revisions, *proto.mutable_component_revisions());
}

}  // namespace perceptrond
