// perceptron.v1.ModelService: adaptors between gRPC and the store. Nothing is decided here.
#pragma once

#include <grpcpp/grpcpp.h>

#include "core/model/store.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "server/drain.h"

namespace perceptrond {

// Takes raw bytes: see server/message.h.
class ModelService final
    : public ::perceptron::v1::ModelService::WithRawCallbackMethod_CreateModel<
          ::perceptron::v1::ModelService::WithRawCallbackMethod_GetModel<
              ::perceptron::v1::ModelService::WithRawCallbackMethod_ListModels<
                  ::perceptron::v1::ModelService::WithRawCallbackMethod_UpdateModel<
                      ::perceptron::v1::ModelService::WithRawCallbackMethod_DeleteModel<
                          ::perceptron::v1::ModelService::WithRawCallbackMethod_FreezeModel<
                              ::perceptron::v1::ModelService::WithRawCallbackMethod_UnfreezeModel<
                                  ::perceptron::v1::ModelService::Service>>>>>>> {
 public:
  ModelService(Store& store, Drain& drain, size_t max_message_bytes)
      : store_(store), drain_(drain), max_message_bytes_(max_message_bytes) {}

  grpc::ServerUnaryReactor* CreateModel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* bytes,
                                     grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* bytes,
                                       grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* UpdateModel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* DeleteModel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* FreezeModel(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* bytes,
                                        grpc::ByteBuffer* answer) override;
  grpc::ServerUnaryReactor* UnfreezeModel(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* bytes,
                                          grpc::ByteBuffer* answer) override;

 private:
  // Runs one method's body on its request.
  template <typename Request, typename Response, typename Body>
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* bytes, grpc::ByteBuffer* answer,
                                   const Body& body);

  Store& store_;
  Drain& drain_;
  const size_t max_message_bytes_;
};

}  // namespace perceptrond
