#include "core/model/explain_mistakes.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/learner/catalogue.h"

namespace perceptrond {
namespace {

// A row whose products with many are wanted.
class Products {
 public:
  Products(const Row& row, double offset_value) : squared_offset_(offset_value * offset_value) {
    for (size_t i = 0; i < row.size; ++i)
      values_[row.index(i)] += static_cast<double>(row.value(i));
  }
  double Of(uint32_t index, double other) const {
    const auto value = values_.find(index);
    return value == values_.end() ? 0 : value->second * other;
  }
  // x_i . x + b^2.
  double Similarity(const Row& past) const {
    double sum = 0;
    for (size_t i = 0; i < past.size; ++i)
      sum += Of(past.index(i), static_cast<double>(past.value(i)));
    return sum + squared_offset_;
  }

 private:
  const double squared_offset_;
  absl::flat_hash_map<uint32_t, double> values_;
};

void KeepLargest(size_t limit, Explanation& explanation) {
  std::vector<PastMistake>& all = explanation.mistakes;
  std::stable_sort(all.begin(), all.end(), [](const PastMistake& a, const PastMistake& b) {
    return std::abs(a.contribution) > std::abs(b.contribution);
  });
  if (all.size() <= limit) return;
  for (size_t i = limit; i < all.size(); ++i) explanation.other_mistakes += all[i].contribution;
  explanation.other_mistakes_count = static_cast<uint32_t>(all.size() - limit);
  all.resize(limit);
}

// The updates since the weights that were adopted last, or that it started from. What an older
// server retained without its age is as good as lost where ages count.
std::span<const RetainedUpdate> Since(const PastOfModel& past, uint64_t origin) {
  auto first = std::upper_bound(
      past.updates.begin(), past.updates.end(), origin,
      [](uint64_t revision, const RetainedUpdate& update) { return revision < update.revision; });
  const auto last = std::upper_bound(
      first, past.updates.end(), past.revision,
      [](uint64_t revision, const RetainedUpdate& update) { return revision < update.revision; });
  if (FindLearner(past.settings).counts_examples) {
    for (auto update = first; update != last; ++update)
      if (!update->age.has_value()) first = update + 1;
  }
  return {first, last};
}

// Whether these are all there were: those retained are the latest, without gaps, and the first
// after an origin follows it.
bool AreAll(std::span<const RetainedUpdate> updates, uint64_t origin, uint64_t revision) {
  return updates.empty() ? revision == origin : updates.front().revision == origin + 1;
}

std::optional<double> ShareOf(const PastOfModel& past, const RetainedUpdate& update) {
  const int32_t label = update.row->label;
  const double weight = update.weight * past.settings.class_weight(label);
  return past.learner.explainable()->DualCoefficient(
      {update.row->row(), {label, weight, update.age.value_or(0)}, update.score}, past.age);
}

// What the weights that it started from make of the row.
double OfStart(const LearnerSettings& settings, const Products& products) {
  const StartingWeights& start = settings.start;
  double sum = 0;
  for (size_t i = 0; i < start.indices.size(); ++i)
    sum += products.Of(start.indices[i], static_cast<double>(start.values[i]));
  return settings.bias_input == 0 ? sum : sum + start.bias;
}

// What the weights since when they were no sum of mistakes make of it.
void AddOrigin(const PastOfModel& past, const Products& products, Explanation& explanation) {
  explanation.origin_revision = *past.adopted;
  if (*past.adopted == 0) {
    if (!past.settings.start.all_zero()) explanation.origin = OfStart(past.settings, products);
    return;
  }
  // They are not kept by themselves, but everything that came on top of them is.
  if (!explanation.mistakes_complete) return;
  double sum = 0;
  for (const PastMistake& mistake : explanation.mistakes) sum += mistake.contribution;
  explanation.origin = explanation.score - sum;
}

void AddTerms(const PastOfModel& past, const Row& row, Explanation& explanation) {
  for (const SupportExample& example : past.learner.explainable()->SupportExamples(row)) {
    explanation.mistakes.push_back({past.revision - example.updates_since, example.label,
                                    example.similarity, example.contribution});
  }
  explanation.mistakes_complete = true;
}

// Of a linear learner.
void AddShares(const PastOfModel& past, const Row& row, Explanation& explanation) {
  const uint64_t origin = *past.adopted;
  const std::span<const RetainedUpdate> updates = Since(past, origin);
  const Products products(row, past.settings.bias_input);
  for (const RetainedUpdate& update : updates) {
    const std::optional<double> share = ShareOf(past, update);
    if (!share.has_value()) {
      explanation.mistakes.clear();
      explanation.mistakes_absent =
          "which updates made the weights it answers with was not yet recorded when they came";
      return;
    }
    if (*share == 0) continue;
    const double similarity = products.Similarity(update.row->row());
    explanation.mistakes.push_back(
        {update.revision, update.row->label, similarity, *share * similarity});
  }
  explanation.mistakes_complete = AreAll(updates, origin, past.revision);
  AddOrigin(past, products, explanation);
}

// Empty: it can be told.
std::string WhyNot(const PastOfModel& past) {
  const CatalogueEntry& rule = FindLearner(past.settings);
  if (!rule.no_dual.empty()) return std::string(rule.no_dual);
  if (rule.form == Form::kKernel) return "";
  if (!past.retains) return "the model retains no updates (retention.updates is 0)";
  if (!past.adopted.has_value())
    return "it has adopted weights, and at which revision was not yet recorded then";
  return "";
}

}  // namespace

void ExplainByMistakes(const PastOfModel& past, const Row& row, size_t limit,
                       Explanation& explanation) {
  explanation.mistakes_absent = WhyNot(past);
  if (!explanation.mistakes_absent.empty()) return;
  if (FindLearner(past.settings).form == Form::kKernel) {
    AddTerms(past, row, explanation);
  } else {
    AddShares(past, row, explanation);
  }
  KeepLargest(limit, explanation);
}

}  // namespace perceptrond
