#include "core/model/explain_mistakes.h"

#include <algorithm>
#include <cmath>

#include "absl/container/flat_hash_map.h"

namespace perceptrond {
namespace {

using Values = absl::flat_hash_map<uint32_t, double>;

double Dot(const Row& past, const Values& values) {
  double sum = 0;
  for (size_t i = 0; i < past.size; ++i) {
    const auto value = values.find(past.index(i));
    if (value != values.end()) sum += value->second * static_cast<double>(past.value(i));
  }
  return sum;
}

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

}  // namespace

bool IsSumOfMistakes(const LearnerSettings& settings) {
  return settings.kind == LearnerKind::kPerceptron && settings.start.all_zero();
}

void ExplainByMistakes(const LearnerSettings& settings, std::span<const RetainedUpdate> updates,
                       uint64_t revision, const Row& row, size_t limit, Explanation& explanation) {
  Values values;
  for (size_t i = 0; i < row.size; ++i) values[row.index(i)] += static_cast<double>(row.value(i));
  const double squared_offset = settings.offset_value * settings.offset_value;
  for (const RetainedUpdate& update : updates) {
    if (update.revision > revision) break;
    PastMistake mistake;
    mistake.revision = update.revision;
    mistake.label = update.row->label;
    mistake.similarity = Dot(update.row->row(), values) + squared_offset;
    mistake.contribution = settings.step_size * update.weight *
                           settings.class_weight(mistake.label) * mistake.label *
                           mistake.similarity;
    explanation.mistakes.push_back(mistake);
  }
  // An adopted separator is a revision, and no update.
  explanation.mistakes_complete = explanation.mistakes.size() == revision;
  KeepLargest(limit, explanation);
}

}  // namespace perceptrond
