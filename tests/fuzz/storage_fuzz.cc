// Any bytes as what lies beside the journal's records. As a snapshot: cut into parts of any size and
// put together it is the same. As its parts: they make a snapshot, or DATA_LOSS. As the marker of a
// data directory: an id, or FAILED_PRECONDITION with words. The first byte chooses which; the second
// is the size of a part, or each part follows a byte that says how long it is.
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "core/journal/rocksdb/data_directory.h"
#include "core/journal/snapshot_parts.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/temp_dir.h"

namespace {

namespace storage = ::perceptron::storage::v1;
using perceptrond::AppendPart;
using perceptrond::testing::Check;

bool Parse(std::string_view bytes, storage::Snapshot& snapshot) {
  return snapshot.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// Arrays whose indices and values do not match, or that go on before they began, come from no
// learner.
bool CanBeCut(const storage::Snapshot& snapshot) {
  for (const storage::StateArray& array : snapshot.arrays()) {
    if (array.continued()) return false;
    if (!array.indices().empty() && array.indices_size() != array.values_size()) return false;
  }
  return true;
}

void CheckCut(std::string_view bytes, size_t part_bytes) {
  storage::Snapshot snapshot;
  if (!Parse(bytes, snapshot) || !CanBeCut(snapshot)) return;
  snapshot.DiscardUnknownFields();
  // Present without rows or absent is the same.
  if (snapshot.stored_rows().ByteSizeLong() == 0) snapshot.clear_stored_rows();
  storage::Snapshot whole;
  const absl::Status status =
      perceptrond::ForEachPart(snapshot, part_bytes, [&](const storage::Snapshot& part) {
        storage::Snapshot copy;
        Check(copy.ParseFromString(part.SerializeAsString()));
        return AppendPart(std::move(copy), whole);
      });
  Check(status.ok());
  Check(whole.SerializeAsString() == snapshot.SerializeAsString());
}

void CheckParts(std::string_view bytes) {
  storage::Snapshot whole;
  while (!bytes.empty()) {
    const size_t length = static_cast<uint8_t>(bytes[0]);
    const std::string_view part = bytes.substr(1, length);
    bytes.remove_prefix(1 + part.size());
    storage::Snapshot snapshot;
    if (!Parse(part, snapshot)) return;
    const absl::Status status = AppendPart(std::move(snapshot), whole);
    Check(status.ok() || absl::IsDataLoss(status));
    if (!status.ok()) return;
  }
}

void CheckMarker(std::string_view bytes) {
  static const perceptrond::testing::TempDir directory;
  std::ofstream(directory.path() + "/JOURNAL", std::ios::binary) << bytes;
  const auto id = perceptrond::ReadMarker(directory.path());
  if (id.ok()) {
    Check(id->has_value() && !(*id)->empty());
  } else {
    Check(absl::IsFailedPrecondition(id.status()) && !id.status().message().empty());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 8) {
    case 0:
      CheckMarker(rest);
      break;
    case 1:
      CheckParts(rest);
      break;
    default:
      CheckCut(rest.substr(1), static_cast<uint8_t>(rest[0]));
  }
  return 0;
}
