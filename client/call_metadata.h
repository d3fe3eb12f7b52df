// What a client sends with each call besides its message: a token, and where the call belongs in a
// trace.
//
//   ClientOptions options;
//   options.metadata.token_file = "/run/secrets/perceptrond";
//   auto client = Client::Connect("perceptrond.example:7600", options);
#pragma once

#include <grpcpp/support/client_interceptor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace perceptrond::client {

// A plain value.
struct CallMetadata {
  // A bearer token, or a file that has one and nothing else; at most one of the two. The file is
  // read at the first call, and again when the server refuses the token: if it has another one by
  // then, the call ends with UNAVAILABLE, so that it is retried like one whose connection broke.
  std::string token;
  std::string token_file;
  // Send the token also over connections to other machines that are not encrypted, where everybody
  // on the way can read it. Otherwise such calls end with UNAUTHENTICATED, and send none.
  bool token_without_tls = false;
  // Returns the W3C traceparent of the caller, "00-<32 digits>-<16 digits>-01"; empty for none.
  // Called by the thread that starts a call. May be null.
  std::function<std::string()> traceparent;
};

// Whether the address is one of this machine: a Unix socket, localhost, 127.0.0.0/8 or ::1.
bool IsLocalAddress(const std::string& address);

// For grpc::experimental::CreateCustomChannelWithInterceptors: sends the metadata with each call.
// Empty if there is none. `encrypted`: whether the channel uses TLS. Threads: any.
std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
MakeMetadataInterceptors(const CallMetadata& metadata, const std::string& address, bool encrypted);

}  // namespace perceptrond::client
