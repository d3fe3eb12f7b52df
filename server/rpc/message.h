// Messages and their bytes. The server's methods take raw bytes, so that bytes which are no
// message, or too many, get an error that says so; gRPC's own would carry no details.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {

// RESOURCE_EXHAUSTED, MESSAGE_TOO_LARGE; INVALID_ARGUMENT, MALFORMED_MESSAGE. Takes `bytes`.
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes, Message& message) {
  if (bytes.Length() > max_bytes) {
    return MakeError(
        absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
        absl::StrCat("a message of ", bytes.Length(), " bytes; at most ", max_bytes,
                     " are taken: send fewer examples at once, or raise --max-message-bytes"),
        {{"max_message_bytes", absl::StrCat(max_bytes)}});
  }
  if (grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok())
    return absl::OkStatus();
  return InvalidField("MALFORMED_MESSAGE", message.GetTypeName(),
                      "the bytes are no message of this type");
}

// Of a call that ends before its request has come: INVALID_ARGUMENT, MALFORMED_MESSAGE.
inline absl::Status NoRequest() {
  return InvalidField("MALFORMED_MESSAGE", "request", "is missing");
}

// Protobuf writes no message that is larger.
inline constexpr size_t kLargestMessageBytes = std::numeric_limits<int>::max();

// RESOURCE_EXHAUSTED, ANSWER_TOO_LARGE: `bytes` are then empty, and must not be sent.
template <typename Message>
absl::Status SerializeMessage(const Message& message, grpc::ByteBuffer& bytes,
                              size_t max_bytes = kLargestMessageBytes) {
  bytes.Clear();
  bool own_buffer = false;
  const size_t size = message.ByteSizeLong();
  if (size <= max_bytes &&
      grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer).ok())
    return absl::OkStatus();
  bytes.Clear();
  return MakeError(absl::StatusCode::kResourceExhausted, "ANSWER_TOO_LARGE",
                   absl::StrCat("the answer takes ", size, " bytes, and a message at most ",
                                max_bytes, ": ask for less at once"),
                   {{"bytes", absl::StrCat(size)}, {"max_bytes", absl::StrCat(max_bytes)}});
}

// What gRPC itself may take in: enough that a message a few times too large is told why, not so
// much that one client fills the memory.
inline int TransportMessageBytes(size_t max_bytes) {
  constexpr size_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(kMost, 4 * max_bytes));
}

}  // namespace perceptrond
