// Any bytes as what a journal holds: a model loads and is sound, or the load says DATA_LOSS. The
// first byte chooses the feature space and what the rest is.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "core/journal/memory_journal.h"
#include "core/model/model.h"

namespace {

namespace storage = ::perceptron::storage::v1;

storage::ModelHeader Header(uint8_t choice) {
  storage::ModelHeader header;
  header.mutable_model()->set_name("models/m");
  perceptron::v1::FeatureSpace& space = *header.mutable_model()->mutable_feature_space();
  if (choice % 3 == 0) space.mutable_dense()->set_dimension(4);
  if (choice % 3 == 1) space.mutable_hashed()->set_bits(3);
  if (choice % 3 == 2) space.mutable_named()->set_max_features(4);
  perceptrond::FillDefaults(*header.mutable_model());
  return header;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  storage::ModelHeader header = Header(data[0]);
  perceptrond::MemoryJournal journal;
  if (!journal.Create(header).ok()) std::abort();
  perceptrond::JournalEntry entry;
  entry.model_id = header.id();
  const int bytes = static_cast<int>(size) - 1;
  if ((data[0] & 0x80) != 0) {
    storage::Snapshot snapshot;
    if (!snapshot.ParseFromArray(data + 1, bytes)) return 0;
    if (!journal.SaveSnapshot(header.id(), snapshot).ok()) std::abort();
    entry.counters.set_updates(snapshot.revision());
  } else {
    storage::UpdateRecord record;
    if (!record.ParseFromArray(data + 1, bytes) || record.labels_size() == 0) return 0;
    entry.counters.set_updates(record.labels_size());
    entry.records.push_back(std::move(record));
  }
  if (!journal.Commit({&entry, 1}, true).ok()) std::abort();
  const auto model = perceptrond::Model::Load(header, journal, {});
  if (!model.ok()) {
    if (model.status().code() != absl::StatusCode::kDataLoss) std::abort();
    return 0;
  }
  if ((*model)->revision() != entry.counters.updates()) std::abort();
  (void)(*model)->MakeView();
  return 0;
}
