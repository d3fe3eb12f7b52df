#include "core/store/parsed_bytes.h"

#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>

#include "absl/container/flat_hash_map.h"

namespace perceptrond {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Protobuf parses nothing deeper.
constexpr int kDeepest = 100;
// Arrays double as they grow.
constexpr size_t kGrowth = 2;
// A number that the type does not have, and what a repeated one takes at most.
constexpr size_t kUnknownBytes = kGrowth * sizeof(UnknownField);
constexpr size_t kPointerBytes = kGrowth * sizeof(void*);

// Returns what an element of a repeated field takes whose numbers are varints, of a byte or more on the wire.
size_t ElementBytes(const FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return sizeof(bool);
    case FieldDescriptor::CPPTYPE_INT64:
    case FieldDescriptor::CPPTYPE_UINT64:
      return sizeof(uint64_t);
    default:
      return sizeof(uint32_t);
  }
}

bool HasFixedSize(const FieldDescriptor& field) {
  const WireFormatLite::WireType type =
      WireFormatLite::WireTypeForFieldType(static_cast<WireFormatLite::FieldType>(field.type()));
  return type == WireFormatLite::WIRETYPE_FIXED32 || type == WireFormatLite::WIRETYPE_FIXED64;
}

// Returns what `size` bytes take that are no message: a string, packed numbers, or an unknown field, as one is whose wire
// type is not that of the type's field.
size_t ValueBytes(const FieldDescriptor* field, size_t size) {
  if (field != nullptr && field->cpp_type() == FieldDescriptor::CPPTYPE_STRING)
    return size + sizeof(std::string) + kPointerBytes;
  if (field == nullptr || !field->is_packable()) return size + sizeof(std::string) + kUnknownBytes;
  return HasFixedSize(*field) ? size : size * ElementBytes(*field) * kGrowth;
}

size_t ObjectBytes(const Descriptor& type) {
  // A map keeps key and value of an entry in a node, of which the entry's prototype does not tell the size.
  if (type.options().map_entry()) {
    const Descriptor* const value = type.map_value()->message_type();
    return sizeof(std::string) + (value == nullptr ? sizeof(std::string) : ObjectBytes(*value));
  }
  return google::protobuf::MessageFactory::generated_factory()
      ->GetPrototype(&type)
      ->SpaceUsedLong();
}

// An empty message of the type, and what refers to it.
size_t EmptyBytes(const Descriptor& type) {
  thread_local absl::flat_hash_map<const Descriptor*, size_t> known;
  const auto [found, is_new] = known.try_emplace(&type);
  if (is_new) found->second = kPointerBytes + ObjectBytes(type);
  return found->second;
}

class Measure {
 public:
  Measure(CodedInputStream& in, const ReadInPlace& in_place) : in_(in), in_place_(in_place) {}

  size_t bytes() const { return bytes_; }

  // Adds what the message up to the limit takes. False if it is malformed.
  bool AddMessage(const Descriptor& type, int depth = 0) {
    bytes_ += EmptyBytes(type);
    return AddFields(&type, depth, 0);
  }

 private:
  // Adds what the fields take up to the limit, or up to the end of the group of this number. An unknown group has no type.
  bool AddFields(const Descriptor* type, int depth, int group) {
    while (const uint32_t tag = in_.ReadTag()) {
      const int number = WireFormatLite::GetTagFieldNumber(tag);
      switch (WireFormatLite::GetTagWireType(tag)) {
        case WireFormatLite::WIRETYPE_LENGTH_DELIMITED: {
          const FieldDescriptor* const field =
              type == nullptr ? nullptr : type->FindFieldByNumber(number);
          if (!AddDelimited(field, depth)) return false;
          break;
        }
        case WireFormatLite::WIRETYPE_START_GROUP:
          bytes_ += kUnknownBytes + sizeof(UnknownFieldSet);
          if (depth >= kDeepest || !AddFields(nullptr, depth + 1, number)) return false;
          break;
        case WireFormatLite::WIRETYPE_END_GROUP:
          return number == group && group != 0;
        default:
          bytes_ += kUnknownBytes;
          if (!WireFormatLite::SkipField(&in_, tag)) return false;
      }
    }
    return group == 0;
  }

  bool AddDelimited(const FieldDescriptor* field, int depth) {
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size) || size > INT32_MAX) return false;
    const bool is_in_place =
        depth == 0 && field != nullptr && field->number() == in_place_.field_number;
    if (is_in_place || field == nullptr || field->message_type() == nullptr) {
      if (!in_.Skip(static_cast<int>(size))) return false;
      bytes_ +=
          is_in_place ? in_place_.object_bytes + in_place_.factor * size : ValueBytes(field, size);
      return true;
    }
    if (depth >= kDeepest) return false;
    const CodedInputStream::Limit limit = in_.PushLimit(static_cast<int>(size));
    const bool whole = AddMessage(*field->message_type(), depth + 1) && in_.BytesUntilLimit() == 0;
    in_.PopLimit(limit);
    return whole;
  }

  CodedInputStream& in_;
  const ReadInPlace& in_place_;
  size_t bytes_ = 0;
};

}  // namespace

size_t ParsedBytes(const Descriptor& type, CodedInputStream& bytes, const ReadInPlace& in_place) {
  Measure measure(bytes, in_place);
  measure.AddMessage(type);
  return measure.bytes();
}

}  // namespace perceptrond
