#include "server/inference_service.h"

#include "server/inference.h"
#include "server/unary.h"

namespace perceptrond {

namespace oip = ::inference;

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* bytes,
                                                       grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ServerLiveRequest, oip::ServerLiveResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [](const auto& /*request*/, auto& response) {
        response.set_live(true);
        return absl::OkStatus();
      },
      /*while_draining=*/true);
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const grpc::ByteBuffer* bytes,
                                                        grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ServerReadyRequest, oip::ServerReadyResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [this](const auto& /*request*/, auto& response) {
        response.set_ready(!drain_.draining());
        return absl::OkStatus();
      },
      /*while_draining=*/true);
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* bytes,
                                                       grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ModelReadyRequest, oip::ModelReadyResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [this](const auto& request, auto& response) {
        absl::Status status = SayWhetherReady(store_, request, response);
        if (drain_.draining()) response.set_ready(false);
        return status;
      },
      /*while_draining=*/true);
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(grpc::CallbackServerContext* context,
                                                           const grpc::ByteBuffer* bytes,
                                                           grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ServerMetadataRequest, oip::ServerMetadataResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [](const auto& /*request*/, auto& response) {
        DescribeServer(response);
        return absl::OkStatus();
      });
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(grpc::CallbackServerContext* context,
                                                          const grpc::ByteBuffer* bytes,
                                                          grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ModelMetadataRequest, oip::ModelMetadataResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [this](const auto& request, auto& response) {
        return DescribeModel(store_, request, response);
      });
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* bytes,
                                                       grpc::ByteBuffer* answer) {
  return AnswerUnary<oip::ModelInferRequest, oip::ModelInferResponse>(
      context, drain_, max_message_bytes_, *bytes, *answer,
      [this](const auto& request, auto& response) { return Infer(store_, request, response); });
}

}  // namespace perceptrond
