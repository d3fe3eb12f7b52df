// What one server of a fleet tells another. Segments and heartbeats are valid messages after changes
// (tests/fuzz/message_mutator.h), or any bytes. What is read of a segment are rows that add up, and they survive being
// sent on; heartbeats of any kind leave a list of members that says the same in each of its answers; and the examples of
// a request that is passed on are as many as Protobuf's parser finds. An answer of a writer may be any.
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "core/fleet/members.h"
#include "perceptron/fleet/v1/heartbeat.pb.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/fleet/example_count.h"
#include "server/fleet/segment_session.h"
#include "server/fleet/segments.h"
#include "server/rpc/timed_request.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/support/nested_examples.h"

namespace {

namespace fleet = ::perceptron::fleet::v1;
namespace v1 = ::perceptron::v1;
using perceptrond::Members;
using perceptrond::PendingRows;
using perceptrond::SegmentRequest;
using perceptrond::Tally;
using perceptrond::UnchangedRows;
using perceptrond::testing::Check;
using perceptrond::testing::CheckEqual;
using perceptrond::testing::FuzzInput;
using perceptrond::testing::InSlices;
using perceptrond::testing::MessageMutator;

constexpr size_t kMostBytes = 64 << 10;
constexpr size_t kMostChanges = 8;

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  Check(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

// What a string of a message may be.
const std::vector<std::string>& Strings() {
  static const std::vector<std::string> strings = {
      "",  "NON_FINITE_VALUE", "CLASS_CAP", "NO_SUCH_REASON",         "models/m", "a", "b", "own",
      "p", "10.0.0.5:7602",    "a:7600",    std::string(1 << 10, 'x')};
  return strings;
}

// The message after changes.
template <typename Message>
std::string Changed(FuzzInput& input, Message message) {
  const MessageMutator mutator(Strings(), kMostBytes);
  for (size_t changes = input.Below(kMostChanges); changes > 0; --changes)
    mutator.Mutate(input, message);
  std::string bytes = message.SerializePartialAsString();
  // Further fields, or what is none; or an end that is missing.
  if (input.Below(8) == 7) bytes += input.Bytes(input.Byte());
  if (input.Below(8) == 7) bytes.resize(bytes.size() - std::min(bytes.size(), input.Below(256)));
  return bytes;
}

// ---- Segments ----

fleet::Segment ValidSegment() {
  return FromText<fleet::Segment>(
      "evaluated { first_offset: 10 rows: 9 correct_rows { revision: 3 examples: 4 risk: 0.5 loss: "
      "1 "
      "min_score: 0.25 squared_radius: 4 weighted_examples: 2 } correct_rows { revision: 7 "
      "examples: 3 row_errors { key: 'NON_FINITE_VALUE' value: 2 } min_score: -1 squared_radius: 9 "
      "} "
      "stream_names { text: 'ab' lengths: [1, 1] } request_offset: 19 }");
}

bool IsWhole(const Tally& tally) {
  const uint64_t errors =
      std::accumulate(tally.row_errors.begin(), tally.row_errors.end(), uint64_t{0});
  return errors == tally.row_error_count && tally.row_errors[0] == 0 && tally.risk >= 0 &&
         tally.loss >= 0 && !std::isnan(tally.min_score) && tally.squared_radius >= 0 &&
         tally.weighted_examples <= tally.examples && tally.mistakes == 0 && tally.updates == 0;
}

// The contract of core/ledger/segment.h.
void CheckRows(const fleet::EvaluatedRows& evaluated, const std::vector<UnchangedRows>& rows) {
  uint64_t all = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    Check(i == 0 || rows[i - 1].revision < rows[i].revision);
    Check(IsWhole(rows[i].tally));
    const uint64_t counted = rows[i].tally.examples + rows[i].tally.row_error_count;
    Check(counted > 0);
    all += counted;
  }
  Check(evaluated.rows() >= 0 && all == static_cast<uint64_t>(evaluated.rows()));
  Check(evaluated.rows() <= perceptrond::kMostEvaluatedRows);
  Check(evaluated.first_offset() >= 0 && evaluated.request_offset() >= 0);
  // What a session computes of them.
  int64_t end = 0;
  Check(!__builtin_add_overflow(evaluated.first_offset(), evaluated.rows(), &end));
}

// What has these rows to be sent.
PendingRows Pending(const std::vector<UnchangedRows>& rows, int64_t offset) {
  PendingRows pending;
  for (const UnchangedRows& one : rows) {
    const uint64_t counted = one.tally.examples + one.tally.row_error_count;
    pending.Add(offset, counted, one.revision, one.tally);
    offset += static_cast<int64_t>(counted);
  }
  return pending;
}

std::string Show(const std::vector<UnchangedRows>& rows) {
  fleet::Segment segment;
  Pending(rows, 0).MoveTo(0, segment);
  return segment.DebugString();
}

// Another server that gets the same rows, and the same request, reads the same.
void CheckSentOn(const fleet::Segment& segment, const std::vector<UnchangedRows>& rows) {
  const fleet::EvaluatedRows& evaluated = segment.evaluated();
  PendingRows pending = Pending(rows, evaluated.first_offset());
  for (const v1::NameColumn& names : evaluated.stream_names()) pending.AddNames(names);
  fleet::Segment sent;
  pending.MoveTo(evaluated.request_offset(), sent);
  grpc::ByteBuffer bytes = perceptrond::Serialize(sent, InSlices(segment.request(), 100));
  SegmentRequest again;
  Check(ParseMessage(bytes, 2 * kMostBytes, again).ok());
  std::vector<UnchangedRows> read;
  Check(perceptrond::Read(again.segment.evaluated(), read).ok());
  CheckEqual("rows", Show(rows), Show(read));
  CheckEqual("requests", segment.request(), again.segment.request());
  Check(again.segment.evaluated().stream_names_size() == evaluated.stream_names_size());
}

void CheckSegment(FuzzInput& input) {
  fleet::Segment valid = ValidSegment();
  if (input.Flag()) valid.set_request(Changed(input, v1::LearnStreamRequest()));
  const std::string bytes =
      input.Below(8) == 7 ? input.Bytes(kMostBytes) : Changed(input, std::move(valid));
  grpc::ByteBuffer buffer = InSlices(bytes, input.Byte() + size_t{1});
  SegmentRequest request;
  const absl::Status parsed = ParseMessage(buffer, kMostBytes, request);
  Check(parsed.ok() || absl::IsInvalidArgument(parsed) || bytes.size() > kMostBytes);
  if (!parsed.ok()) return;
  std::vector<UnchangedRows> rows;
  const absl::Status read = perceptrond::Read(request.segment.evaluated(), rows);
  Check(read.ok() || absl::IsInvalidArgument(read));
  if (!read.ok()) return;
  CheckRows(request.segment.evaluated(), rows);
  CheckSentOn(request.segment, rows);
}

// ---- Heartbeats ----

constexpr uint32_t kPartitions = 4;
constexpr std::chrono::seconds kTimeout(2);

// What is known of the members, each time after one was heard.
void CheckMembers(const Members& members, const std::map<std::string, std::string>& addresses,
                  const std::map<uint32_t, int64_t>& epochs, Members::Clock::time_point now) {
  const size_t alive = members.alive(now);
  Check(alive >= 1 && alive <= addresses.size() + 1);
  for (const uint32_t partition : {0U, 1U, kPartitions - 1, kPartitions, UINT32_MAX}) {
    Check(members.RankOf(partition, now) < alive);
    const auto known = epochs.find(partition);
    Check(members.WriterOf(partition).epoch == (known == epochs.end() ? 0 : known->second));
  }
  const std::string found = members.FindAddress([](const std::string&) { return true; }, now);
  Check(found.empty() || std::any_of(addresses.begin(), addresses.end(),
                                     [&](const auto& one) { return one.second == found; }));
  Check(!members.HasOtherUpToDate(now) || alive > 1);
  Check(!members.MustYield(now) || alive > 1);
}

void CheckHeartbeats(FuzzInput& input) {
  Members members("own", kPartitions, kTimeout, "10.0.0.5:7602", 100);
  Members::Clock::time_point now(std::chrono::seconds(1000));
  // Of every other server that was heard, and of every partition.
  std::map<std::string, std::string> addresses;
  std::map<uint32_t, int64_t> epochs;
  for (size_t i = 0; i < kMostChanges && (i == 0 || !input.empty()); ++i) {
    const std::string bytes =
        input.Below(8) == 7
            ? input.Bytes(input.Byte())
            : Changed(input,
                      FromText<fleet::Heartbeat>(
                          "server_id: 'a' address: 'a:7600' written { partition: 1 epoch: 5 } "
                          "written { partition: 3 epoch: 9 released: true } client_address: "
                          "'a:7500' icu_version: '72.1' started: 50"));
    fleet::Heartbeat heartbeat;
    if (!heartbeat.ParseFromString(bytes)) continue;
    members.OnHeartbeat(heartbeat, now);
    if (heartbeat.server_id() != "own") {
      addresses[heartbeat.server_id()] = heartbeat.address();
      for (const fleet::WrittenPartition& written : heartbeat.written()) {
        if (written.partition() >= kPartitions) continue;
        int64_t& epoch = epochs[written.partition()];
        epoch = std::max(epoch, written.epoch());
      }
    }
    CheckMembers(members, addresses, epochs, now);
    now += std::chrono::milliseconds(500) * static_cast<int>(input.Below(64));
    CheckMembers(members, addresses, epochs, now);
  }
}

// ---- Calls that are passed on ----

v1::LearnRequest ValidRequest() {
  return FromText<v1::LearnRequest>(
      "model: 'models/m' examples { dense { values: [1, 2] } label: 1 } examples { text: 'a' } "
      "columns { row_ends: [1, 300] indices: [0, 1, 2] values: [1, 2, 3, 4] labels: [1, -1] } ");
}

void CheckCount(const std::string& bytes, size_t slice_bytes) {
  grpc::ByteBuffer buffer = InSlices(bytes, slice_bytes);
  const size_t count = perceptrond::CountExamplesIn(buffer);
  v1::LearnRequest request;
  if (!request.ParseFromString(bytes)) return;
  const size_t expected =
      static_cast<size_t>(request.examples_size()) + perceptrond::CountRows(request.columns());
  CheckEqual("counts", std::to_string(count), std::to_string(expected));
}

// ---- Answers of the writer ----

void CheckAnswer(FuzzInput& input) {
  const auto valid = FromText<v1::LearnResult>(
      "message_number: 1 examples: 2 duplicates: 3 scores: [0, 0, 0, 1, -1] "
      "predicted_labels: [0, 0, 0, 1, -1] row_errors { row: 4 status { code: 3 } }");
  auto here = FromText<v1::LearnResult>(
      "examples: 2 scores: [2, 3, 4] predicted_labels: [1, 1, -1] "
      "row_errors { row: 1 status { code: 3 } }");
  constexpr size_t kRows = 3;
  v1::LearnResult result;
  if (!result.ParseFromString(Changed(input, valid))) return;
  const v1::LearnResult before = result;
  perceptrond::AddEvaluated(here, kRows, result);
  Check(result.scores_size() == before.scores_size());
  Check(result.predicted_labels_size() == before.predicted_labels_size());
  Check(result.row_errors_size() == before.row_errors_size() + 1);
  Check(result.duplicates() <= before.duplicates());
  for (int i = kRows; i < result.scores_size(); ++i)
    Check(std::signbit(result.scores(i)) == std::signbit(before.scores(i)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  switch (input.Below(8)) {
    case 0:
      CheckHeartbeats(input);
      break;
    case 1: {
      const std::string bytes = Changed(input, ValidRequest());
      CheckCount(bytes, input.Byte() + size_t{1});
      break;
    }
    case 2:
    case 3: {
      const size_t slice_bytes = input.Byte() + size_t{1};
      CheckCount(input.Bytes(kMostBytes), slice_bytes);
      break;
    }
    case 4:
      CheckAnswer(input);
      break;
    default:
      CheckSegment(input);
  }
  return 0;
}
