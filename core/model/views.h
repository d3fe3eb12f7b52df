// What can be seen of a model: report, learning curve, weights, names, stored examples, sizes. Each
// view but FindTopWeights is read through a ModelReader, the guard that holds the state while it is
// read; the overload for a Model makes one for the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/convergence/progress.h"
#include "core/journal/journal.h"
#include "core/ledger/ledger.h"
#include "core/ledger/stored_examples.h"
#include "core/model/model.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {

// Holds the state's lock shared: what is read through one reader is of one revision. A thread has
// at most one reader of a model at a time, or it may wait for itself.
// Example:
//   const ModelReader reader(*model);
//   Show(MakeReport(reader), ListWeights(reader));  // of the same revision
// A view alone, as in MakeReport(*model), holds the lock only inside of the call.
//
// Of a composition its components are asked first, without a lock of this model. Claims that hold
// only while the components are unchanged are absent from reports if a component was not asked.
class ModelReader {
 public:
  explicit ModelReader(const Model& model, ComponentAccess access = ComponentAccess::kLoad)
      : core_(model.core()),
        components_(access == ComponentAccess::kNone ? std::nullopt
                                                     : model.ComponentsFingerprint(access)),
        state_(model.core().state) {}

  const ModelState& state() const { return *state_; }
  const ModelCore& core() const { return core_; }
  const ModelSettings& settings() const { return core_.settings; }
  Ledger& ledger() const { return core_.ledger; }
  uint64_t revision() const { return state_->revision; }
  // Of a composition, and if all components could be asked: their fingerprint.
  std::optional<StateFingerprint> components() const { return components_; }

 private:
  const ModelCore& core_;
  const std::optional<StateFingerprint> components_;
  const Guarded<ModelState>::Reader state_;
};

ConvergenceReport MakeReport(const ModelReader& reader);
inline ConvergenceReport MakeReport(const Model& model,
                                    ComponentAccess access = ComponentAccess::kLoad) {
  return MakeReport(ModelReader(model, access));
}
LearningCurve MakeLearningCurve(const ModelReader& reader);
inline LearningCurve MakeLearningCurve(const Model& model,
                                       ComponentAccess access = ComponentAccess::kLoad) {
  return MakeLearningCurve(ModelReader(model, access));
}

// Weights that are not 0.
struct WeightList {
  // One of these a weight: its index, or in a named space its name.
  std::vector<uint32_t> indices;
  std::vector<std::string> names;
  std::vector<float> values;
  // The constant in the score.
  double bias = 0;
  uint64_t revision = 0;
};

// All weights that the model predicts with: one list for two labels, one a class, by number, for
// several. No list if it does not predict with weights (Learner::feature_weights). Asks KeepGoing
// (core/sync/cancellation.h): once that returned false, weights are missing. O(weights).
std::vector<WeightList> ListWeights(const ModelReader& reader);
inline std::vector<WeightList> ListWeights(const Model& model) {
  return ListWeights(ModelReader(model, ComponentAccess::kNone));
}

// The `limit` weights of largest magnitude that the model predicts with, largest first; of equal
// ones that of the lower index first.
struct TopWeights {
  // One list, or for several classes one a class, by number: empty for a class without an example.
  // No list if the model does not predict with weights (Learner::feature_weights).
  std::vector<WeightList> lists;
  // The weights may be of several revisions: from that of the first list to this one.
  uint64_t last_revision = 0;
};
// Reads some weights at a time, so that an update waits for at most some 0.2 ms: the only view that
// takes no reader. Asks KeepGoing as ListWeights. O(weights); takes memory for `limit` weights a
// class.
TopWeights FindTopWeights(const Model& model, size_t limit);

// The names of +1 and -1, or of the classes there are now.
std::vector<std::string> LabelNames(const ModelReader& reader);
inline std::vector<std::string> LabelNames(const Model& model) {
  return LabelNames(ModelReader(model, ComponentAccess::kNone));
}
// The names of features, by the numbers they have in a named space. O(numbers).
std::vector<std::string> FeatureNames(const ModelReader& reader, std::span<const uint32_t> numbers);
inline std::vector<std::string> FeatureNames(const Model& model,
                                             std::span<const uint32_t> numbers) {
  return FeatureNames(ModelReader(model, ComponentAccess::kNone), numbers);
}
struct FeatureNumbers {
  // 0 for names without a weight.
  std::vector<uint32_t> numbers;
  // The number that the next new name gets.
  uint32_t next = 0;
};
FeatureNumbers FindFeatures(const ModelReader& reader, std::span<const absl::string_view> names);
inline FeatureNumbers FindFeatures(const Model& model, std::span<const absl::string_view> names) {
  return FindFeatures(ModelReader(model, ComponentAccess::kNone), names);
}

// The stored examples and the revision they belong to. A composition's sample is complete only
// while its components would compute what they computed then. Delays updates, but not evaluation,
// by some 20 ns an example.
struct StoredExamplesView {
  StoredExamplesCopy examples;
  uint64_t revision = 0;
};
StoredExamplesView CopyStoredExamples(const ModelReader& reader);
inline StoredExamplesView CopyStoredExamples(const Model& model,
                                             ComponentAccess access = ComponentAccess::kLoad) {
  return CopyStoredExamples(ModelReader(model, access));
}

// The learner computes probabilities.
bool HasProbabilities(const ModelReader& reader);
inline bool HasProbabilities(const Model& model) {
  return HasProbabilities(ModelReader(model, ComponentAccess::kNone));
}
// Where a page of weights begins: a vector, and an index in it.
struct WeightPosition {
  size_t vector = 0;
  size_t index = 0;
};
struct WeightPage {
  // Of consecutive vectors, the first from where the page begins.
  std::vector<WeightList> lists;
  // Of ListTermPage: what each list is the vector of. Their rows are not valid.
  std::vector<ScoreTerm> terms;
  // The vectors of the model.
  size_t vectors = 0;
  // Where the next page begins; absent: there is none.
  std::optional<WeightPosition> next;
};
// The lists of ListWeights from a position on: at most `limit` weights, and about `max_bytes`, of
// as many indices as are looked at in some 10 ms. O(indices looked at).
WeightPage ListWeightPage(const ModelReader& reader, WeightPosition from, size_t limit,
                          size_t max_bytes);
// The same for the vectors of all terms (Predictor::Terms), which every model has.
WeightPage ListTermPage(const ModelReader& reader, WeightPosition from, size_t limit,
                        size_t max_bytes);

// How many weights the model predicts with, of all classes together. O(1).
size_t CountWeights(const ModelReader& reader);
inline size_t CountWeights(const Model& model) {
  return CountWeights(ModelReader(model, ComponentAccess::kNone));
}

// Memory, approximate.
struct ModelMemory {
  // Everything.
  size_t total = 0;
  // Weights, names, and what the stored examples take beyond 64 MiB: what a snapshot writes.
  size_t state = 0;
};
ModelMemory MeasureMemory(const ModelReader& reader);
inline ModelMemory MeasureMemory(const Model& model) {
  return MeasureMemory(ModelReader(model, ComponentAccess::kNone));
}

struct ModelSummary {
  uint64_t id = 0;
  // Settings and state. Report, revision and weights are not set.
  ::perceptron::v1::Model settings;
  ConvergenceReport report;
  uint64_t revision = 0;
  // ModelCore::epoch of that state; 0 unless it is in memory.
  int64_t epoch = 0;
  // Absent: not in memory, and so not known.
  std::optional<JournalUse> journal;
  // Of a list alone: O(classes).
  size_t memory_bytes = 0;
  // Absent: not in memory, and so not known.
  std::optional<StoredExamplesStatistics> stored_examples;
  // False: the report is of the journal's counters; its norm, what depends on it and the window of drift are
  // absent, and of a composition the state.
  bool in_memory = false;
  // When report and revision were so, where another server of a fleet writes the model.
  std::optional<absl::Time> stale_since;
  // Model.expire_time; absent without Model.expire_after.
  std::optional<absl::Time> expire_time;
};

// The summary of a model in memory, with its ListedSettings and without an expire_time. Reads no journal.
ModelSummary Summarize(const Model& model, ComponentAccess access);
// The summary of `header`, from the model in memory, or from the journal's counters if `loaded` is
// null or another model of that name. Errors of the journal.
absl::StatusOr<ModelSummary> Summarize(const storage::ModelHeader& header,
                                       const std::shared_ptr<const Model>& loaded, Journal& journal,
                                       ComponentAccess access);
// The same for lists: with ListedSettings, and asks only components in memory.
absl::StatusOr<ModelSummary> SummarizeForList(const storage::ModelHeader& header,
                                              const std::shared_ptr<const Model>& loaded,
                                              Journal& journal);

}  // namespace perceptrond
