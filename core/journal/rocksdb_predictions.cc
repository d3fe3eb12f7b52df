// The RocksDB journal: predictions that wait for their labels. A value is the nonce and the example.
#include <rocksdb/db.h>
#include <rocksdb/write_batch.h>

#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"

namespace perceptrond {

absl::Status RocksDbJournal::SavePredictions(uint64_t model_id,
                                             std::span<const KeptPrediction> predictions) {
  rocksdb::WriteBatch batch;
  for (const KeptPrediction& prediction : predictions) {
    batch.Put(keys::KeptPrediction(model_id, prediction.number),
              keys::Number(prediction.nonce) + prediction.example);
  }
  return predictions.empty() ? absl::OkStatus() : Write(batch, Through::kLog);
}

absl::Status RocksDbJournal::DropPredictions(uint64_t model_id, std::span<const uint64_t> numbers) {
  rocksdb::WriteBatch batch;
  for (const uint64_t number : numbers) batch.Delete(keys::KeptPrediction(model_id, number));
  return numbers.empty() ? absl::OkStatus() : Write(batch, Through::kLog);
}

absl::StatusOr<std::vector<KeptPrediction>> RocksDbJournal::LoadPredictions(uint64_t model_id) {
  const std::string prefix = keys::OfModel('w', model_id);
  const std::string end = keys::EndOf(prefix);
  const rocksdb::Slice upper(end);
  rocksdb::ReadOptions options;
  options.iterate_upper_bound = &upper;
  options.fill_cache = false;
  std::vector<KeptPrediction> predictions;
  const std::shared_ptr<rocksdb::DB> db = this->db();
  const std::unique_ptr<rocksdb::Iterator> it(db->NewIterator(options));
  for (it->Seek(prefix); it->Valid(); it->Next()) {
    const std::string_view key = it->key().ToStringView();
    const std::string_view value = it->value().ToStringView();
    constexpr size_t kNumber = sizeof(uint64_t);
    if (key.size() != prefix.size() + kNumber || value.size() < kNumber)
      return absl::DataLossError("journal: a kept prediction does not parse");
    const std::string_view number = key.substr(prefix.size());
    predictions.push_back({keys::ReadNumber({number.data(), number.size()}),
                           keys::ReadNumber({value.data(), kNumber}),
                           std::string(value.substr(kNumber))});
  }
  if (!it->status().ok()) return ToAbsl(it->status());
  return predictions;
}

}  // namespace perceptrond
