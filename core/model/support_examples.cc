#include "core/model/support_examples.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "core/learner/catalogue.h"

namespace perceptrond {
namespace {

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

void KeepLargest(size_t limit, Explanation& explanation) {
  std::vector<SupportContribution>& all = explanation.support;
  std::stable_sort(all.begin(), all.end(),
                   [](const SupportContribution& a, const SupportContribution& b) {
                     return std::abs(a.contribution) > std::abs(b.contribution);
                   });
  if (all.size() <= limit) return;
  for (size_t i = limit; i < all.size(); ++i) explanation.other_support += all[i].contribution;
  explanation.other_support_count = static_cast<uint32_t>(all.size() - limit);
  all.resize(limit);
}

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

std::optional<double> DualCoefficient(const SupportContext& context, const StoredUpdate& update) {
  const int32_t label = update.row->label;
  const double weight = update.weight * context.settings.class_weight(label);
  return context.learner.explainable()->DualCoefficient(
      {update.row->row(), {label, weight, update.age.value_or(0)}, update.score}, context.age);
}

// The contribution of the starting weights.
double OfStart(const LearnerSettings& settings, const Products& products) {
  const StartingWeights& start = settings.start;
  double sum = 0;
  for (size_t i = 0; i < start.indices.size(); ++i)
    sum += products.Of(start.indices[i], static_cast<double>(start.values[i]));
  return settings.bias_input == 0 ? sum : sum + start.bias;
}

// Adds the contribution of the weights that the support examples were added to.
void AddStart(const SupportContext& context, const Products& products, Explanation& explanation) {
  explanation.start_revision = context.replaced;
  if (context.replaced == 0) {
    if (!context.settings.start.all_zero())
      explanation.start_contribution = OfStart(context.settings, products);
    return;
  }
  // These weights are not stored by themselves: they are the score without all support examples.
  if (!explanation.support_complete) return;
  double sum = 0;
  for (const SupportContribution& example : explanation.support) sum += example.contribution;
  explanation.start_contribution = explanation.score - sum;
}

void AddKernelSupport(const SupportContext& context, const Row& row, Explanation& explanation) {
  for (const SupportExample& example : context.learner.explainable()->SupportExamples(row)) {
    explanation.support.push_back({context.revision - example.updates_since, example.label,
                                   example.kernel, example.dual_coefficient,
                                   example.dual_coefficient * example.kernel});
  }
  explanation.support_complete = true;
}

void AddLinearSupport(const SupportContext& context, const Row& row, Explanation& explanation) {
  const uint64_t origin = context.replaced;
  const std::span<const StoredUpdate> updates = Since(context, origin);
  const Products products(row, context.settings.bias_input);
  for (const StoredUpdate& update : updates) {
    const std::optional<double> coefficient = DualCoefficient(context, update);
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
  AddStart(context, products, explanation);
}

// Why no support examples can be named; empty: they can.
std::string WhyAbsent(const SupportContext& context) {
  const CatalogueEntry& rule = FindLearner(context.settings);
  if (!rule.no_dual.empty()) return std::string(rule.no_dual);
  if (context.settings.is_multiclass())
    return "which class an update took its example from is not stored";
  if (rule.form == Form::kKernel) return "";
  if (!context.stores_updates)
    return "the model stores no updates (stored_examples.max_updates is 0)";
  return "";
}

}  // namespace

void ExplainBySupport(const SupportContext& context, const Row& row, size_t limit,
                      Explanation& explanation) {
  explanation.support_absent = WhyAbsent(context);
  if (!explanation.support_absent.empty()) return;
  if (FindLearner(context.settings).form == Form::kKernel) {
    AddKernelSupport(context, row, explanation);
  } else {
    AddLinearSupport(context, row, explanation);
  }
  KeepLargest(limit, explanation);
}

}  // namespace perceptrond
