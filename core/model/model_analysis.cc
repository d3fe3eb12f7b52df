#include "core/model/model_analysis.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/convergence/analysis/analysis.h"
#include "core/convergence/analysis/bounds.h"
#include "core/convergence/analysis/signed_rows.h"
#include "core/error/error.h"
#include "core/error/stopped.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// What reading a stored example takes besides its features, in multiply-adds.
constexpr size_t kReadWork = 500;

// FAILED_PRECONDITION. why: follows the model's name.
absl::Status CannotAnalyze(const Model& model, absl::string_view reason, absl::string_view why) {
  return MakeError(absl::StatusCode::kFailedPrecondition, reason,
                   absl::StrCat("model \"", model.name(), "\" ", why), {{"model", model.name()}});
}

absl::Status NothingStored(const Model& model) {
  return CannotAnalyze(
      model, "NOTHING_STORED",
      "stores no example: it has had no update yet, or was created with "
      "stored_examples.max_updates = 0; stored_examples.max_sample stores other examples");
}

// Margins in the space of the features prove nothing about the kernel's space.
absl::Status InKernelSpace(const Model& model) {
  return CannotAnalyze(
      model, "KERNEL_SPACE",
      "learns in its kernel's space; an analysis in the space of the features proves nothing about "
      "it. A pass without an update shows that it has converged; for margins use a linear learner "
      "with a feature map like the kernel");
}

absl::Status Cancelled() {
  return MakeError(absl::StatusCode::kCancelled, "ANALYSIS_CANCELLED",
                   "the analysis was cancelled; the model is as it was");
}

v1::Separability ToProto(Separability separability) {
  switch (separability) {
    case Separability::kSeparable:
      return v1::SEPARABILITY_SEPARABLE;
    case Separability::kNotSeparable:
      return v1::SEPARABILITY_NOT_SEPARABLE;
    case Separability::kUndecided:
      return v1::SEPARABILITY_UNDECIDED;
  }
  return v1::SEPARABILITY_UNSPECIFIED;
}

v1::Analysis MakeRecord(const AnalysisInput& input, const Analysis& analysis, absl::Time time) {
  v1::Analysis record;
  record.set_revision(static_cast<int64_t>(input.revision()));
  record.set_examples(input.rows().size());
  record.set_complete(input.complete());
  record.set_separability(ToProto(analysis.separability));
  if (analysis.margin_floor > 0) record.set_margin_lower(analysis.margin_floor);
  if (std::isfinite(analysis.margin_ceiling) &&
      analysis.separability != Separability::kNotSeparable)
    record.set_margin_upper(analysis.margin_ceiling);
  record.set_radius(analysis.radius);
  const int64_t nanos = absl::ToUnixNanos(time);
  record.mutable_time()->set_seconds(nanos / 1'000'000'000);
  record.mutable_time()->set_nanos(static_cast<int32_t>(nanos % 1'000'000'000));
  return record;
}

absl::Status TooLarge(const Model& model, const AnalysisOptions& options) {
  return CannotAnalyze(
      model, "ANALYSIS_TOO_LARGE",
      absl::StrCat("stores examples with features for over ", options.max_weights,
                   " weights, all classes together, which is the most that an analysis holds in "
                   "memory; create the model with a smaller stored_examples.max_sample"));
}

// The separator by columns of the signed rows, in float64.
std::vector<double> ToColumns(const Separator& separator, const SignedRows& rows) {
  std::vector<double> w(rows.columns());
  for (size_t k = 0; k < rows.blocks(); ++k) {
    const std::span<double> block = std::span(w).subspan(k * rows.width(), rows.width());
    size_t column = 0;
    for (const FeatureWeight& one : separator.vectors[k].weights) {
      while (rows.features()[column] < one.index) ++column;
      block[column] = one.weight;
    }
    if (rows.has_bias()) block.back() = separator.vectors[k].bias_weight;
  }
  return w;
}

// The weights w as the model's, by its numbers of classes.
NewWeights ToNewWeights(const AnalysisInput& input, const SignedRows& rows,
                        std::span<const double> w) {
  NewWeights weights;
  const std::vector<int32_t>& classes = input.classes();
  weights.vectors.resize(classes.empty() ? 1 : static_cast<size_t>(classes.back()) + 1);
  const std::vector<WeightVector> vectors = ToWeightVectors(rows, w);
  for (size_t k = 0; k < vectors.size(); ++k) {
    const size_t number = classes.empty() ? 0 : static_cast<size_t>(classes[k]);
    NewWeights::Vector& vector = weights.vectors[number];
    for (const FeatureWeight& one : vectors[k].weights) {
      vector.indices.push_back(one.index);
      vector.values.push_back(one.weight);
    }
    vector.bias_weight = vectors[k].bias_weight;
  }
  if (!input.new_names().empty()) {
    weights.new_names = input.new_names();
    weights.first_new = input.first_new();
  }
  return weights;
}

// Scales the separator, rounds it to float32, and measures the margin it attains then. Sets nothing
// if it leaves float32's range or no longer separates. Returns false if cancelled.
bool Scale(const AnalysisOptions& options, AnalysisMonitor& monitor, ModelAnalysis& result) {
  const SignedRows rows(result.input.rows(), options, monitor);
  if (monitor.stopped()) return false;
  std::vector<double> w = ToColumns(*result.analysis.separator, rows);
  const Margins unit = MeasureMargins(rows, w, monitor);
  if (monitor.stopped()) return false;
  const RowScore least =
      *std::min_element(unit.lowest.begin(), unit.lowest.end(),
                        [](const RowScore& a, const RowScore& b) { return a.score < b.score; });
  for (double& weight : w) weight = static_cast<float>(weight / least.score);
  const bool fits = std::all_of(w.begin(), w.end(), [](double weight) {
    return std::abs(weight) <= std::numeric_limits<float>::max();
  });
  if (!fits) return true;
  const Margins scaled = MeasureMargins(rows, w, monitor);
  if (monitor.stopped()) return false;
  if (!(scaled.floor > 0)) return true;
  result.separator = ToNewWeights(result.input, rows, w);
  result.separator_margin = scaled.floor;
  return true;
}

// From positions in the input's classes to the model's numbers.
void RenumberClasses(const AnalysisInput& input, Analysis& analysis) {
  if (input.classes().empty()) return;
  const auto number = [&](int32_t position) {
    return input.classes()[static_cast<size_t>(position)];
  };
  for (SupportVector& one : analysis.support) one.rival = number(one.rival);
  for (CertificateEntry& one : analysis.certificate) one.rival = number(one.rival);
}

}  // namespace

absl::StatusOr<AnalysisInput> AnalysisInput::Make(const Model& model) {
  AnalysisInput input;
  StoredExamplesView view;
  {
    const ModelReader reader(model);
    if (reader.state().learner->learned_weights() == nullptr) return InKernelSpace(model);
    view = CopyStoredExamples(reader);
    if (model.settings().is_multiclass()) input.CollectClasses(reader, view.examples);
  }
  const StoredExamplesCopy& stored = view.examples;
  if (stored.updates.empty() && stored.sample.empty()) return NothingStored(model);
  input.complete_ = stored.complete;
  input.revision_ = view.revision;
  if (model.has_names()) input.NumberNames(model, stored);
  // Latest first: an example is represented by its latest update.
  for (auto update = stored.updates.rbegin(); update != stored.updates.rend(); ++update) {
    if (!KeepGoing(kReadWork + update->row->values.size())) return StoppedError();
    input.Add(*update, model.has_names());
  }
  for (const auto& [hash, row] : stored.sample) {
    if (!KeepGoing(kReadWork + row->values.size())) return StoppedError();
    input.Add({.row = row}, model.has_names());
  }
  return input;
}

// Collects the classes of the model at the moment of the examples. An example of the sample may be
// of a class that the model does not have, if the update that makes the class exist failed.
void AnalysisInput::CollectClasses(const ModelReader& reader, const StoredExamplesCopy& examples) {
  const Predictor& predictor = reader.state().learner->predictor();
  for (size_t k = 0; k < predictor.scores(); ++k) {
    if (predictor.HasLabel(static_cast<int32_t>(k))) classes_.push_back(static_cast<int32_t>(k));
  }
  for (const auto& [hash, row] : examples.sample) classes_.push_back(row->label);
  std::sort(classes_.begin(), classes_.end());
  classes_.erase(std::unique(classes_.begin(), classes_.end()), classes_.end());
}

int32_t AnalysisInput::LabelOf(const StoredRow& row) const {
  if (classes_.empty()) return row.label;
  const auto at = std::lower_bound(classes_.begin(), classes_.end(), row.label);
  return static_cast<int32_t>(at - classes_.begin());
}

// At one moment: a name that got its weight between two rows would become two features.
void AnalysisInput::NumberNames(const Model& model, const StoredExamplesCopy& examples) {
  std::vector<absl::string_view> names;
  for (const auto& [hash, row] : examples.sample) {
    for (const std::string& name : row->unknown) {
      if (numbers_.emplace(name, 0).second) names.push_back(name);
    }
  }
  const FeatureNumbers found = FindFeatures(model, names);
  first_new_ = found.next;
  for (size_t i = 0; i < names.size(); ++i) {
    uint32_t number = found.numbers[i];
    if (number == Dictionary::kUnknown) {
      number = first_new_ + static_cast<uint32_t>(new_names_.size());
      new_names_.emplace_back(names[i]);
    }
    numbers_[names[i]] = number;
  }
}

Row AnalysisInput::Numbered(const StoredRow& row) {
  std::vector<uint32_t> numbers = row.indices;
  auto name = row.unknown.begin();
  for (uint32_t& number : numbers) {
    if (number == Dictionary::kUnknown) number = numbers_.at(*name++);
  }
  std::vector<size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return numbers[a] < numbers[b]; });
  StoredRow& sorted = numbered_.emplace_back();
  for (const size_t i : order) {
    sorted.indices.push_back(numbers[i]);
    sorted.values.push_back(row.values[i]);
  }
  return sorted.row();
}

void AnalysisInput::Add(const StoredUpdate& example, bool named) {
  const Row row = named ? Numbered(*example.row) : example.row->row();
  const int32_t label = LabelOf(*example.row);
  const SeenExample seen{row, label, {}};
  const Dictionary by_number;
  const auto [known, is_new] = known_.emplace(HashOf(seen, by_number), rows_.size());
  if (!is_new) {
    const LabelledRow& held = rows_[known->second];
    // Two different examples may share a hash.
    if (SameExample({held.row, held.label, {}}, seen, by_number)) {
      if (named) numbered_.pop_back();
      return;
    }
  }
  rows_.push_back({row, label});
  examples_.push_back(example);
}

absl::StatusOr<ModelAnalysis> AnalyzeModel(Model& model, AnalysisOptions options,
                                           ModelAnalysisCallback keep_going) {
  const absl::Time now = absl::Now();
  absl::StatusOr<AnalysisInput> input = AnalysisInput::Make(model);
  if (!input.ok()) return input.status();
  options.bias_input = model.settings().learner.bias_input;
  options.classes = static_cast<uint32_t>(input->classes().size());
  ModelAnalysis result{*std::move(input), {}, {}, std::nullopt, 0};
  const size_t examples = result.input.rows().size();
  const auto report = [&](const AnalysisProgress& progress) {
    return keep_going({examples, progress});
  };
  result.analysis = Analyze(result.input.rows(), options, report);
  const auto cancelled = [] { return Stopped() ? StoppedError() : Cancelled(); };
  if (result.analysis.end == AnalysisEnd::kCancelled) return cancelled();
  if (result.analysis.end == AnalysisEnd::kTooManyWeights) return TooLarge(model, options);
  if (result.analysis.separator.has_value()) {
    AnalysisMonitor monitor(report);
    monitor.progress = {AnalysisStage::kRefining, result.analysis.rounds, 0,
                        result.analysis.margin_floor, result.analysis.margin_ceiling};
    if (!Scale(options, monitor, result)) return cancelled();
  }
  RenumberClasses(result.input, result.analysis);
  result.record = MakeRecord(result.input, result.analysis, now);
  // Out of time before the first round: an earlier analysis says more.
  const bool nothing =
      result.analysis.end == AnalysisEnd::kOutOfTime && result.analysis.rounds == 0;
  if (!nothing) model.ledger().AddAnalysis(result.record);
  return result;
}

}  // namespace perceptrond
