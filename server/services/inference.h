// The Open Inference Protocol without its transport: what each method answers. Every error is one
// of proto/inference/inference_service.proto.
#pragma once

#include "absl/status/status.h"
#include "core/model/store.h"
#include "inference/inference_service.pb.h"

namespace perceptrond {

// Thread contract of all: any thread; each call is answered from one revision of the model.

absl::Status Infer(Store& store, const ::inference::ModelInferRequest& request,
                   ::inference::ModelInferResponse& response);

absl::Status DescribeModel(Store& store, const ::inference::ModelMetadataRequest& request,
                           ::inference::ModelMetadataResponse& response);

// Loads the model.
absl::Status SayWhetherReady(Store& store, const ::inference::ModelReadyRequest& request,
                             ::inference::ModelReadyResponse& response);

void DescribeServer(::inference::ServerMetadataResponse& response);

}  // namespace perceptrond
