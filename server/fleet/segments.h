// Segments as they are sent from one server of a fleet to another.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/ledger/segment.h"
#include "perceptron/fleet/v1/segment.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/sessions/nested_examples.h"

namespace perceptrond {

// The most rows that a segment counts, far more than a server evaluates between two: the writer's work grows with them,
// however few bytes they take.
inline constexpr int64_t kMostEvaluatedRows = int64_t{1} << 24;

// Rows of one stream that were evaluated here and that the model's writer does not know of yet. Not
// thread-safe.
class PendingRows {
 public:
  // Adds rows that were evaluated on `revision`, the first of them at this offset, after those
  // before. Revisions ascend.
  void Add(int64_t first_offset, size_t rows, uint64_t revision, const Tally& tally);
  // Adds the names that a message appended to the stream's table.
  void AddNames(const ::perceptron::v1::NameColumn& names);

  bool empty() const { return rows_ == 0 && names_.empty(); }
  int64_t rows() const { return rows_; }
  // Of the last rows; 0: there are none.
  uint64_t last_revision() const { return unchanged_.empty() ? 0 : unchanged_.back().revision; }
  // Bytes of names.
  size_t name_bytes() const { return name_bytes_; }
  // Moves them to a segment whose request begins at this offset, if there are any.
  void MoveTo(int64_t request_offset, ::perceptron::fleet::v1::Segment& segment);

 private:
  int64_t first_offset_ = 0;
  int64_t rows_ = 0;
  std::vector<UnchangedRows> unchanged_;
  std::vector<::perceptron::v1::NameColumn> names_;
  size_t name_bytes_ = 0;
};

// A segment with this request, a LearnStreamRequest's bytes, which are not copied; `segment` has
// everything else.
grpc::ByteBuffer Serialize(const ::perceptron::fleet::v1::Segment& segment,
                           const grpc::ByteBuffer& request);

// Adds to the writer's result of a message what is known here of its first rows, which were evaluated
// here and so were duplicates to the writer.
void AddEvaluated(::perceptron::v1::LearnResult& here, size_t rows,
                  ::perceptron::v1::LearnResult& result);

// The rows as the ledger counts them: none of the tallies is empty, their revisions ascend, their rows add up, their sums
// are those of some examples, and the offsets are those of a stream. INVALID_ARGUMENT (MALFORMED_MESSAGE).
absl::Status Read(const ::perceptron::fleet::v1::EvaluatedRows& evaluated,
                  std::vector<UnchangedRows>& unchanged);

}  // namespace perceptrond
