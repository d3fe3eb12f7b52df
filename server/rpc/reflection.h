// The service grpc.reflection.v1alpha.ServerReflection: descriptors of services and messages.
#pragma once

namespace perceptrond {

class Router;

// Lists the router's services, including this one and those added later, and describes every proto
// that is linked in. The router must outlive its calls.
void AddReflectionService(Router& router);

}  // namespace perceptrond
