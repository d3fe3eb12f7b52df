#include "server/rpc/message_work.h"

#include <google/protobuf/io/coded_stream.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"

namespace perceptrond {

size_t ParsedBytes(const google::protobuf::Descriptor& type, grpc::ByteBuffer& bytes,
                   const ReadInPlace& in_place) {
  grpc::ProtoBufferReader reader(&bytes);
  // Nor can it be parsed then.
  if (!reader.status().ok()) return 0;
  google::protobuf::io::CodedInputStream in(&reader);
  return ParsedBytes(type, in, in_place);
}

absl::Status TooLargeOnceParsed(const MessageWork& work, size_t most) {
  return MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
                   absl::StrCat("the message of ", work.bytes, " bytes takes ", work.parsed_bytes,
                                " once it is parsed; the server has ", most,
                                " for one: send less at once, or raise --memory-budget, or "
                                "--in-flight-budget if it is set"),
                   {{"parsed_bytes", absl::StrCat(work.parsed_bytes)},
                    {"max_parsed_bytes", absl::StrCat(most)}});
}

}  // namespace perceptrond
