// perceptron.v1.LearningService: adaptors between gRPC and the store. Nothing is decided here.
#pragma once

#include <grpcpp/grpcpp.h>

#include "core/model/store.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "server/drain.h"
#include "server/stream_limits.h"

namespace perceptrond {

// Takes raw bytes: see server/message.h.
class LearningService final
    : public ::perceptron::v1::LearningService::WithRawCallbackMethod_LearnStream<
          ::perceptron::v1::LearningService::WithRawCallbackMethod_PredictStream<
              ::perceptron::v1::LearningService::WithRawCallbackMethod_Learn<
                  ::perceptron::v1::LearningService::WithRawCallbackMethod_Predict<
                      ::perceptron::v1::LearningService::WithRawCallbackMethod_Explain<
                          ::perceptron::v1::LearningService::WithRawCallbackMethod_WatchModel<
                              ::perceptron::v1::LearningService::Service>>>>>> {
 public:
  LearningService(Store& store, Drain& drain, const StreamLimits& limits)
      : store_(store), drain_(drain), limits_(limits) {}

  grpc::ServerUnaryReactor* Learn(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* bytes, grpc::ByteBuffer* answer) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* LearnStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* bytes,
                                    grpc::ByteBuffer* answer) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* PredictStream(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* bytes,
                                    grpc::ByteBuffer* answer) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* WatchModel(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* bytes) override;

 private:
  Store& store_;
  Drain& drain_;
  const StreamLimits limits_;
};

}  // namespace perceptrond
