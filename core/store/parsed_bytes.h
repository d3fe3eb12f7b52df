// The memory of a parsed message, known before it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>

#include <cstddef>

namespace perceptrond {

// A field of messages that are not parsed but read where they are: each takes an object, and so many times its bytes.
struct ReadInPlace {
  int field_number = 0;
  size_t object_bytes = 0;
  size_t factor = 0;
};

// About what a serialized message of this type takes once it is parsed: an empty part of it, of two bytes, becomes an
// object of hundreds. Of malformed bytes, what comes before the error. O(parts and bytes that are not packed).
size_t ParsedBytes(const google::protobuf::Descriptor& type,
                   google::protobuf::io::CodedInputStream& bytes, const ReadInPlace& in_place = {});

}  // namespace perceptrond
