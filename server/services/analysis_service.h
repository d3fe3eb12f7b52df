// perceptron.v1.AnalysisService: adaptors between gRPC and what models retain.
#pragma once

namespace perceptrond {

class AnalysisQueue;
class Router;
struct Backend;

// The queue must outlive the router's calls.
void AddAnalysisService(Router& router, const Backend& backend, AnalysisQueue& queue);

}  // namespace perceptrond
