// Inverse document frequencies of a text space: a slot weighs more the fewer texts have it (Sparck
// Jones, A statistical interpretation of term specificity, 1972). Smoothed as scikit-learn's
// TfidfTransformer does: ln((1 + n) / (1 + df)) + 1 for a slot that df of n texts have. 1 for a slot
// that none has: there TfidfVectorizer leaves the n-gram out, which a stream must be able to learn, and
// the greatest frequency would let what is unknown dominate the norm.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/vector/row.h"

namespace perceptrond {

// A plain value.
struct DocumentCounts {
  uint64_t documents = 0;
  // The slots that some document has, strictly ascending, and how many documents have each: 1 to
  // `documents`.
  std::vector<uint32_t> slots;
  std::vector<uint32_t> counts;
};

// The frequencies that are in force. Immutable. Any thread.
class InverseDocumentFrequencies {
 public:
  // `slots`: of the space; those of `counts` are below it. O(slots).
  InverseDocumentFrequencies(uint32_t slots, DocumentCounts counts);

  // The same to the bit on every machine.
  float of(uint32_t slot) const { return values_[slot]; }
  const DocumentCounts& counts() const { return counts_; }
  size_t memory_bytes() const;

 private:
  const DocumentCounts counts_;
  std::vector<float> values_;
};

// Counts the documents of a model. Thread contract: any number of threads may Add and Copy; Restore
// excludes everything.
class DocumentCounter {
 public:
  // From here on the count must double before it is due again.
  static constexpr uint64_t kFirstDue = 64;

  explicit DocumentCounter(uint32_t slots);

  // Counts a document with these slots, none twice.
  void Add(std::span<const uint32_t> slots);
  // Documents until the counts are to come into force; 0: now. O(1).
  uint64_t UntilDue() const;
  // Exact if no other thread adds meanwhile. O(slots).
  DocumentCounts Copy() const;
  // Continues from `counts`, where those of `in_force` documents are in force (0: none).
  void Restore(const DocumentCounts& counts, uint64_t in_force);
  // The counts of `in_force` documents have come into force.
  void SetInForce(uint64_t in_force);
  size_t memory_bytes() const { return slots_ * sizeof(std::atomic<uint32_t>); }

 private:
  const uint32_t slots_;
  std::unique_ptr<std::atomic<uint32_t>[]> counts_;
  std::atomic<uint64_t> documents_ = 0;
  std::atomic<uint64_t> due_ = kFirstDue;
};

// Multiplies a text's values by the frequencies of their slots (null: by 1) and divides them by their
// l2 norm, unless `keep_norm` or it is 0. Returns what they were divided by. `scaled` has row.size
// values and may be the row's own.
double ScaleText(const Row& row, const InverseDocumentFrequencies* frequencies, bool keep_norm,
                 float* scaled);
// Scales the rows of a batch: `scaled` becomes what its values are then.
void ScaleTexts(const Batch& batch, const InverseDocumentFrequencies* frequencies, bool keep_norm,
                std::vector<float>& scaled);

}  // namespace perceptrond
