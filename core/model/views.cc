#include "core/model/views.h"

#include <algorithm>

namespace perceptrond {
namespace {

// Stored examples up to this size do not delay snapshots.
constexpr size_t kSmallStore = StoredExamples::kMaxUpdateBytes;

ReportContext ContextOf(const ModelReader& reader) {
  return {reader.state().learner->augmented_squared_norm(), reader.state().margin_of_interest,
          reader.components()};
}

WeightList ToList(const ModelReader& reader, const Hypothesis& hypothesis) {
  WeightList list;
  const FloatArray& weights = hypothesis.weights;
  for (uint32_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    list.values.push_back(weights[i]);
    if (reader.core().has_names()) {
      list.names.push_back(reader.state().names.Name(i));
    } else {
      list.indices.push_back(i);
    }
  }
  list.bias = hypothesis.bias;
  list.revision = reader.revision();
  return list;
}

}  // namespace

ConvergenceReport MakeReport(const ModelReader& reader) {
  return reader.ledger().MakeReport(ContextOf(reader));
}

LearningCurve MakeLearningCurve(const ModelReader& reader) {
  return reader.ledger().MakeLearningCurve(ContextOf(reader));
}

std::vector<WeightList> ListWeights(const ModelReader& reader) {
  std::vector<WeightList> lists;
  const Predictor& predictor = reader.state().learner->predictor();
  for (size_t k = 0; k < predictor.scores(); ++k)
    lists.push_back(ToList(reader, predictor.MakeHypothesis(k, reader.core().Age())));
  return lists;
}

std::vector<std::string> LabelNames(const ModelReader& reader) {
  if (!reader.settings().is_multiclass()) return reader.settings().label_names;
  const Dictionary& class_names = reader.state().class_names;
  std::vector<std::string> names;
  for (uint32_t number = 1; number <= class_names.size(); ++number)
    names.push_back(class_names.Name(number));
  return names;
}

std::vector<std::string> FeatureNames(const ModelReader& reader,
                                      std::span<const uint32_t> numbers) {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  for (const uint32_t number : numbers) names.push_back(reader.state().names.Name(number));
  return names;
}

FeatureNumbers FindFeatures(const ModelReader& reader, std::span<const absl::string_view> names) {
  const Dictionary& dictionary = reader.state().names;
  FeatureNumbers found;
  found.numbers.reserve(names.size());
  for (const absl::string_view name : names) found.numbers.push_back(dictionary.Find(name));
  found.next = dictionary.size() + 1;
  return found;
}

StoredExamplesView CopyStoredExamples(const ModelReader& reader) {
  Ledger& ledger = reader.ledger();
  // Read before the copy: a change in between ends the claim by itself.
  const bool unchanged = ledger.examples() == 0 || ledger.components() == reader.components();
  StoredExamplesView view{ledger.stored_examples().Copy(), reader.revision()};
  view.examples.complete = view.examples.complete && unchanged;
  return view;
}

bool HasProbabilities(const ModelReader& reader) {
  return reader.state().learner->probabilistic() != nullptr;
}

size_t CountWeights(const ModelReader& reader) {
  const Learner& learner = *reader.state().learner;
  return learner.size() * std::max<size_t>(learner.predictor().scores(), 1);
}

ModelMemory MeasureMemory(const ModelCore& core) {
  const Guarded<ModelState>::Reader state(core.state);
  const size_t stored = core.ledger.stored_examples().statistics().memory_bytes;
  ModelMemory memory;
  memory.state =
      state->names.bytes() + state->class_names.bytes() + stored - std::min(stored, kSmallStore);
  const LearnerStateView view = state->learner->State();
  for (const std::span<const float> array : view.arrays) memory.state += array.size_bytes();
  if (view.rows != nullptr) memory.state += view.rows->memory_bytes();
  memory.total = sizeof(Model) + sizeof(ModelCore) + memory.state + std::min(stored, kSmallStore) +
                 core.ledger.memory_bytes();
  return memory;
}

}  // namespace perceptrond
