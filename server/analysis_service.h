// perceptron.v1.AnalysisService: adaptors between gRPC and what models retain.
#pragma once

#include <grpcpp/grpcpp.h>

#include "core/model/store.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "server/analysis_queue.h"
#include "server/drain.h"

namespace perceptrond {

// Takes raw bytes: see server/message.h.
class AnalysisService final
    : public ::perceptron::v1::AnalysisService::WithRawCallbackMethod_Analyze<
          ::perceptron::v1::AnalysisService::WithRawCallbackMethod_ListRetainedExamples<
              ::perceptron::v1::AnalysisService::Service>> {
 public:
  AnalysisService(Store& store, Drain& drain, size_t max_message_bytes)
      : store_(store), drain_(drain), max_message_bytes_(max_message_bytes) {}

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Analyze(grpc::CallbackServerContext* context,
                                                      const grpc::ByteBuffer* bytes) override;
  grpc::ServerUnaryReactor* ListRetainedExamples(grpc::CallbackServerContext* context,
                                                 const grpc::ByteBuffer* bytes,
                                                 grpc::ByteBuffer* answer) override;

 private:
  Store& store_;
  Drain& drain_;
  const size_t max_message_bytes_;
  AnalysisQueue queue_;
};

}  // namespace perceptrond
