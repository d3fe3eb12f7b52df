// perceptron.v1.ModelService: adaptors between gRPC and the store. Nothing is decided here.
#pragma once

namespace perceptrond {

class Router;
struct Backend;

void AddModelService(Router& router, const Backend& backend);

}  // namespace perceptrond
