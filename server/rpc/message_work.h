// The memory that a message takes while it is parsed and handled, known before: gRPC and Protobuf bound its bytes alone.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/grpcpp.h>

#include <concepts>
#include <cstddef>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/memory/memory_budget.h"
#include "core/store/parsed_bytes.h"
#include "server/rpc/backend.h"

namespace perceptrond {

struct MessageWork {
  // Handling takes up to this many times the message's bytes: columns are copied, names interned, texts become grams.
  static constexpr size_t kHandlingFactor = 16;

  // The bytes of the message on the wire, and those of what it becomes.
  size_t bytes = 0;
  size_t parsed_bytes = 0;

  // Returns what a lease of it holds. A small message has none, since a polling thread must not wait: each thread handles one at a
  // time, and it takes at most 2 MB.
  size_t leased_bytes() const {
    return bytes <= kMaxInlineBytes ? 0 : parsed_bytes + kHandlingFactor * bytes;
  }
};

// Returns what the bytes take once they are parsed.
size_t ParsedBytes(const google::protobuf::Descriptor& type, grpc::ByteBuffer& bytes,
                   const ReadInPlace& in_place = {});

// Returns the same for the bytes of `message`. Requests with parts that are read in place have a function of their own.
template <std::derived_from<google::protobuf::Message> Message>
size_t ParsedBytesOf(grpc::ByteBuffer& bytes, const Message& message) {
  return ParsedBytes(*message.GetDescriptor(), bytes);
}

// RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE): a message that takes this once it is parsed is above `most`.
absl::Status TooLargeOnceParsed(const MessageWork& work, size_t most);

// Returns what bytes that are to be parsed into `message` take; TooLargeOnceParsed if they would not fit alone. O(its parts
// and bytes that are not packed).
template <typename Message>
absl::StatusOr<MessageWork> MeasureWork(const MemoryBudget& budget, grpc::ByteBuffer& bytes,
                                        const Message& message) {
  const MessageWork work{bytes.Length(), ParsedBytesOf(bytes, message)};
  if (work.parsed_bytes > budget.share()) return TooLargeOnceParsed(work, budget.share());
  return work;
}

}  // namespace perceptrond
