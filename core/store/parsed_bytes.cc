#include "core/store/parsed_bytes.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/wire_format_lite.h>

#include <string>

#include "absl/container/flat_hash_map.h"

namespace perceptrond {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Protobuf parses nothing deeper.
constexpr int kDeepest = 100;

// Of `size` bytes that are no message: a string, or packed numbers, of which varints grow.
size_t ValueBytes(const FieldDescriptor* field, size_t size) {
  if (field == nullptr) return size + sizeof(google::protobuf::UnknownField) + sizeof(std::string);
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return size + sizeof(void*) + sizeof(std::string);
    case FieldDescriptor::CPPTYPE_FLOAT:
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return size;
    default:
      break;
  }
  const bool is_fixed = field->type() == FieldDescriptor::TYPE_FIXED32 ||
                        field->type() == FieldDescriptor::TYPE_FIXED64;
  return is_fixed ? size : size * sizeof(uint64_t);
}

class Measure {
 public:
  explicit Measure(absl::string_view bytes)
      : in_(reinterpret_cast<const uint8_t*>(bytes.data()), static_cast<int>(bytes.size())) {}

  // Of the message up to the limit.
  size_t Message(const Descriptor& type, int depth = 0) {
    size_t bytes = Empty(type);
    while (const uint32_t tag = in_.ReadTag()) {
      const FieldDescriptor* const field =
          type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!WireFormatLite::SkipField(&in_, tag)) break;
        bytes += sizeof(google::protobuf::UnknownField);
        continue;
      }
      uint32_t size = 0;
      if (!in_.ReadVarint32(&size) || size > INT32_MAX) break;
      if (field == nullptr || field->message_type() == nullptr || depth >= kDeepest) {
        bytes += ValueBytes(field, size);
        if (!in_.Skip(static_cast<int>(size))) break;
        continue;
      }
      const CodedInputStream::Limit limit = in_.PushLimit(static_cast<int>(size));
      bytes += Message(*field->message_type(), depth + 1);
      const bool whole = in_.BytesUntilLimit() == 0;
      in_.PopLimit(limit);
      if (!whole) break;
    }
    return bytes;
  }

 private:
  // An empty message of the type, and what refers to it.
  size_t Empty(const Descriptor& type) {
    const auto [found, is_new] = empty_.try_emplace(&type);
    if (is_new) {
      found->second = sizeof(void*) + google::protobuf::MessageFactory::generated_factory()
                                          ->GetPrototype(&type)
                                          ->SpaceUsedLong();
    }
    return found->second;
  }

  CodedInputStream in_;
  absl::flat_hash_map<const Descriptor*, size_t> empty_;
};

}  // namespace

size_t ParsedBytes(const Descriptor& type, absl::string_view bytes) {
  return Measure(bytes).Message(type);
}

}  // namespace perceptrond
