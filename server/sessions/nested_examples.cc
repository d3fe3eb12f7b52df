#include "server/sessions/nested_examples.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <bit>
#include <climits>
#include <utility>

#include "core/vector/name.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::internal::WireFormatLite;

static_assert(std::endian::native == std::endian::little, "numbers are copied from the wire");

// How deep Protobuf's parser follows messages and groups; a request is the first level.
constexpr int kMaxDepth = 100;

constexpr uint32_t Tag(int field_number, WireFormatLite::WireType type) {
  return static_cast<uint32_t>(field_number) << 3 | type;
}
constexpr uint32_t BytesTag(int field_number) {
  return Tag(field_number, WireFormatLite::WIRETYPE_LENGTH_DELIMITED);
}
constexpr uint32_t Fixed32Tag(int field_number) {
  return Tag(field_number, WireFormatLite::WIRETYPE_FIXED32);
}

std::string_view ToStd(absl::string_view text) { return {text.data(), text.size()}; }

bool IsAscii(absl::string_view text) {
  char all = 0;
  for (const char byte : text) all |= byte;
  return (all & 0x80) == 0;
}

// Reads fields as Protobuf's parser does. A method that returns false has met malformed bytes.
class FieldReader {
 public:
  // `depth`: how many levels of groups may follow.
  FieldReader(absl::string_view bytes, int depth)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()), depth_(depth) {}

  bool done() const { return at_ == end_; }
  const char* at() const { return at_; }

  // Of at most five bytes. The end of a group counts as malformed, since none has begun.
  bool ReadTag(uint32_t& tag) {
    uint64_t value = 0;
    if (!ReadVarint(5, value)) return false;
    tag = static_cast<uint32_t>(value);
    return tag >> 3 != 0 && (tag & 7) != WireFormatLite::WIRETYPE_END_GROUP;
  }

  bool ReadVarint(uint64_t& value) { return ReadVarint(10, value); }

  bool ReadFixed32(absl::string_view& bytes) { return Take(4, bytes); }

  // A string, a message, or a packed array.
  bool ReadBytes(absl::string_view& bytes) {
    uint64_t size = 0;
    return ReadVarint(5, size) && size <= INT_MAX && Take(size, bytes);
  }

  bool ReadString(absl::string_view& text) {
    return ReadBytes(text) && (IsAscii(text) || IsValidUtf8(ToStd(text)));
  }

  // Appends strings of the field, as long as they follow one another and are short.
  bool ReadShortStrings(uint8_t tag, std::vector<absl::string_view>& strings) {
    const char* const begin = at_;
    const size_t first = strings.size();
    const auto byte = [this](size_t i) { return static_cast<uint8_t>(at_[i]); };
    while (end_ - at_ >= 2 && byte(0) == tag && byte(1) < 0x80) {
      const size_t size = byte(1);
      if (static_cast<size_t>(end_ - at_) - 2 < size) return false;
      strings.emplace_back(at_ + 2, size);
      at_ += 2 + size;
    }
    // Tags and sizes are below 0x80 too.
    if (IsAscii({begin, static_cast<size_t>(at_ - begin)})) return true;
    for (size_t i = first; i < strings.size(); ++i) {
      if (!IsValidUtf8(ToStd(strings[i]))) return false;
    }
    return true;
  }

  bool Skip(uint32_t tag) {
    uint64_t number = 0;
    absl::string_view bytes;
    switch (tag & 7) {
      case WireFormatLite::WIRETYPE_VARINT:
        return ReadVarint(number);
      case WireFormatLite::WIRETYPE_FIXED64:
        return Take(8, bytes);
      case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
        return ReadBytes(bytes);
      case WireFormatLite::WIRETYPE_START_GROUP:
        return SkipGroup(tag);
      case WireFormatLite::WIRETYPE_FIXED32:
        return Take(4, bytes);
      default:
        return false;
    }
  }

 private:
  bool ReadVarint(int max_bytes, uint64_t& value) {
    value = 0;
    for (int i = 0; i < max_bytes && at_ < end_; ++i) {
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= uint64_t{byte & 0x7fU} << (7 * i);
      if (byte < 0x80) return true;
    }
    return false;
  }

  bool Take(uint64_t size, absl::string_view& bytes) {
    if (static_cast<uint64_t>(end_ - at_) < size) return false;
    bytes = {at_, size};
    at_ += size;
    return true;
  }

  // Without recursion, since the peer chooses the depth.
  bool SkipGroup(uint32_t tag) {
    std::vector<uint32_t> groups = {tag >> 3};
    while (!groups.empty()) {
      uint64_t value = 0;
      if (static_cast<int>(groups.size()) > depth_ || !ReadVarint(5, value)) return false;
      const auto next = static_cast<uint32_t>(value);
      if ((next & 7) == WireFormatLite::WIRETYPE_END_GROUP) {
        if (next >> 3 != groups.back()) return false;
        groups.pop_back();
      } else if ((next & 7) == WireFormatLite::WIRETYPE_START_GROUP) {
        groups.push_back(next >> 3);
      } else if (!Skip(next)) {
        return false;
      }
      if (next >> 3 == 0) return false;
    }
    return true;
  }

  const char* at_;
  const char* const end_;
  const int depth_;
};

// A repeated field of numbers, which may come in several packed pieces, or one number at a time.
class Pieces {
 public:
  void Clear() {
    first_ = {};
    joined_.clear();
  }
  bool ReadPacked(FieldReader& reader) {
    absl::string_view piece;
    if (!reader.ReadBytes(piece) || piece.size() % 4 != 0) return false;
    Append(piece);
    return true;
  }
  bool ReadOne(FieldReader& reader) {
    absl::string_view piece;
    if (!reader.ReadFixed32(piece)) return false;
    Append(piece);
    return true;
  }
  // All of them; `joined` keeps what was joined.
  absl::string_view Join(std::deque<std::string>& joined) {
    if (joined_.empty()) return first_;
    joined.push_back(std::exchange(joined_, {}));
    return joined.back();
  }

 private:
  void Append(absl::string_view piece) {
    if (first_.empty()) {
      first_ = piece;
    } else if (!piece.empty()) {
      if (joined_.empty()) joined_.assign(first_.data(), first_.size());
      joined_.append(piece.data(), piece.size());
    }
  }

  absl::string_view first_;
  std::string joined_;
};

// Decodes one example after the other. Of several fields of a oneof the last one counts; a message
// that occurs again is merged.
class ExampleDecoder {
 public:
  // Appends the examples' names to `names`, and what had to be joined to `joined`.
  ExampleDecoder(std::vector<absl::string_view>& names, std::deque<std::string>& joined)
      : names_(names), all_joined_(joined) {}

  bool Decode(absl::string_view bytes, NestedExample& example) {
    example_ = &example;
    example_->names_begin = names_.size();
    indices_.Clear();
    values_.Clear();
    for (FieldReader reader(bytes, kMaxDepth - 1); !reader.done();) {
      if (!DecodeField(reader)) return false;
    }
    example_->names_end = names_.size();
    example_->indices = WireArray<uint32_t>(indices_.Join(all_joined_));
    example_->values = WireArray<float>(values_.Join(all_joined_));
    return true;
  }

 private:
  using FeaturesCase = NestedExample::FeaturesCase;
  using TargetCase = NestedExample::TargetCase;

  bool DecodeField(FieldReader& reader) {
    uint32_t tag = 0;
    absl::string_view bytes;
    if (!reader.ReadTag(tag)) return false;
    switch (tag) {
      case BytesTag(v1::Example::kDenseFieldNumber):
        SetFeatures(FeaturesCase::kDense);
        return reader.ReadBytes(bytes) && DecodeDense(bytes);
      case BytesTag(v1::Example::kSparseFieldNumber):
        SetFeatures(FeaturesCase::kSparse);
        return reader.ReadBytes(bytes) && DecodeSparse(bytes);
      case BytesTag(v1::Example::kNamedFieldNumber):
        SetFeatures(FeaturesCase::kNamed);
        return reader.ReadBytes(bytes) && DecodeNamed(bytes);
      case BytesTag(v1::Example::kTextFieldNumber):
        SetFeatures(FeaturesCase::kText);
        return reader.ReadString(bytes);
      case BytesTag(v1::Example::kPredictionIdFieldNumber):
        SetFeatures(FeaturesCase::kPredictionId);
        return reader.ReadString(bytes);
      case Tag(v1::Example::kLabelFieldNumber, WireFormatLite::WIRETYPE_VARINT):
        return DecodeLabel(reader);
      case BytesTag(v1::Example::kLabelNameFieldNumber):
        example_->target = TargetCase::kLabelName;
        return reader.ReadString(example_->label_name);
      case Fixed32Tag(v1::Example::kWeightFieldNumber):
        example_->has_weight = true;
        if (!reader.ReadFixed32(bytes)) return false;
        std::memcpy(&example_->weight, bytes.data(), sizeof(float));
        return true;
      default:
        return reader.Skip(tag);
    }
  }

  void SetFeatures(FeaturesCase features) {
    if (example_->features == features) return;
    example_->features = features;
    names_.resize(example_->names_begin);
    indices_.Clear();
    values_.Clear();
  }

  bool DecodeLabel(FieldReader& reader) {
    uint64_t number = 0;
    if (!reader.ReadVarint(number)) return false;
    example_->target = TargetCase::kLabel;
    example_->label_name = {};
    example_->label = WireFormatLite::ZigZagDecode32(static_cast<uint32_t>(number));
    return true;
  }

  bool DecodeDense(absl::string_view bytes) {
    for (FieldReader reader(bytes, kMaxDepth - 2); !reader.done();) {
      uint32_t tag = 0;
      if (!reader.ReadTag(tag) ||
          !DecodeNumbers(reader, tag, v1::DenseFeatures::kValuesFieldNumber, values_))
        return false;
    }
    return true;
  }

  bool DecodeSparse(absl::string_view bytes) {
    constexpr int kIndices = v1::SparseFeatures::kIndicesFieldNumber;
    constexpr int kValues = v1::SparseFeatures::kValuesFieldNumber;
    for (FieldReader reader(bytes, kMaxDepth - 2); !reader.done();) {
      uint32_t tag = 0;
      if (!reader.ReadTag(tag)) return false;
      const bool is_index = tag >> 3 == kIndices;
      if (!DecodeNumbers(reader, tag, is_index ? kIndices : kValues, is_index ? indices_ : values_))
        return false;
    }
    return true;
  }

  bool DecodeNamed(absl::string_view bytes) {
    constexpr uint32_t kNames = BytesTag(v1::NamedFeatures::kNamesFieldNumber);
    FieldReader reader(bytes, kMaxDepth - 2);
    while (!reader.done()) {
      if (!reader.ReadShortStrings(kNames, names_)) return false;
      if (reader.done()) break;
      uint32_t tag = 0;
      if (!reader.ReadTag(tag)) return false;
      if (tag != kNames) {
        if (!DecodeNumbers(reader, tag, v1::NamedFeatures::kValuesFieldNumber, values_))
          return false;
      } else if (!reader.ReadString(names_.emplace_back())) {
        return false;
      }
    }
    return true;
  }

  // Skips a field that is not the one of these numbers.
  static bool DecodeNumbers(FieldReader& reader, uint32_t tag, int field_number, Pieces& numbers) {
    if (tag == BytesTag(field_number)) return numbers.ReadPacked(reader);
    if (tag == Fixed32Tag(field_number)) return numbers.ReadOne(reader);
    return reader.Skip(tag);
  }

  std::vector<absl::string_view>& names_;
  std::deque<std::string>& all_joined_;
  // Being decoded.
  NestedExample* example_ = nullptr;
  Pieces indices_;
  Pieces values_;
};

}  // namespace

void NestedExamples::Clear() {
  bytes_.clear();
  joined_.clear();
  names_.clear();
  examples_.clear();
}

bool NestedExamples::Read(const grpc::ByteBuffer& request, int field_number, std::string& rest) {
  Clear();
  rest.clear();
  std::vector<grpc::Slice> slices;
  if (!request.Dump(&slices).ok()) return false;
  bytes_.reserve(request.Length());
  for (const grpc::Slice& slice : slices) bytes_.insert(bytes_.end(), slice.begin(), slice.end());
  ExampleDecoder decoder(names_, joined_);
  FieldReader reader({bytes_.data(), bytes_.size()}, kMaxDepth);
  while (!reader.done()) {
    const char* const field = reader.at();
    uint32_t tag = 0;
    if (!reader.ReadTag(tag)) return false;
    if (tag == BytesTag(field_number)) {
      absl::string_view bytes;
      if (!reader.ReadBytes(bytes) || !decoder.Decode(bytes, examples_.emplace_back()))
        return false;
    } else {
      if (!reader.Skip(tag)) return false;
      rest.append(field, reader.at());
    }
  }
  return true;
}

bool MayHaveField(grpc::ByteBuffer& message, int field_number) {
  grpc::ProtoBufferReader bytes(&message);
  if (!bytes.status().ok()) return true;
  google::protobuf::io::CodedInputStream input(&bytes);
  while (const uint32_t tag = input.ReadTag()) {
    if (tag == BytesTag(field_number) || !WireFormatLite::SkipField(&input, tag)) return true;
  }
  return !input.ConsumedEntireMessage();
}

}  // namespace perceptrond
