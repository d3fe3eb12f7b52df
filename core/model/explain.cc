#include "core/model/explain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/batch_rows.h"
#include "core/model/error.h"
#include "core/model/predict_batch.h"
#include "core/model/support_examples.h"

namespace perceptrond {
namespace {

// Keeps the `limit` largest, sorted. The others are summed.
void KeepLargest(size_t limit, Explanation& explanation) {
  std::vector<Contribution>& all = explanation.contributions;
  std::erase_if(all, [](const Contribution& c) { return c.contribution == 0; });
  std::stable_sort(all.begin(), all.end(), [](const Contribution& a, const Contribution& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  if (all.size() <= limit) return;
  for (size_t i = limit; i < all.size(); ++i)
    explanation.other_contributions += all[i].contribution;
  explanation.other_features = static_cast<uint32_t>(all.size() - limit);
  all.resize(limit);
}

// FAILED_PRECONDITION (NOT_LINEAR) if the score is not one sum, over features or support examples.
absl::Status CheckExplains(const ModelCore& core) {
  const auto not_linear = [&core](std::string description) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_LINEAR", description,
                     {{"model", core.name}});
  };
  const CatalogueEntry& rule = FindLearner(core.settings.learner);
  if (rule.form != Form::kVotes) return absl::OkStatus();
  return not_linear(
      absl::StrCat("the scores of \"", core.name,
                   "\" are not sums over features or support examples: its learner is ", rule.name,
                   ", and ", rule.no_dual));
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
  return InvalidField("UNKNOWN_LABEL", "label",
                      label.has_value() ? absl::StrCat("the model has no class ", chosen)
                                        : std::string("the model has no class yet"));
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
  const CatalogueEntry& rule = FindLearner(core.settings.learner);
  if (rule.form != Form::kLinear) {
    explanation.contributions_absent =
        absl::StrCat("the score of a ", rule.name, " is no sum over features");
    return explanation;
  }
  predictor.Score(Row{kNoIndices, nullptr, 0}, age, scores);
  explanation.bias = scores[*k];
  std::vector<FeaturePart> parts;
  mapper.Parts(i, core.settings.space, parts);
  for (FeaturePart& part : parts) {
    const double weight = *learner.explainable()->FeatureWeight(*k, part.index, age);
    const double contribution = weight * static_cast<double>(part.value);
    explanation.contributions.push_back({std::move(part), weight, contribution});
  }
  KeepLargest(options.max_features, explanation);
  return explanation;
}

}  // namespace

absl::Status ExplainBatch(const ModelCore& core, const Batch& batch,
                          std::span<const RowError> row_errors, const ExplainOptions& options,
                          ExplainOutcome& outcome) {
  outcome = ExplainOutcome();
  Mapper mapper(core.settings.space, core.expansion, core.limits.max_example_features);
  if (absl::Status status = BeginBatch(batch, mapper); !status.ok()) return status;
  const Guarded<ModelState>::Reader state(core.state);
  if (absl::Status status = ModelCore::CheckReadable(*state, options.min_revision); !status.ok())
    return status;
  outcome.revision = state->revision;
  if (absl::Status status = CheckExplains(core); !status.ok()) return status;
  const Learner& learner = *state->learner;
  const uint64_t age = core.Age();
  mapper.Resolve(state->names);
  const StoredExamples& stored = core.ledger.stored_examples();
  const std::vector<StoredUpdate> updates = stored.CopyUpdates();
  const SupportContext context{learner,
                               core.settings.learner,
                               age,
                               state->revision,
                               core.ledger.replacement_revision(),
                               stored.keeps_updates(),
                               updates};
  for (size_t i = 0; i < batch.rows(); ++i) {
    if (!row_errors.empty() && row_errors.front().row == i) {
      outcome.row_errors.push_back(row_errors.front());
      return absl::OkStatus();
    }
    double squared_norm = 0;
    if (const ValidationCode code = mapper.Check(i, &squared_norm); code != ValidationCode::kNone) {
      outcome.row_errors.push_back({static_cast<uint32_t>(i), mapper.Describe(i, code)});
      return absl::OkStatus();
    }
    absl::StatusOr<Explanation> explanation = ExplainRow(core, learner, mapper, i, age, options);
    if (!explanation.ok()) return explanation.status();
    ExplainBySupport(context, mapper.Map(i), options.max_features, *explanation);
    outcome.explanations.push_back(*std::move(explanation));
  }
  return absl::OkStatus();
}

}  // namespace perceptrond
