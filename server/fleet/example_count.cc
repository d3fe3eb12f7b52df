#include "server/fleet/example_count.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <climits>
#include <cstdint>

#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;
using ::perceptron::v1::ExampleColumns;
using ::perceptron::v1::LearnRequest;

// What decides how many rows columns have.
struct RowShape {
  size_t row_ends = 0;
  size_t values = 0;
  size_t half_bytes = 0;
  size_t texts = 0;
  size_t prediction_ids = 0;
  uint32_t dense_width = 0;

  size_t rows() const {
    if (prediction_ids > 0) return prediction_ids;
    if (texts > 0) return texts;
    return dense_width == 0 ? row_ends : std::max(values, half_bytes / 2) / dense_width;
  }
};

bool ReadSize(CodedInputStream& in, int& size) {
  uint32_t read = 0;
  if (!in.ReadVarint32(&read) || read > static_cast<uint32_t>(INT_MAX)) return false;
  size = static_cast<int>(read);
  return true;
}

// A packed array of varints.
bool CountVarints(CodedInputStream& in, size_t& count) {
  int size = 0;
  if (!ReadSize(in, size)) return false;
  const CodedInputStream::Limit limit = in.PushLimit(size);
  for (uint64_t value = 0; in.BytesUntilLimit() > 0; ++count) {
    if (!in.ReadVarint64(&value)) return false;
  }
  in.PopLimit(limit);
  return true;
}

bool ReadColumnsField(CodedInputStream& in, uint32_t tag, RowShape& shape) {
  // A field of another wire type is an unknown one.
  const WireFormatLite::WireType type = WireFormatLite::GetTagWireType(tag);
  const bool packed = type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  int size = 0;
  switch (WireFormatLite::GetTagFieldNumber(tag)) {
    case ExampleColumns::kRowEndsFieldNumber:
      if (packed) return CountVarints(in, shape.row_ends);
      if (type == WireFormatLite::WIRETYPE_VARINT) ++shape.row_ends;
      break;
    case ExampleColumns::kValuesFieldNumber:
      if (packed) {
        if (!ReadSize(in, size)) return false;
        shape.values += static_cast<size_t>(size) / sizeof(float);
        return in.Skip(size);
      }
      if (type == WireFormatLite::WIRETYPE_FIXED32) ++shape.values;
      break;
    case ExampleColumns::kHalfValuesFieldNumber:
      if (packed) {
        if (!ReadSize(in, size)) return false;
        shape.half_bytes = static_cast<size_t>(size);
        return in.Skip(size);
      }
      break;
    case ExampleColumns::kTextsFieldNumber:
      if (packed) ++shape.texts;
      break;
    case ExampleColumns::kPredictionIdsFieldNumber:
      if (packed) ++shape.prediction_ids;
      break;
    case ExampleColumns::kDenseWidthFieldNumber:
      if (type == WireFormatLite::WIRETYPE_VARINT) return in.ReadVarint32(&shape.dense_width);
      break;
    default:
      break;
  }
  return WireFormatLite::SkipField(&in, tag);
}

bool ReadColumns(CodedInputStream& in, RowShape& shape) {
  int size = 0;
  if (!ReadSize(in, size)) return false;
  const CodedInputStream::Limit limit = in.PushLimit(size);
  while (const uint32_t tag = in.ReadTag()) {
    if (!ReadColumnsField(in, tag, shape)) return false;
  }
  if (!in.ConsumedEntireMessage() || in.BytesUntilLimit() != 0) return false;
  in.PopLimit(limit);
  return true;
}

}  // namespace

size_t CountExamplesIn(grpc::ByteBuffer& request) {
  if (!request.Valid()) return 0;
  grpc::ProtoBufferReader reader(&request);
  if (!reader.status().ok()) return 0;
  CodedInputStream in(&reader);
  size_t nested = 0;
  RowShape shape;
  while (const uint32_t tag = in.ReadTag()) {
    const bool is_bytes =
        WireFormatLite::GetTagWireType(tag) == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    if (is_bytes && field == LearnRequest::kColumnsFieldNumber) {
      if (!ReadColumns(in, shape)) return 0;
      continue;
    }
    if (is_bytes && field == LearnRequest::kExamplesFieldNumber) ++nested;
    if (!WireFormatLite::SkipField(&in, tag)) return 0;
  }
  return in.ConsumedEntireMessage() ? nested + shape.rows() : 0;
}

}  // namespace perceptrond
