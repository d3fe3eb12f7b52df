#include "server/fleet/segments.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "core/vector/check.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

namespace fleet = ::perceptron::fleet::v1;

fleet::CorrectRows ToProto(const UnchangedRows& rows) {
  const Tally& tally = rows.tally;
  fleet::CorrectRows proto;
  proto.set_revision(static_cast<int64_t>(rows.revision));
  proto.set_examples(tally.examples);
  for (size_t code = 0; code < kValidationCodes; ++code) {
    if (tally.row_errors[code] > 0)
      (*proto.mutable_row_errors())[ReasonName(static_cast<ValidationCode>(code))] =
          tally.row_errors[code];
  }
  proto.set_risk(tally.risk);
  proto.set_loss(tally.loss);
  if (tally.examples > 0) {
    proto.set_min_score(tally.min_score);
    proto.set_squared_radius(tally.squared_radius);
  }
  proto.set_weighted_examples(tally.weighted_examples);
  return proto;
}

// False for an error that this version does not know, and for more than `most` rows.
bool ReadErrors(const fleet::CorrectRows& proto, uint64_t most, Tally& tally) {
  for (const auto& [reason, rows] : proto.row_errors()) {
    size_t code = static_cast<size_t>(ValidationCode::kNone) + 1;
    while (code < kValidationCodes && ReasonName(static_cast<ValidationCode>(code)) != reason)
      ++code;
    if (code == kValidationCodes || rows > most - tally.row_error_count) return false;
    tally.row_errors[code] += rows;
    tally.row_error_count += rows;
  }
  return true;
}

// Returns true if the sums and bounds can be those of its examples. A NaN would stay in the model's figures.
bool IsPossible(const Tally& tally) {
  if (tally.examples == 0) {
    const Tally none;
    return tally.risk == 0 && tally.loss == 0 && tally.min_score == none.min_score &&
           tally.squared_radius == 0 && tally.weighted_examples == 0;
  }
  return tally.risk >= 0 && tally.loss >= 0 && !std::isnan(tally.min_score) &&
         tally.squared_radius >= 0 && tally.weighted_examples <= tally.examples;
}

bool ReadRows(const fleet::EvaluatedRows& evaluated, std::vector<UnchangedRows>& unchanged) {
  constexpr int64_t kMostOffset = std::numeric_limits<int64_t>::max() - kMostEvaluatedRows;
  if (evaluated.rows() < 0 || evaluated.rows() > kMostEvaluatedRows ||
      evaluated.first_offset() < 0 || evaluated.first_offset() > kMostOffset ||
      evaluated.request_offset() < 0)
    return false;
  // The rows that no tally has counted yet.
  auto left = static_cast<uint64_t>(evaluated.rows());
  for (const fleet::CorrectRows& proto : evaluated.correct_rows()) {
    UnchangedRows rows{static_cast<uint64_t>(proto.revision()), {}};
    Tally& tally = rows.tally;
    if (!ReadErrors(proto, left, tally)) return false;
    tally.examples = proto.examples();
    tally.risk = proto.risk();
    tally.loss = proto.loss();
    if (proto.has_min_score()) tally.min_score = proto.min_score();
    tally.squared_radius = proto.squared_radius();
    tally.weighted_examples = proto.weighted_examples();
    const bool ascends = unchanged.empty() || unchanged.back().revision < rows.revision;
    const bool fits = tally.examples <= left - tally.row_error_count;
    if (!ascends || !fits || !IsPossible(tally)) return false;
    const uint64_t counted = tally.examples + tally.row_error_count;
    if (counted == 0) return false;
    left -= counted;
    unchanged.push_back(rows);
  }
  return left == 0;
}

template <typename Number>
void CopyFirst(const google::protobuf::RepeatedField<Number>& from, size_t count,
               google::protobuf::RepeatedField<Number>& to) {
  const auto most = std::min({from.size(), to.size(), static_cast<int>(count)});
  std::copy_n(from.begin(), most, to.begin());
}

}  // namespace

void PendingRows::Add(int64_t first_offset, size_t rows, uint64_t revision, const Tally& tally) {
  if (rows == 0) return;
  if (rows_ == 0) first_offset_ = first_offset;
  rows_ += static_cast<int64_t>(rows);
  if (unchanged_.empty() || unchanged_.back().revision != revision) {
    unchanged_.push_back({revision, tally});
  } else {
    unchanged_.back().tally.AddUnchanged(tally);
  }
}

void PendingRows::AddNames(const ::perceptron::v1::NameColumn& names) {
  names_.push_back(names);
  name_bytes_ += names.text().size() + sizeof(uint32_t) * static_cast<size_t>(names.lengths_size());
}

void PendingRows::MoveTo(int64_t request_offset, fleet::Segment& segment) {
  if (empty()) return;
  fleet::EvaluatedRows& evaluated = *segment.mutable_evaluated();
  evaluated.set_first_offset(rows_ == 0 ? request_offset : first_offset_);
  evaluated.set_rows(rows_);
  for (const UnchangedRows& rows : unchanged_) *evaluated.add_correct_rows() = ToProto(rows);
  evaluated.mutable_stream_names()->Assign(std::make_move_iterator(names_.begin()),
                                           std::make_move_iterator(names_.end()));
  evaluated.set_request_offset(request_offset);
  *this = PendingRows();
}

grpc::ByteBuffer Serialize(const fleet::Segment& segment, const grpc::ByteBuffer& request) {
  using google::protobuf::internal::WireFormatLite;
  std::string head = segment.SerializeAsString();
  if (request.Length() == 0) {
    const grpc::Slice slice(head);
    return {&slice, 1};
  }
  {
    google::protobuf::io::StringOutputStream stream(&head);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.WriteTag(WireFormatLite::MakeTag(fleet::Segment::kRequestFieldNumber,
                                           WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    coded.WriteVarint64(request.Length());
  }
  std::vector<grpc::Slice> all;
  (void)request.Dump(&all);
  all.insert(all.begin(), grpc::Slice(head));
  return {all.data(), all.size()};
}

void AddEvaluated(::perceptron::v1::LearnResult& here, size_t rows,
                  ::perceptron::v1::LearnResult& result) {
  result.set_examples(result.examples() + here.examples());
  result.set_duplicates(result.duplicates() - std::min(result.duplicates(), uint64_t{rows}));
  CopyFirst(here.scores(), rows, *result.mutable_scores());
  CopyFirst(here.margins(), rows, *result.mutable_margins());
  CopyFirst(here.predicted_labels(), rows, *result.mutable_predicted_labels());
  here.mutable_row_errors()->MergeFrom(result.row_errors());
  result.mutable_row_errors()->Swap(here.mutable_row_errors());
}

absl::Status Read(const fleet::EvaluatedRows& evaluated, std::vector<UnchangedRows>& unchanged) {
  return ReadRows(evaluated, unchanged) ? absl::OkStatus()
                                        : MalformedMessage(evaluated.GetTypeName());
}

}  // namespace perceptrond
