#include "core/ledger/stored_examples.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/features/names.h"

namespace perceptrond {
namespace {

// Reads the names of a row's features in order: those without a weight from `unknown`, the others
// by their numbers.
class NameReader {
 public:
  NameReader(const SeenExample& seen, const Dictionary& names) : seen_(seen), names_(names) {}
  absl::string_view Next() {
    const uint32_t number = seen_.row.index(next_++);
    return number == Dictionary::kUnknown ? seen_.unknown[unknown_++] : names_.Name(number);
  }

 private:
  const SeenExample& seen_;
  const Dictionary& names_;
  size_t next_ = 0;
  size_t unknown_ = 0;
};

// A model's dictionary has names iff its features have them; a row of unknown names brings them.
bool IsNamed(const SeenExample& seen, const Dictionary& names) {
  return names.size() > 0 || !seen.unknown.empty();
}

// A feature by name, with the bits of its value.
using NamedFeature = std::pair<absl::string_view, uint32_t>;

std::vector<NamedFeature> FeaturesByName(const SeenExample& seen, const Dictionary& names) {
  std::vector<NamedFeature> features;
  features.reserve(seen.row.size);
  NameReader reader(seen, names);
  for (size_t i = 0; i < seen.row.size; ++i)
    features.emplace_back(reader.Next(), std::bit_cast<uint32_t>(seen.row.value(i)));
  return features;
}

// A sum over features, whose order does not count.
uint64_t HashNamed(const SeenExample& seen, const Dictionary& names, uint64_t label) {
  uint64_t sum = 0;
  for (const auto& [name, value] : FeaturesByName(seen, names))
    sum += HashBytes(name.data(), name.size(), value);
  return HashBytes(&sum, sizeof(sum), label);
}

bool SameNamed(const SeenExample& a, const SeenExample& b, const Dictionary& names) {
  std::vector<NamedFeature> of_a = FeaturesByName(a, names);
  std::vector<NamedFeature> of_b = FeaturesByName(b, names);
  if (of_a == of_b) return true;
  std::sort(of_a.begin(), of_a.end());
  std::sort(of_b.begin(), of_b.end());
  return of_a == of_b;
}

bool SameIndices(const Row& a, const Row& b) {
  if ((a.indices == nullptr) != (b.indices == nullptr)) return false;
  return a.indices == nullptr || std::equal(a.indices, a.indices + a.size, b.indices);
}

// To the bit: each time an example comes again, all of it is compared.
bool SameValues(const Row& a, const Row& b) {
  if (a.size == 0) return true;
  if (a.values != nullptr && b.values != nullptr)
    return std::memcmp(a.values, b.values, a.size * sizeof(float)) == 0;
  for (size_t i = 0; i < a.size; ++i) {
    if (std::bit_cast<uint32_t>(a.value(i)) != std::bit_cast<uint32_t>(b.value(i))) return false;
  }
  return true;
}

}  // namespace

StoredRow::StoredRow(const SeenExample& seen)
    : dense(seen.row.indices == nullptr),
      label(seen.label),
      unknown(seen.unknown.begin(), seen.unknown.end()) {
  const Row& row = seen.row;
  if (!dense) indices.assign(row.indices, row.indices + row.size);
  if (row.values != nullptr) {
    values.assign(row.values, row.values + row.size);
  } else {
    values.assign(row.size, 1.0F);
  }
}

Row StoredRow::row() const {
  if (dense) return Row{nullptr, values.data(), values.size()};
  return Row{indices.empty() ? kNoIndices : indices.data(), values.data(), values.size()};
}

SeenExample StoredRow::Seen(std::vector<absl::string_view>& names) const {
  names.assign(unknown.begin(), unknown.end());
  return {row(), label, names};
}

size_t StoredRow::memory_bytes() const {
  // The row itself, its shared pointer's control block, and its entry in the store.
  size_t bytes = sizeof(StoredRow) + 64 + indices.capacity() * sizeof(uint32_t) +
                 values.capacity() * sizeof(float) + unknown.capacity() * sizeof(std::string);
  for (const std::string& name : unknown) bytes += name.size();
  return bytes;
}

uint64_t HashOf(const SeenExample& seen, const Dictionary& names) {
  const Row& row = seen.row;
  auto hash = static_cast<uint64_t>(static_cast<int64_t>(seen.label));
  if (row.indices != nullptr && row.size > 0) {
    if (IsNamed(seen, names)) return HashNamed(seen, names, hash);
    hash = HashBytes(row.indices, row.size * sizeof(uint32_t), hash);
  }
  if (row.values != nullptr) return HashBytes(row.values, row.size * sizeof(float), hash);
  const std::vector<float> ones(row.size, 1.0F);
  return HashBytes(ones.data(), ones.size() * sizeof(float), hash);
}

bool SameExample(const SeenExample& a, const SeenExample& b, const Dictionary& names) {
  if (a.label != b.label || a.row.size != b.row.size) return false;
  if (IsNamed(a, names) || IsNamed(b, names)) return SameNamed(a, b, names);
  return SameValues(a.row, b.row) && SameIndices(a.row, b.row);
}

void StoredExamples::Sampler::Offer(const SeenExample& seen, const Dictionary& names,
                                    std::vector<SampledRow>& candidates) {
  // The greatest hash is reserved for "no limit".
  const uint64_t hash = std::min(HashOf(seen, names), kNoLimit - 1);
  if (hash >= stored_.hash_limit_.load(std::memory_order_relaxed)) return;
  if (Holds(hash, seen, names)) return;
  candidates.emplace_back(hash, std::make_shared<const StoredRow>(seen));
}

bool StoredExamples::Sampler::Holds(uint64_t hash, const SeenExample& seen,
                                    const Dictionary& names) {
  if (!std::exchange(locked_, true)) stored_.mutex_.ReaderLock();
  const auto found = stored_.sample_.find(hash);
  if (found == stored_.sample_.end()) return false;
  std::vector<absl::string_view> unknown;
  return SameExample(found->second->Seen(unknown), seen, names);
}

void StoredExamples::Sampler::Release() {
  if (std::exchange(locked_, false)) stored_.mutex_.ReaderUnlock();
}

void StoredExamples::Add(std::span<const SampledRow> candidates, const Dictionary& names) {
  if (candidates.empty()) return;
  MutexLock lock(&mutex_);
  for (const SampledRow& candidate : candidates) AddToSample(candidate, names);
}

void StoredExamples::AddToSample(const SampledRow& candidate, const Dictionary& names) {
  const auto& [hash, row] = candidate;
  if (hash >= hash_limit_.load(std::memory_order_relaxed)) return;
  const auto [entry, added] = sample_.emplace(hash, row);
  if (!added) {
    std::vector<absl::string_view> unknown;
    std::vector<absl::string_view> held;
    if (!SameExample(entry->second->Seen(held), row->Seen(unknown), names)) complete_ = false;
    return;
  }
  const size_t bytes = row->memory_bytes();
  sample_bytes_ += bytes;
  unsaved_bytes_ += bytes;
  DropWhatHasNoRoom();
}

void StoredExamples::DropWhatHasNoRoom() {
  while (sample_.size() > settings_.sample || sample_bytes_ > settings_.sample_bytes)
    DropLargestHash();
}

void StoredExamples::DropLargestHash() {
  const auto last = std::prev(sample_.end());
  hash_limit_.store(last->first, std::memory_order_relaxed);
  sample_bytes_ -= last->second->memory_bytes();
  sample_.erase(last);
  complete_ = false;
}

void StoredExamples::AddUpdate(StoredUpdate update) {
  if (!keeps_updates()) return;
  MutexLock lock(&mutex_);
  updates_bytes_ += update.row->memory_bytes();
  updates_.push_back(std::move(update));
  while (updates_.size() > settings_.updates || updates_bytes_ > settings_.update_bytes) {
    updates_bytes_ -= updates_.front().row->memory_bytes();
    updates_.pop_front();
  }
}

void StoredExamples::MarkIncomplete() {
  MutexLock lock(&mutex_);
  complete_ = false;
}

StoredExamplesStatistics StoredExamples::statistics() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.size(), sample_.size(), complete_, sample_bytes_,
          updates_bytes_ + sample_bytes_};
}

StoredExamplesCopy StoredExamples::Copy() const {
  StoredExamplesCopy copy;
  ReaderMutexLock lock(&mutex_);
  copy.updates.assign(updates_.begin(), updates_.end());
  copy.sample.assign(sample_.begin(), sample_.end());
  copy.complete = complete_;
  copy.hash_limit = hash_limit_.load(std::memory_order_relaxed);
  return copy;
}

std::vector<StoredUpdate> StoredExamples::CopyUpdates() const {
  ReaderMutexLock lock(&mutex_);
  return {updates_.begin(), updates_.end()};
}

size_t StoredExamples::unsaved_bytes() const {
  ReaderMutexLock lock(&mutex_);
  return unsaved_bytes_;
}

void StoredExamples::MarkSaved(size_t bytes) {
  MutexLock lock(&mutex_);
  unsaved_bytes_ -= std::min(bytes, unsaved_bytes_);
}

void StoredExamples::Restore(StoredExamplesCopy examples) {
  {
    MutexLock lock(&mutex_);
    updates_.clear();
    updates_bytes_ = 0;
    sample_.clear();
    sample_bytes_ = 0;
  }
  for (StoredUpdate& update : examples.updates) AddUpdate(std::move(update));
  MutexLock lock(&mutex_);
  hash_limit_.store(examples.hash_limit, std::memory_order_relaxed);
  for (SampledRow& row : examples.sample) {
    // Later rows have larger hashes.
    if (row.first >= hash_limit_.load(std::memory_order_relaxed)) break;
    sample_bytes_ += row.second->memory_bytes();
    sample_.insert(std::move(row));
    DropWhatHasNoRoom();
  }
}

void StoredExamples::DropAll() {
  StoredExamplesCopy none;
  none.hash_limit = kNoLimit;
  Restore(std::move(none));
  MarkIncomplete();
}

void StoredExamples::FinishRecovery(bool complete, uint64_t sampled) {
  MutexLock lock(&mutex_);
  complete_ = complete_ && complete && sample_.size() == sampled;
}

}  // namespace perceptrond
