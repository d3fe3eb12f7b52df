#include "core/journal/snapshot_parts.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace perceptrond {
namespace {

namespace storage = ::perceptron::storage::v1;
using Write = std::function<absl::Status(const storage::Snapshot&)>;

// The tag and length that Protobuf adds to a string or an array.
constexpr size_t kFraming = 16;

// Fills the parts one after the other.
class Cutter {
 public:
  Cutter(size_t part_bytes, const Write& write) : part_bytes_(part_bytes), write_(write) {}

  absl::Status AddHead(const storage::Snapshot& snapshot) {
    part_.set_revision(snapshot.revision());
    if (snapshot.has_time()) *part_.mutable_time() = snapshot.time();
    *part_.mutable_scalars() = snapshot.scalars();
    if (snapshot.has_learning_curve()) *part_.mutable_learning_curve() = snapshot.learning_curve();
    if (snapshot.stored_rows().hash_limit() != 0)
      part_.mutable_stored_rows()->set_hash_limit(snapshot.stored_rows().hash_limit());
    bytes_ = part_.ByteSizeLong();
    return absl::OkStatus();
  }

  // In slices as large as the parts have room for.
  absl::Status AddArray(const storage::StateArray& array) {
    const bool sparse = !array.indices().empty();
    const size_t each = sparse ? sizeof(uint32_t) + sizeof(float) : sizeof(float);
    int at = 0;
    do {
      if (absl::Status status = MakeRoom(2 * kFraming + each); !status.ok()) return status;
      const size_t room = bytes_ < part_bytes_ ? (part_bytes_ - bytes_) / each : 0;
      const int end =
          static_cast<int>(std::min<size_t>(array.values_size(), at + std::max<size_t>(1, room)));
      storage::StateArray& slice = *part_.add_arrays();
      slice.set_size(array.size());
      slice.set_continued(at > 0);
      slice.mutable_values()->Add(array.values().begin() + at, array.values().begin() + end);
      if (sparse)
        slice.mutable_indices()->Add(array.indices().begin() + at, array.indices().begin() + end);
      bytes_ += 2 * kFraming + each * (end - at);
      at = end;
    } while (at < array.values_size());
    return absl::OkStatus();
  }

  absl::Status AddRows(const storage::StateRows& rows) {
    const size_t size = kFraming + rows.ByteSizeLong();
    if (absl::Status status = MakeRoom(size); !status.ok()) return status;
    *part_.add_rows() = rows;
    bytes_ += size;
    return absl::OkStatus();
  }

  // `get` returns the part's.
  absl::Status AddFrequencies(const storage::DocumentFrequencies& all,
                              storage::DocumentFrequencies* (storage::Snapshot::*get)()) {
    // A slot and its count take two varints.
    constexpr size_t kEach = 10;
    int at = 0;
    do {
      if (absl::Status status = MakeRoom(3 * kFraming + kEach); !status.ok()) return status;
      const size_t room = bytes_ < part_bytes_ ? (part_bytes_ - bytes_) / kEach : 0;
      const int end =
          static_cast<int>(std::min<size_t>(all.counts_size(), at + std::max<size_t>(1, room)));
      storage::DocumentFrequencies& slice = *(part_.*get)();
      slice.set_documents(all.documents());
      slice.mutable_counts()->Add(all.counts().begin() + at, all.counts().begin() + end);
      slice.mutable_slot_distances()->Add(all.slot_distances().begin() + at,
                                          all.slot_distances().begin() + end);
      bytes_ += 3 * kFraming + kEach * (end - at);
      at = end;
    } while (at < all.counts_size());
    return absl::OkStatus();
  }

  absl::Status AddName(const std::string& name) {
    if (absl::Status status = MakeRoom(kFraming + name.size()); !status.ok()) return status;
    part_.add_names(name);
    bytes_ += kFraming + name.size();
    return absl::OkStatus();
  }

  absl::Status AddClassName(const std::string& name) {
    if (absl::Status status = MakeRoom(kFraming + name.size()); !status.ok()) return status;
    part_.add_class_names(name);
    bytes_ += kFraming + name.size();
    return absl::OkStatus();
  }

  absl::Status AddStoredRow(const storage::StoredRow& row) {
    const size_t bytes = kFraming + row.ByteSizeLong();
    if (absl::Status status = MakeRoom(bytes); !status.ok()) return status;
    *part_.mutable_stored_rows()->add_rows() = row;
    bytes_ += bytes;
    return absl::OkStatus();
  }

  absl::Status Finish() { return write_(part_); }

 private:
  // Begins a new part if this one is not empty and has no room for `bytes`.
  absl::Status MakeRoom(size_t bytes) {
    if (bytes_ == 0 || bytes_ + bytes <= part_bytes_) return absl::OkStatus();
    absl::Status status = write_(part_);
    part_.Clear();
    bytes_ = 0;
    return status;
  }

  const size_t part_bytes_;
  const Write& write_;
  storage::Snapshot part_;
  // The size of the part, or a little more.
  size_t bytes_ = 0;
};

// Appends the elements themselves: millions of small ones, copied, would be there twice.
template <typename Element>
void MoveAll(google::protobuf::RepeatedPtrField<Element>& from,
             google::protobuf::RepeatedPtrField<Element>& to) {
  if (to.empty()) return to.Swap(&from);
  std::vector<Element*> elements(from.size());
  from.ExtractSubrange(0, from.size(), elements.data());
  to.Reserve(to.size() + static_cast<int>(elements.size()));
  for (Element* const element : elements) to.AddAllocated(element);
}

}  // namespace

absl::Status ForEachPart(const storage::Snapshot& snapshot, size_t part_bytes, const Write& write) {
  if (snapshot.ByteSizeLong() <= part_bytes) return write(snapshot);
  Cutter cutter(part_bytes, write);
  absl::Status status = cutter.AddHead(snapshot);
  for (int i = 0; status.ok() && i < snapshot.arrays_size(); ++i)
    status = cutter.AddArray(snapshot.arrays(i));
  for (int i = 0; status.ok() && i < snapshot.rows_size(); ++i)
    status = cutter.AddRows(snapshot.rows(i));
  for (int i = 0; status.ok() && i < snapshot.names_size(); ++i)
    status = cutter.AddName(snapshot.names(i));
  for (int i = 0; status.ok() && i < snapshot.class_names_size(); ++i)
    status = cutter.AddClassName(snapshot.class_names(i));
  if (status.ok() && snapshot.has_document_frequencies())
    status = cutter.AddFrequencies(snapshot.document_frequencies(),
                                   &storage::Snapshot::mutable_document_frequencies);
  if (status.ok() && snapshot.has_document_counts())
    status = cutter.AddFrequencies(snapshot.document_counts(),
                                   &storage::Snapshot::mutable_document_counts);
  for (int i = 0; status.ok() && i < snapshot.stored_rows().rows_size(); ++i)
    status = cutter.AddStoredRow(snapshot.stored_rows().rows(i));
  return status.ok() ? cutter.Finish() : status;
}

absl::Status AppendPart(storage::Snapshot part, storage::Snapshot& whole) {
  storage::StateArray* last =
      whole.arrays().empty() ? nullptr : whole.mutable_arrays(whole.arrays_size() - 1);
  for (storage::StateArray& array : *part.mutable_arrays()) {
    if (!array.continued()) {
      last = whole.add_arrays();
      *last = std::move(array);
      continue;
    }
    // An array holds all values, or indices and values; its slices do the same.
    if (last == nullptr || array.size() != last->size() ||
        array.indices().empty() != last->indices().empty())
      return absl::DataLossError("journal: a snapshot's parts do not fit together");
    last->mutable_indices()->MergeFrom(array.indices());
    last->mutable_values()->MergeFrom(array.values());
  }
  part.clear_arrays();
  MoveAll(*part.mutable_rows(), *whole.mutable_rows());
  MoveAll(*part.mutable_names(), *whole.mutable_names());
  MoveAll(*part.mutable_class_names(), *whole.mutable_class_names());
  if (part.has_stored_rows()) {
    MoveAll(*part.mutable_stored_rows()->mutable_rows(),
            *whole.mutable_stored_rows()->mutable_rows());
  }
  whole.MergeFrom(part);
  return absl::OkStatus();
}

}  // namespace perceptrond
