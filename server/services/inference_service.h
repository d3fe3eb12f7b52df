// inference.GRPCInferenceService, the Open Inference Protocol: adaptors between gRPC and
// server/services/inference.h.
#pragma once

namespace perceptrond {

class Router;
struct Backend;

void AddInferenceService(Router& router, const Backend& backend);

}  // namespace perceptrond
