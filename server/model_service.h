// perceptron.v1.ModelService: adaptors between gRPC and the store. Nothing is decided here.
#pragma once

#include <grpcpp/grpcpp.h>

#include "core/model/store.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "server/drain.h"

namespace perceptrond {

class ModelService final : public ::perceptron::v1::ModelService::CallbackService {
 public:
  ModelService(Store& store, Drain& drain) : store_(store), drain_(drain) {}

  grpc::ServerUnaryReactor* CreateModel(grpc::CallbackServerContext* context,
                                        const ::perceptron::v1::CreateModelRequest* request,
                                        ::perceptron::v1::Model* response) override;
  grpc::ServerUnaryReactor* GetModel(grpc::CallbackServerContext* context,
                                     const ::perceptron::v1::GetModelRequest* request,
                                     ::perceptron::v1::Model* response) override;
  grpc::ServerUnaryReactor* ListModels(grpc::CallbackServerContext* context,
                                       const ::perceptron::v1::ListModelsRequest* request,
                                       ::perceptron::v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* UpdateModel(grpc::CallbackServerContext* context,
                                        const ::perceptron::v1::UpdateModelRequest* request,
                                        ::perceptron::v1::Model* response) override;
  grpc::ServerUnaryReactor* DeleteModel(grpc::CallbackServerContext* context,
                                        const ::perceptron::v1::DeleteModelRequest* request,
                                        google::protobuf::Empty* response) override;
  grpc::ServerUnaryReactor* FreezeModel(grpc::CallbackServerContext* context,
                                        const ::perceptron::v1::FreezeModelRequest* request,
                                        ::perceptron::v1::Model* response) override;
  grpc::ServerUnaryReactor* UnfreezeModel(grpc::CallbackServerContext* context,
                                          const ::perceptron::v1::UnfreezeModelRequest* request,
                                          ::perceptron::v1::Model* response) override;

 private:
  // The model as it is after its settings or state changed.
  absl::Status SetState(const std::string& name, const std::string& etag,
                        ::perceptron::v1::ModelState state, ::perceptron::v1::Model& response);

  Store& store_;
  Drain& drain_;
};

}  // namespace perceptrond
