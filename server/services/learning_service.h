// perceptron.v1.LearningService: adaptors between gRPC and the store. Nothing is decided here.
#pragma once

#include "server/sessions/stream_limits.h"

namespace perceptrond {

class Router;
struct Backend;

void AddLearningService(Router& router, const Backend& backend, const StreamLimits& limits);

}  // namespace perceptrond
