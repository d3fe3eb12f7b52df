// Counts RPCs by method, as go-grpc-prometheus does, from a gRPC interceptor. AppendRpcFamilies of
// server/metrics/family.h makes metrics from them.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/server_interceptor.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace perceptrond {

enum class RpcType : uint8_t { kUnary, kClientStream, kServerStream, kBidiStream, kUnknown };

// "unary", "client_stream", "server_stream", "bidi_stream", "unknown".
const char* RpcTypeName(RpcType type);

inline constexpr size_t kRpcCodes = 17;

// The name of a status code in gRPC for Go: "OK", "Canceled", "InvalidArgument"; "Unknown" for an
// unknown number.
const char* RpcCodeName(size_t code);

// Upper bounds of the latency histogram in seconds; a last bucket has no bound.
inline constexpr std::array<double, 19> kRpcLatencyBounds = {
    50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3,
    0.1,   0.25,   0.5,    1,      2.5,  5,      10,   30,    60};

// The counts of one method. Thread contract: any thread may call any method; several reads are not
// a consistent snapshot.
class RpcMethodMetrics {
 public:
  RpcMethodMetrics(RpcType type, std::string service, std::string method)
      : type_(type), service_(std::move(service)), method_(std::move(method)) {}
  RpcMethodMetrics(const RpcMethodMetrics&) = delete;
  RpcMethodMetrics& operator=(const RpcMethodMetrics&) = delete;

  RpcType type() const { return type_; }
  const std::string& service() const { return service_; }
  const std::string& method() const { return method_; }

  void Started() { started_.fetch_add(1, std::memory_order_relaxed); }
  void Received() { received_.fetch_add(1, std::memory_order_relaxed); }
  void Sent() { sent_.fetch_add(1, std::memory_order_relaxed); }
  // code: a grpc::StatusCode.
  void Handled(size_t code, absl::Duration took);

  uint64_t started() const { return started_.load(std::memory_order_relaxed); }
  uint64_t received() const { return received_.load(std::memory_order_relaxed); }
  uint64_t sent() const { return sent_.load(std::memory_order_relaxed); }
  uint64_t handled(size_t code) const { return handled_[code].load(std::memory_order_relaxed); }
  uint64_t handled() const;
  // Not cumulative.
  uint64_t latency_bucket(size_t i) const { return buckets_[i].load(std::memory_order_relaxed); }
  double latency_sum_seconds() const;

 private:
  const RpcType type_;
  const std::string service_;
  const std::string method_;
  std::atomic<uint64_t> started_{0};
  std::atomic<uint64_t> received_{0};
  std::atomic<uint64_t> sent_{0};
  std::array<std::atomic<uint64_t>, kRpcCodes> handled_{};
  std::array<std::atomic<uint64_t>, kRpcLatencyBounds.size() + 1> buckets_{};
  std::atomic<uint64_t> latency_nanoseconds_{0};
};

// The counts of all known methods. Calls of any other path are counted for one method named
// "unknown", so that a client cannot create series. Thread contract: Add before the server starts;
// then any thread may read. Must outlive the server.
class RpcMetrics {
 public:
  RpcMetrics();

  // Adds a method unless it was added before.
  void Add(RpcType type, absl::string_view service, absl::string_view method);
  // Adds all methods of a service: AddService(*v1::Example::descriptor()->file()->service(0)).
  void AddService(const google::protobuf::ServiceDescriptor& service);

  // The counts for a path on the wire: "/perceptron.v1.ModelService/GetModel".
  RpcMethodMetrics& Find(absl::string_view path) const;
  // All methods, in the order they were added, with "unknown" last.
  std::vector<const RpcMethodMetrics*> methods() const;
  // RPCs that were started and have not finished.
  uint64_t in_flight() const;

 private:
  std::vector<std::unique_ptr<RpcMethodMetrics>> methods_;
  absl::flat_hash_map<std::string, RpcMethodMetrics*> by_path_;
  const std::unique_ptr<RpcMethodMetrics> unknown_;
};

// Creates the interceptor that feeds `metrics`, for
// ServerBuilder::experimental().SetInterceptorCreators. Works for all of gRPC's server APIs,
// including raw and generic methods. An RPC counts as handled when its status is passed to gRPC,
// before the client receives it. An RPC without a status, or with OK after the client cancelled it,
// counts as Canceled.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetricsInterceptor(
    const RpcMetrics& metrics);

}  // namespace perceptrond
