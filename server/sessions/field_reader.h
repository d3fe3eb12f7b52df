// Reads the fields of a message from its bytes, exactly as Protobuf's generated parsers do: what
// they accept, skip and refuse.
#pragma once

#include <google/protobuf/wire_format_lite.h>

#include <climits>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/vector/name.h"

namespace perceptrond {

// Views of the bytes, which must outlive it. A method that returns false has met malformed bytes:
// the reader must not be used any more. Not thread-safe. Each method is O(the field).
class FieldReader {
 public:
  using WireFormat = google::protobuf::internal::WireFormatLite;

  // What ReadTag reads before a field of this number.
  static constexpr uint32_t VarintTag(int field_number) {
    return static_cast<uint32_t>(field_number) << 3 | WireFormat::WIRETYPE_VARINT;
  }
  static constexpr uint32_t BytesTag(int field_number) {
    return static_cast<uint32_t>(field_number) << 3 | WireFormat::WIRETYPE_LENGTH_DELIMITED;
  }
  static constexpr uint32_t Fixed32Tag(int field_number) {
    return static_cast<uint32_t>(field_number) << 3 | WireFormat::WIRETYPE_FIXED32;
  }

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
    return tag >> 3 != 0 && (tag & 7) != WireFormat::WIRETYPE_END_GROUP;
  }

  // Of at most ten bytes.
  bool ReadVarint(uint64_t& value) { return ReadVarint(10, value); }
  // Four bytes.
  bool ReadFixed32(absl::string_view& bytes) { return Take(4, bytes); }

  // A string, a message, or a packed array.
  bool ReadBytes(absl::string_view& bytes) {
    uint64_t size = 0;
    return ReadVarint(5, size) && size <= INT_MAX && Take(size, bytes);
  }
  // UTF-8.
  bool ReadString(absl::string_view& text) { return ReadBytes(text) && IsUtf8(text); }

  // Appends the strings of fields of this tag, as long as they follow one another and have fewer
  // than 128 bytes. All are checked for UTF-8 at once.
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
      if (!IsUtf8(strings[i])) return false;
    }
    return true;
  }

  // Skips the field whose tag was read.
  bool Skip(uint32_t tag) {
    uint64_t number = 0;
    absl::string_view bytes;
    switch (tag & 7) {
      case WireFormat::WIRETYPE_VARINT:
        return ReadVarint(number);
      case WireFormat::WIRETYPE_FIXED64:
        return Take(8, bytes);
      case WireFormat::WIRETYPE_LENGTH_DELIMITED:
        return ReadBytes(bytes);
      case WireFormat::WIRETYPE_START_GROUP:
        return SkipGroup(tag);
      case WireFormat::WIRETYPE_FIXED32:
        return Take(4, bytes);
      default:
        return false;
    }
  }

 private:
  static bool IsAscii(absl::string_view text) {
    char all = 0;
    for (const char byte : text) all |= byte;
    return (all & 0x80) == 0;
  }
  static bool IsUtf8(absl::string_view text) {
    return IsAscii(text) || IsValidUtf8({text.data(), text.size()});
  }

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
      if ((next & 7) == WireFormat::WIRETYPE_END_GROUP) {
        if (next >> 3 != groups.back()) return false;
        groups.pop_back();
      } else if ((next & 7) == WireFormat::WIRETYPE_START_GROUP) {
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

}  // namespace perceptrond
