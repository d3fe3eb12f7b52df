// Messages and statuses as gRPC carries them. The server's methods read and write raw bytes, so
// that malformed or oversized requests get an error with details; gRPC's own errors have none. Also
// the fields that requests of several methods have.
#pragma once

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/error/error.h"

namespace google::rpc {
class Status;
}  // namespace google::rpc

namespace perceptrond {

// ---- Statuses ----

// The status as google.rpc.Status: code, message, and payloads as details. Messages, descriptions
// and other texts are truncated so that the status fits gRPC's trailers.
void ToProto(const absl::Status& status, google::rpc::Status& proto);
// A status that ToProto wrote; also one that comes from elsewhere.
absl::Status FromProto(const google::rpc::Status& proto);
// What a call ends with: the message, and google.rpc.Status in grpc-status-details-bin.
grpc::Status ToGrpc(const absl::Status& status);

// UNAVAILABLE (DRAINING): the server is stopping; the client should reconnect and go on.
absl::Status DrainingError();
// CANCELLED (CANCELLED): the client cancelled the call or is gone.
absl::Status CancelledError();

// ---- Messages ----

// INVALID_ARGUMENT (MALFORMED_MESSAGE): bytes are not a message of this type.
inline absl::Status MalformedMessage(absl::string_view type) {
  return InvalidField("MALFORMED_MESSAGE", type, "the bytes are not a message of this type");
}

// RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE).
inline absl::Status CheckMessageSize(const grpc::ByteBuffer& bytes, size_t max_bytes) {
  if (bytes.Length() <= max_bytes) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
      absl::StrCat("the message has ", bytes.Length(), " bytes; the server accepts at most ",
                   max_bytes, ": send fewer examples at once, or raise --max-message-bytes"),
      {{"max_message_bytes", absl::StrCat(max_bytes)}});
}

// Parses and consumes `bytes`. RESOURCE_EXHAUSTED (MESSAGE_TOO_LARGE); INVALID_ARGUMENT
// (MALFORMED_MESSAGE).
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes, Message& message) {
  if (absl::Status status = CheckMessageSize(bytes, max_bytes); !status.ok()) return status;
  if (grpc::SerializationTraits<Message>::Deserialize(&bytes, &message).ok())
    return absl::OkStatus();
  return MalformedMessage(message.GetTypeName());
}

// The most bytes of a request that holds names and options alone.
inline constexpr size_t kMaxSmallRequestBytes = 64 << 10;

// The same for such a request, which stays in memory for as long as its call: without unknown fields.
// `bytes` are consumed in any case.
template <typename Message>
absl::Status ParseSmallRequest(grpc::ByteBuffer& bytes, Message& message) {
  const size_t size = bytes.Length();
  absl::Status status =
      size <= kMaxSmallRequestBytes
          ? ParseMessage(bytes, kMaxSmallRequestBytes, message)
          : MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
                      absl::StrCat("the request has ", size, " bytes; a ", message.GetTypeName(),
                                   " can have at most ", kMaxSmallRequestBytes),
                      {{"max_message_bytes", absl::StrCat(kMaxSmallRequestBytes)}});
  bytes.Clear();
  message.DiscardUnknownFields();
  return status;
}

// INVALID_ARGUMENT (MALFORMED_MESSAGE): a call ended before its request arrived.
inline absl::Status MissingRequest() {
  return InvalidField("MALFORMED_MESSAGE", "request", "is missing; send one message");
}

// DEADLINE_EXCEEDED (REQUEST_TIMEOUT): the request did not arrive within --receive-timeout.
inline absl::Status RequestTimeout() {
  return MakeError(absl::StatusCode::kDeadlineExceeded, "REQUEST_TIMEOUT",
                   "the request did not arrive whole within --receive-timeout; send it faster, in "
                   "smaller messages, or raise --receive-timeout");
}

// The most bytes that Protobuf can serialize.
inline constexpr size_t kMaxSerializedBytes = std::numeric_limits<int>::max();

// RESOURCE_EXHAUSTED (ANSWER_TOO_LARGE): `bytes` are then empty and must not be sent.
template <typename Message>
absl::Status SerializeMessage(const Message& message, grpc::ByteBuffer& bytes,
                              size_t max_bytes = kMaxSerializedBytes) {
  bytes.Clear();
  bool own_buffer = false;
  const size_t size = message.ByteSizeLong();
  if (size <= max_bytes &&
      grpc::SerializationTraits<Message>::Serialize(message, &bytes, &own_buffer).ok())
    return absl::OkStatus();
  bytes.Clear();
  return MakeError(absl::StatusCode::kResourceExhausted, "ANSWER_TOO_LARGE",
                   absl::StrCat("the answer has ", size, " bytes; a message can have at most ",
                                max_bytes, ": ask for less at once"),
                   {{"bytes", absl::StrCat(size)}, {"max_bytes", absl::StrCat(max_bytes)}});
}

// The most bytes that gRPC itself accepts for a message: enough that a message a few times too
// large gets MESSAGE_TOO_LARGE, not so much that one client fills the memory.
inline int TransportMessageBytes(size_t max_bytes) {
  constexpr size_t kMax = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(kMax, 4 * max_bytes));
}

// ---- Names of models, ids, page sizes and page tokens ----

// A model's resource name is "models/{model}".
inline constexpr absl::string_view kModelCollection = "models/";

// An alias's is "aliases/{alias}".
inline constexpr absl::string_view kAliasCollection = "aliases/";

// INVALID_ARGUMENT (INVALID_FIELD), naming `field`, unless `name` is "models/" and a model's id. For
// methods that take aliases, which have been replaced by models by then (CallAliases): NOT_FOUND
// (ALIAS_NOT_FOUND) for an alias.
absl::Status CheckModelName(absl::string_view name, absl::string_view field);
// The same for methods that take none: INVALID_ARGUMENT for an alias too.
absl::Status CheckNoAlias(absl::string_view name, absl::string_view field);
// The same for an alias's name.
absl::Status CheckAliasName(absl::string_view name, absl::string_view field);

// INVALID_ARGUMENT (INVALID_FIELD), naming `field`, if the id of a producer or a request has more
// than kMaxIdBytes. It may be empty.
absl::Status CheckId(absl::string_view id, absl::string_view field);

// The number of entries for one page: `standard` if the request's page_size is 0, and at most
// `maximum`. INVALID_ARGUMENT (INVALID_FIELD) for a negative one.
absl::StatusOr<size_t> ReadPageSize(int32_t page_size, size_t standard, size_t maximum);

// A page token holds the position where a list goes on, opaque to the caller: a resource's name, or
// numbers. `list` identifies the list, by its method and what the request selected: a token of one
// list is invalid for another. Tokens stay valid across restarts and on every server. Anyone can make
// one: its checksum tells a mistake and is no proof of origin, so readers check what a token holds.
std::string MakePageToken(absl::string_view list, absl::string_view name);
std::string MakePageToken(absl::string_view list, std::initializer_list<uint64_t> numbers);

// INVALID_ARGUMENT (INVALID_FIELD), naming page_token: the token is none of the list.
absl::Status BadPageToken(absl::string_view token);
// The name in a token: of the collection, such as kModelCollection; empty for an empty token.
// BadPageToken.
absl::StatusOr<std::string> ReadPageName(absl::string_view list, absl::string_view token,
                                         absl::string_view collection);
// The numbers in a token, as many as `count`; none for an empty token. BadPageToken.
absl::StatusOr<std::vector<uint64_t>> ReadPageNumbers(absl::string_view list,
                                                      absl::string_view token, size_t count);

}  // namespace perceptrond
