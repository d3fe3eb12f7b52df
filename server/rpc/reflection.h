// grpc.reflection.v1alpha.ServerReflection: what the server's services and messages are.
#pragma once

namespace perceptrond {

class Router;

// Lists the router's services, this one and those added later among them; describes every proto
// that is linked in. The router must outlive its calls.
void AddReflectionService(Router& router);

}  // namespace perceptrond
