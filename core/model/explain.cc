#include "core/model/explain.h"

#include <cmath>
#include <optional>
#include <span>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/learner/catalogue.h"
#include "core/model/batch_rows.h"
#include "core/model/cost.h"
#include "core/vector/top.h"

namespace perceptrond {
namespace {

// Keeps the `limit` contributions of largest magnitude of those offered, and sums and counts the
// others.
template <typename T>
class Largest {
 public:
  Largest(size_t limit, double& other_sum, uint32_t& other_count)
      : top_(limit), other_sum_(other_sum), other_count_(other_count) {}

  void Offer(T one) {
    const std::optional<T> other = top_.Offer(std::move(one));
    if (!other.has_value()) return;
    other_sum_ += other->contribution;
    ++other_count_;
  }
  // Largest first. Nothing may be offered afterwards.
  std::vector<T> Take() { return top_.Take(); }

 private:
  struct IsLarger {
    bool operator()(const T& a, const T& b) const {
      return std::abs(a.contribution) > std::abs(b.contribution);
    }
  };

  Top<T, IsLarger> top_;
  double& other_sum_;
  uint32_t& other_count_;
};

// The model at the revision at which a row is scored. In its dual form a score is a sum over the
// examples that caused updates: the perceptron's weights are eta times the sum of y (x, b) over its
// mistakes; those of one of several classes the same, y = 1 for its own examples and -1 for those
// whose rival it was. Other rules have other coefficients, and kernels another product.
struct SupportContext {
  const Learner& learner;
  const LearnerSettings& settings;
  // Examples evaluated.
  uint64_t age = 0;
  uint64_t revision = 0;
  // The revision of the latest weight replacement, 0 for none.
  uint64_t replaced = 0;
  // Whether the model stores updates at all.
  bool stores_updates = false;
  // The stored updates, by ascending revision.
  std::span<const StoredUpdate> updates;
};

// What one look-up among a row's features takes, in multiply-adds.
constexpr size_t kProductWork = 10;

// The products of one row with others.
class Products {
 public:
  Products(const Row& row, double bias_input) : bias_squared_(bias_input * bias_input) {
    for (size_t i = 0; i < row.size; ++i)
      values_[row.index(i)] += static_cast<double>(row.value(i));
  }
  double Of(uint32_t index, double other) const {
    const auto value = values_.find(index);
    return value == values_.end() ? 0 : value->second * other;
  }
  // x_i . x + b^2.
  double Kernel(const Row& example) const {
    double sum = 0;
    for (size_t i = 0; i < example.size; ++i)
      sum += Of(example.index(i), static_cast<double>(example.value(i)));
    return sum + bias_squared_;
  }

 private:
  const double bias_squared_;
  absl::flat_hash_map<uint32_t, double> values_;
};

// The updates after the origin: the latest weight replacement, or the start. For learners that
// count examples, updates up to the last one stored without its age are of no use.
std::span<const StoredUpdate> Since(const SupportContext& context, uint64_t origin) {
  auto first = std::upper_bound(
      context.updates.begin(), context.updates.end(), origin,
      [](uint64_t revision, const StoredUpdate& update) { return revision < update.revision; });
  const auto last = std::upper_bound(
      first, context.updates.end(), context.revision,
      [](uint64_t revision, const StoredUpdate& update) { return revision < update.revision; });
  if (FindLearner(context.settings).counts_examples) {
    for (auto update = first; update != last; ++update)
      if (!update->age.has_value()) first = update + 1;
  }
  return {first, last};
}

// Whether these are all updates after the origin: the stored ones are the latest, without gaps, so
// it is enough that the first follows the origin.
bool AreAll(std::span<const StoredUpdate> updates, uint64_t origin, uint64_t revision) {
  return updates.empty() ? revision == origin : updates.front().revision == origin + 1;
}

std::optional<double> DualCoefficient(const SupportContext& context, size_t k,
                                      const StoredUpdate& update) {
  const int32_t label = update.row->label;
  const double weight = update.weight * context.settings.class_weight(label);
  return context.learner.dual_form()->DualCoefficient(
      k, {update.row->row(), {label, weight, update.age.value_or(0)}, update.score, update.rival},
      context.age);
}

// The contribution of the weights that vector k started from.
double OfStart(const LearnerSettings& settings, size_t k, const Products& products) {
  if (k >= settings.start.vectors.size()) return 0;
  const StartingWeights::Vector& start = settings.start.vectors[k];
  double sum = 0;
  for (size_t i = 0; i < start.indices.size(); ++i)
    sum += products.Of(start.indices[i], static_cast<double>(start.values[i]));
  return settings.bias_input == 0 ? sum : sum + start.bias;
}

// Adds the contribution of the weights that the support examples were added to.
void AddStart(const SupportContext& context, size_t k, const Products& products,
              Explanation& explanation) {
  explanation.start_revision = context.replaced;
  if (context.replaced == 0) {
    if (!context.settings.start.all_zero())
      explanation.start_contribution = OfStart(context.settings, k, products);
    return;
  }
  // These weights are not stored by themselves: they are the score without all support examples.
  if (!explanation.support_complete) return;
  double sum = 0;
  for (const SupportContribution& example : explanation.support) sum += example.contribution;
  explanation.start_contribution = explanation.score - sum;
}

// Of the examples that the learner keeps.
void AddKeptSupport(const SupportContext& context, const SupportExpansion& expansion,
                    const Row& row, Explanation& explanation) {
  for (const SupportExample& example : expansion.SupportExamples(row)) {
    explanation.support.push_back({context.revision - example.updates_since, example.label,
                                   example.kernel, example.dual_coefficient,
                                   example.dual_coefficient * example.kernel});
  }
  explanation.support_complete = true;
}

// Of score k, from the stored updates.
void AddStoredSupport(const SupportContext& context, size_t k, const Row& row,
                      Explanation& explanation) {
  const uint64_t origin = context.replaced;
  const std::span<const StoredUpdate> updates = Since(context, origin);
  const Products products(row, context.settings.bias_input);
  for (const StoredUpdate& update : updates) {
    if (!KeepGoing(kProductWork * update.row->values.size())) return;
    const std::optional<double> coefficient = DualCoefficient(context, k, update);
    if (!coefficient.has_value()) {
      explanation.support.clear();
      explanation.support_absent =
          "an older server did not record which updates made the weights it predicts with";
      return;
    }
    if (*coefficient == 0) continue;
    const double kernel = products.Kernel(update.row->row());
    explanation.support.push_back(
        {update.revision, update.row->label, kernel, *coefficient, *coefficient * kernel});
  }
  explanation.support_complete = AreAll(updates, origin, context.revision);
  AddStart(context, k, products, explanation);
}

// Why a learner that keeps no examples itself can name none; empty: it can.
std::string WhyAbsent(const SupportContext& context) {
  const CatalogueEntry& rule = FindLearner(context.settings);
  if (context.settings.steps != StepSchedule::kConstant)
    return "an update's step depends on those before it, which is not stored";
  if (context.learner.dual_form() == nullptr)
    return std::string(rule.no_dual.empty() ? rule.no_class_dual : rule.no_dual);
  if (!context.stores_updates)
    return "the model stores no updates (stored_examples.max_updates is 0)";
  return "";
}

// Fills in the support examples of an explanation whose score is there already, the `limit` largest
// of them. O(row.size + features of the stored updates); for kernels as long as a score takes.
void ExplainBySupport(const SupportContext& context, const Row& row, size_t limit,
                      Explanation& explanation) {
  if (const SupportExpansion* const expansion = context.learner.support_expansion()) {
    AddKeptSupport(context, *expansion, row, explanation);
  } else {
    explanation.support_absent = WhyAbsent(context);
    if (!explanation.support_absent.empty()) return;
    // Several classes: the score of the class that the explanation names.
    const size_t k =
        context.settings.is_multiclass() ? static_cast<size_t>(explanation.label) : size_t{0};
    AddStoredSupport(context, k, row, explanation);
  }
  Largest<SupportContribution> largest(limit, explanation.other_support,
                                       explanation.other_support_count);
  for (const SupportContribution& one : explanation.support) largest.Offer(one);
  explanation.support = largest.Take();
}

// FAILED_PRECONDITION (NOT_LINEAR) if the score is not one sum, over features or support examples.
absl::Status CheckExplains(const ModelCore& core, const Learner& learner) {
  if (learner.feature_weights() != nullptr || learner.support_expansion() != nullptr)
    return absl::OkStatus();
  const CatalogueEntry& rule = FindLearner(core.settings.learner);
  return MakeError(
      absl::StatusCode::kFailedPrecondition, "NOT_LINEAR",
      absl::StrCat("the scores of \"", core.name,
                   "\" are not sums over features or support examples: its learner is ", rule.name,
                   ", and ", rule.no_dual),
      {{"model", core.name}});
}

// The score to explain: the only one, or that of a class.
absl::StatusOr<size_t> ChooseScore(const Predictor& predictor, const ModelSettings& settings,
                                   std::optional<int32_t> label, std::span<const double> scores) {
  if (!settings.is_multiclass()) {
    if (!label.has_value()) return 0;
    return InvalidField("INVALID_FIELD", "label",
                        "a model of two labels has one score; leave the label out");
  }
  const int32_t chosen = label.value_or(predictor.Label(scores));
  if (chosen >= 0 && static_cast<size_t>(chosen) < scores.size() &&
      std::isfinite(scores[static_cast<size_t>(chosen)]))
    return static_cast<size_t>(chosen);
  if (label.has_value())
    return InvalidField("UNKNOWN_LABEL", "label", absl::StrCat("the model has no class ", chosen));
  return MakeError(absl::StatusCode::kFailedPrecondition, "NO_CLASS",
                   "the model has no class yet, and so no score; let it learn an example first");
}

absl::StatusOr<Explanation> ExplainRow(const ModelCore& core, const Learner& learner,
                                       Mapper& mapper, size_t i, uint64_t age,
                                       const ExplainOptions& options) {
  Explanation explanation;
  const Predictor& predictor = learner.predictor();
  std::vector<double> scores(predictor.scores());
  predictor.Score(mapper.Map(i), age, scores);
  const absl::StatusOr<size_t> k = ChooseScore(predictor, core.settings, options.label, scores);
  if (!k.ok()) return k.status();
  explanation.score = scores[*k];
  explanation.label =
      core.settings.is_multiclass() ? static_cast<int32_t>(*k) : predictor.Label(scores);
  const FeatureWeights* const weights = learner.feature_weights();
  if (weights == nullptr) {
    explanation.contributions_absent = absl::StrCat(
        "the score of a ", FindLearner(core.settings.learner).name, " is no sum over features");
    return explanation;
  }
  predictor.Score(Row{kNoIndices, nullptr, 0}, age, scores);
  explanation.bias = scores[*k];
  Largest<Contribution> largest(options.max_features, explanation.other_contributions,
                                explanation.other_features);
  mapper.Parts(i, core.settings.space, [&](FeaturePart part) {
    const double weight = weights->FeatureWeight(*k, part.index, age);
    const double contribution = weight * static_cast<double>(part.value);
    if (contribution != 0) largest.Offer({std::move(part), weight, contribution});
  });
  if (Stopped()) return StoppedError();
  explanation.contributions = largest.Take();
  std::vector<FeaturePart*> parts;
  for (Contribution& one : explanation.contributions) parts.push_back(&one.part);
  mapper.NameParts(i, core.settings.space, parts);
  return explanation;
}

size_t BytesOf(const Explanation& explanation) {
  size_t bytes = explanation.support.size() * sizeof(SupportContribution);
  for (const Contribution& one : explanation.contributions)
    bytes += sizeof(Contribution) + one.part.name.size();
  return bytes;
}

absl::Status TooManyContributions(size_t max_bytes) {
  return MakeError(absl::StatusCode::kResourceExhausted, "ANSWER_TOO_LARGE",
                   absl::StrCat("the contributions take more than ", max_bytes,
                                " bytes: explain fewer examples at once, or list fewer features "
                                "of each (max_features)"),
                   {{"max_bytes", absl::StrCat(max_bytes)}});
}

}  // namespace

absl::Status ExplainBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, const ExplainOptions& options,
                          ExplainOutcome& outcome) {
  outcome = ExplainOutcome();
  Mapper mapper(core.settings.space, core.expansion, core.limits.max_example_features);
  if (absl::Status status = BeginBatch(batch, mapper); !status.ok()) return status;
  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status status = core.CheckReadable(*state, options.min_revision); !status.ok())
    return status;
  core.MarkScored();
  outcome.revision = state->revision;
  outcome.epoch = core.epoch.load(std::memory_order_acquire);
  const Learner& learner = *state->learner;
  if (absl::Status status = CheckExplains(core, learner); !status.ok()) return status;
  const uint64_t age = core.Age();
  if (FindLearner(core.settings.learner).separate_prediction_weights) outcome.age = age;
  mapper.Resolve(state->names, state->frequencies);
  const StoredExamples& stored = core.ledger.stored_examples();
  // Before the copy: it locks the ledger, which then has every update of this revision.
  const uint64_t replacement_revision = core.ledger.counters().replaced_at();
  const std::vector<StoredUpdate> updates = stored.CopyUpdates();
  uint64_t work_of_row = 0;
  for (const StoredUpdate& update : updates)
    work_of_row += kProductWork * update.row->values.size();
  const auto cost_of = [&](const Batch& some, uint64_t /*before*/) {
    return EstimateCost(core.expansion.get(), core.settings, learner,
                        core.limits.max_example_features, some) +
           some.rows() * work_of_row;
  };
  std::vector<RowError> errors(row_errors.begin(), row_errors.end());
  const absl::StatusOr<uint64_t> cost =
      CheckCost(batch, core.limits.max_message_cost, cost_of, errors);
  if (!cost.ok()) return cost.status();
  const LargeWork large(core, *cost);
  const SupportContext context{learner,         core.settings.learner, age,
                               state->revision, replacement_revision,  stored.keeps_updates(),
                               updates};
  size_t bytes = 0;
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (!errors.empty() && errors.front().row == i) {
      outcome.row_errors.push_back(errors.front());
      return absl::OkStatus();
    }
    double squared_norm = 0;
    const ValidationCode code = mapper.Check(i, &squared_norm);
    if (!KeepGoing()) return StoppedError();
    if (code != ValidationCode::kNone) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), mapper.Describe(i, code)});
      return absl::OkStatus();
    }
    absl::StatusOr<Explanation> explanation = ExplainRow(core, learner, mapper, i, age, options);
    if (Stopped()) return StoppedError();
    if (!explanation.ok()) return explanation.status();
    ExplainBySupport(context, mapper.Map(i), options.max_features, *explanation);
    if (Stopped()) return StoppedError();
    bytes += BytesOf(*explanation);
    if (bytes > options.max_bytes) return TooManyContributions(options.max_bytes);
    outcome.explanations.push_back(*std::move(explanation));
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
