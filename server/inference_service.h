// inference.GRPCInferenceService, the Open Inference Protocol: adaptors between gRPC and
// server/inference.h.
#pragma once

#include <grpcpp/grpcpp.h>

#include "core/model/store.h"
#include "inference/inference_service.grpc.pb.h"
#include "server/drain.h"

namespace perceptrond {

// Takes raw bytes: see server/message.h.
class InferenceService final
    : public ::inference::GRPCInferenceService::WithRawCallbackMethod_ServerLive<
          ::inference::GRPCInferenceService::WithRawCallbackMethod_ServerReady<
              ::inference::GRPCInferenceService::WithRawCallbackMethod_ModelReady<
                  ::inference::GRPCInferenceService::WithRawCallbackMethod_ServerMetadata<
                      ::inference::GRPCInferenceService::WithRawCallbackMethod_ModelMetadata<
                          ::inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
                              ::inference::GRPCInferenceService::Service>>>>>> {
 public:
  InferenceService(Store& store, Drain& drain, size_t max_message_bytes)
      : store_(store), drain_(drain), max_message_bytes_(max_message_bytes) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* bytes,
                                       grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* bytes,
                                       grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const grpc::ByteBuffer* bytes,
                                           grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* bytes,
                                          grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* bytes,
                                       grpc::ByteBuffer* answer) override;

 private:
  Store& store_;
  Drain& drain_;
  const size_t max_message_bytes_;
};

}  // namespace perceptrond
