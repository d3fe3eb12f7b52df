#include "core/features/document_frequencies.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/vector/arithmetic.h"

namespace perceptrond {
namespace {

float Inverse(uint64_t documents, uint64_t with_slot) {
  const double ratio = (1 + static_cast<double>(documents)) / (1 + static_cast<double>(with_slot));
  return static_cast<float>(DeterministicLog(ratio) + 1);
}

}  // namespace

InverseDocumentFrequencies::InverseDocumentFrequencies(uint32_t slots, DocumentCounts counts)
    : counts_(std::move(counts)), values_(slots, 1.0F) {
  for (size_t i = 0; i < counts_.slots.size(); ++i)
    values_[counts_.slots[i]] = Inverse(counts_.documents, counts_.counts[i]);
}

size_t InverseDocumentFrequencies::memory_bytes() const {
  return values_.size() * sizeof(float) + counts_.slots.size() * 2 * sizeof(uint32_t);
}

DocumentCounter::DocumentCounter(uint32_t slots)
    : slots_(slots), counts_(std::make_unique<std::atomic<uint32_t>[]>(slots)) {}

void DocumentCounter::Add(std::span<const uint32_t> slots) {
  documents_.fetch_add(1, std::memory_order_relaxed);
  for (const uint32_t slot : slots) counts_[slot].fetch_add(1, std::memory_order_relaxed);
}

uint64_t DocumentCounter::UntilDue() const {
  const uint64_t due = due_.load(std::memory_order_relaxed);
  return due - std::min(due, documents_.load(std::memory_order_relaxed));
}

DocumentCounts DocumentCounter::Copy() const {
  DocumentCounts copy;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const uint32_t count = counts_[slot].load(std::memory_order_relaxed);
    if (count == 0) continue;
    copy.slots.push_back(slot);
    copy.counts.push_back(count);
  }
  copy.documents = documents_.load(std::memory_order_relaxed);
  // Documents that were added meanwhile may be in the counts and not in their number.
  for (uint32_t& count : copy.counts)
    count = static_cast<uint32_t>(std::min<uint64_t>(count, copy.documents));
  if (copy.documents == 0) return {};
  return copy;
}

void DocumentCounter::Restore(const DocumentCounts& counts, uint64_t in_force) {
  for (uint32_t slot = 0; slot < slots_; ++slot) counts_[slot].store(0, std::memory_order_relaxed);
  for (size_t i = 0; i < counts.slots.size(); ++i)
    counts_[counts.slots[i]].store(counts.counts[i], std::memory_order_relaxed);
  documents_.store(counts.documents, std::memory_order_relaxed);
  SetInForce(in_force);
}

void DocumentCounter::SetInForce(uint64_t in_force) {
  due_.store(std::max(kFirstDue, 2 * in_force), std::memory_order_relaxed);
}

double ScaleText(const Row& row, const InverseDocumentFrequencies* frequencies, bool keep_norm,
                 float* scaled) {
  double squared = 0;
  for (size_t i = 0; i < row.size; ++i) {
    const float weight = frequencies == nullptr ? 1.0F : frequencies->of(row.index(i));
    scaled[i] = row.value(i) * weight;
    squared += static_cast<double>(scaled[i]) * static_cast<double>(scaled[i]);
  }
  if (keep_norm || squared == 0) return 1;
  const double norm = std::sqrt(squared);
  for (size_t i = 0; i < row.size; ++i)
    scaled[i] = static_cast<float>(static_cast<double>(scaled[i]) / norm);
  return norm;
}

void ScaleTexts(const Batch& batch, const InverseDocumentFrequencies* frequencies, bool keep_norm,
                std::vector<float>& scaled) {
  scaled.resize(batch.values.size());
  for (size_t i = 0; i < batch.rows(); ++i)
    ScaleText(batch.row(i), frequencies, keep_norm, scaled.data() + batch.row_begin(i));
}

}  // namespace perceptrond
