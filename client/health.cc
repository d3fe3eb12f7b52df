#include "client/health.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include <future>
#include <vector>

namespace perceptrond::client {
namespace {

using google::protobuf::internal::WireFormatLite;

grpc::ByteBuffer EncodeRequest(const std::string& service) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream out(&stream);
    if (!service.empty()) WireFormatLite::WriteString(1, service, &out);
  }
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

// HealthCheckResponse.status; UNKNOWN where absent.
bool DecodeResponse(const grpc::ByteBuffer& buffer, Health* health) {
  std::vector<grpc::Slice> slices;
  if (!buffer.Dump(&slices).ok()) return false;
  std::string bytes;
  for (const grpc::Slice& slice : slices) {
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                                            static_cast<int>(bytes.size()));
  *health = Health::kUnknown;
  while (const uint32_t tag = in.ReadTag()) {
    if (tag != WireFormatLite::MakeTag(1, WireFormatLite::WIRETYPE_VARINT)) {
      if (!WireFormatLite::SkipField(&in, tag)) return false;
      continue;
    }
    uint32_t value = 0;
    if (!in.ReadVarint32(&value)) return false;
    *health = value <= 3 ? static_cast<Health>(value) : Health::kUnknown;
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

grpc::Status CheckHealthOver(const std::shared_ptr<grpc::Channel>& channel,
                             grpc::ClientContext* context, const std::string& service,
                             Health* health) {
  grpc::GenericStub stub(channel);
  const grpc::ByteBuffer request = EncodeRequest(service);
  grpc::ByteBuffer response;
  std::promise<grpc::Status> answered;
  stub.UnaryCall(context, "/grpc.health.v1.Health/Check", grpc::StubOptions(), &request, &response,
                 [&answered](grpc::Status status) { answered.set_value(std::move(status)); });
  grpc::Status status = answered.get_future().get();
  if (status.ok() && !DecodeResponse(response, health)) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "the answer is no HealthCheckResponse");
  }
  return status;
}

}  // namespace perceptrond::client
