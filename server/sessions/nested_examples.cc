#include "server/sessions/nested_examples.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <bit>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "perceptron/v1/example.pb.h"
#include "server/sessions/field_reader.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

static_assert(std::endian::native == std::endian::little, "numbers are copied from the wire");

// How deep Protobuf's parser follows messages and groups; a request is the first level.
constexpr int kMaxDepth = 100;

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
    example_->bytes = bytes;
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
      case FieldReader::BytesTag(v1::Example::kDenseFieldNumber):
        return SetFeatures(FeaturesCase::kDense) && reader.ReadBytes(bytes) && DecodeDense(bytes);
      case FieldReader::BytesTag(v1::Example::kSparseFieldNumber):
        return SetFeatures(FeaturesCase::kSparse) && reader.ReadBytes(bytes) && DecodeSparse(bytes);
      case FieldReader::BytesTag(v1::Example::kNamedFieldNumber):
        return SetFeatures(FeaturesCase::kNamed) && reader.ReadBytes(bytes) && DecodeNamed(bytes);
      case FieldReader::BytesTag(v1::Example::kTextFieldNumber):
        // One that is not UTF-8 is a validation error of its row.
        return SetFeatures(FeaturesCase::kText) && reader.ReadBytes(example_->text);
      case FieldReader::BytesTag(v1::Example::kPredictionIdFieldNumber):
        return SetFeatures(FeaturesCase::kPredictionId) &&
               reader.ReadString(example_->prediction_id);
      case FieldReader::VarintTag(v1::Example::kLabelFieldNumber):
        return DecodeLabel(reader);
      case FieldReader::BytesTag(v1::Example::kLabelNameFieldNumber):
        example_->target = TargetCase::kLabelName;
        return reader.ReadString(example_->label_name);
      case FieldReader::Fixed32Tag(v1::Example::kWeightFieldNumber):
        example_->has_weight = true;
        if (!reader.ReadFixed32(bytes)) return false;
        std::memcpy(&example_->weight, bytes.data(), sizeof(float));
        return true;
      default:
        return reader.Skip(tag);
    }
  }

  // False if a text that other features replace is not UTF-8: Protobuf refuses the message then.
  bool SetFeatures(FeaturesCase features) {
    if (!IsValidUtf8({example_->text.data(), example_->text.size()})) return false;
    if (example_->features == features) return true;
    example_->features = features;
    example_->text = {};
    example_->prediction_id = {};
    names_.resize(example_->names_begin);
    indices_.Clear();
    values_.Clear();
    return true;
  }

  bool DecodeLabel(FieldReader& reader) {
    uint64_t number = 0;
    if (!reader.ReadVarint(number)) return false;
    example_->target = TargetCase::kLabel;
    example_->label_name = {};
    example_->label = FieldReader::WireFormat::ZigZagDecode32(static_cast<uint32_t>(number));
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
    constexpr uint32_t kNames = FieldReader::BytesTag(v1::NamedFeatures::kNamesFieldNumber);
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
    if (tag == FieldReader::BytesTag(field_number)) return numbers.ReadPacked(reader);
    if (tag == FieldReader::Fixed32Tag(field_number)) return numbers.ReadOne(reader);
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
    if (tag != FieldReader::BytesTag(field_number)) {
      if (!reader.Skip(tag)) return false;
      rest.append(field, reader.at());
      continue;
    }
    absl::string_view bytes;
    if (!reader.ReadBytes(bytes)) return false;
    if (examples_.size() > kMaxExamples) continue;
    if (!decoder.Decode(bytes, examples_.emplace_back())) return false;
  }
  return true;
}

absl::Status CheckExampleCount(absl::string_view field, size_t examples) {
  if (examples <= NestedExamples::kMaxExamples) return absl::OkStatus();
  return InvalidField("TOO_MANY_EXAMPLES", field,
                      absl::StrCat("has more than ", NestedExamples::kMaxExamples,
                                   " examples, the most that a message can hold; send fewer"));
}

bool MayHaveField(grpc::ByteBuffer& message, int field_number) {
  grpc::ProtoBufferReader bytes(&message);
  if (!bytes.status().ok()) return true;
  google::protobuf::io::CodedInputStream input(&bytes);
  while (const uint32_t tag = input.ReadTag()) {
    if (tag == FieldReader::BytesTag(field_number) ||
        !FieldReader::WireFormat::SkipField(&input, tag))
      return true;
  }
  return !input.ConsumedEntireMessage();
}

}  // namespace perceptrond
