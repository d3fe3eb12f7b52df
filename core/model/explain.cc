#include "core/model/explain.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/error.h"
#include "core/model/explain_mistakes.h"
#include "core/model/malformed.h"

namespace perceptrond {
namespace {

// Keeps the `limit` largest, in their order; the others go to the rest.
void KeepLargest(size_t limit, Explanation& explanation) {
  std::vector<Contribution>& all = explanation.contributions;
  std::erase_if(all, [](const Contribution& c) { return c.contribution == 0; });
  std::stable_sort(all.begin(), all.end(), [](const Contribution& a, const Contribution& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  if (all.size() <= limit) return;
  for (size_t i = limit; i < all.size(); ++i) explanation.rest += all[i].contribution;
  explanation.rest_features = static_cast<uint32_t>(all.size() - limit);
  all.resize(limit);
}

}  // namespace

absl::Status Model::Explain(const Batch& batch, std::span<const RowError> row_errors,
                            uint64_t min_revision, size_t max_features,
                            ExplainOutcome& outcome) const {
  if (settings_.components.empty())
    return ExplainOwn(batch, row_errors, min_revision, max_features, outcome);
  ComposedBatch composed;
  absl::Status status = Compose(settings_.components, components_, batch, row_errors, composed);
  if (status.ok())
    status = ExplainOwn(composed.batch, composed.row_errors, min_revision, max_features, outcome);
  outcome.component_revisions = std::move(composed.revisions);
  if (!status.ok() || settings_.space.map.kind != FeatureMap::Kind::kIdentity) return status;
  for (Explanation& explanation : outcome.explanations) {
    for (Contribution& one : explanation.contributions)
      one.part.name = settings_.components[one.part.index].name;
  }
  return status;
}

absl::Status Model::CheckExplains() const {
  const auto not_linear = [this](std::string description) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_LINEAR", description,
                     {{"model", name_}});
  };
  if (settings_.is_multiclass()) {
    return not_linear(absl::StrCat(
        "\"", name_,
        "\" tells several classes apart and has a score for each: predict with all_scores shows "
        "them, and the weights of each class are in the model's view of weights"));
  }
  const CatalogueEntry& rule = FindLearner(settings_.learner);
  if (rule.form != Form::kVotes) return absl::OkStatus();
  return not_linear(
      absl::StrCat("the scores of \"", name_,
                   "\" are no sums, neither over features nor over past mistakes: its learner is ",
                   rule.name, ", and ", rule.no_dual));
}

absl::Status Model::ExplainOwn(const Batch& batch, std::span<const RowError> row_errors,
                               uint64_t min_revision, size_t max_features,
                               ExplainOutcome& outcome) const {
  outcome = ExplainOutcome();
  if (ValidationError error = CheckColumns(batch)) return Malformed(error);
  Mapper mapper(settings_.space, expansion_, limits_.max_example_features);
  if (ValidationError error = mapper.Begin(batch)) return Malformed(error);
  ReaderMutexLock lock(&mutex_);
  if (absl::Status status = CheckAnswers(min_revision); !status.ok()) return status;
  outcome.revision = revision_;
  const uint64_t age = Age();
  if (absl::Status status = CheckExplains(); !status.ok()) return status;
  mapper.Resolve(dictionary_);
  const std::vector<RetainedUpdate> updates = ledger_.retention().CopyUpdates();
  const PastOfModel past{*learner_, settings_.learner,          age,
                         revision_, ledger_.adopted_revision(), ledger_.retention().keeps_updates(),
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
    outcome.explanations.push_back(ExplainRow(mapper, i, age, max_features));
    ExplainByMistakes(past, mapper.Map(i), max_features, outcome.explanations.back());
  }
  return absl::OkStatus();
}

Explanation Model::ExplainRow(Mapper& mapper, size_t i, uint64_t age, size_t max_features) const {
  Explanation explanation;
  const Predictor& predictor = learner_->predictor();
  predictor.Score(mapper.Map(i), age, {&explanation.score, 1});
  explanation.label = predictor.Label({&explanation.score, 1});
  const CatalogueEntry& rule = FindLearner(settings_.learner);
  if (rule.form != Form::kLinear) {
    explanation.contributions_absent =
        absl::StrCat("the score of a ", rule.name, " is no sum over features");
    return explanation;
  }
  predictor.Score(Row{kNoIndices, nullptr, 0}, age, {&explanation.offset, 1});
  std::vector<FeaturePart> parts;
  mapper.Parts(i, settings_.space, parts);
  for (FeaturePart& part : parts) {
    const double weight = *learner_->explainable()->FeatureWeight(0, part.index, age);
    const double contribution = weight * static_cast<double>(part.value);
    explanation.contributions.push_back({std::move(part), weight, contribution});
  }
  KeepLargest(max_features, explanation);
  return explanation;
}

}  // namespace perceptrond
