#include "server/metrics/rpc_metrics.h"

#include <grpcpp/server_context.h>
#include <grpcpp/support/status.h>
#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/metrics/family.h"

namespace perceptrond {
namespace {

constexpr size_t kUnknownCode = grpc::StatusCode::UNKNOWN;

using Clock = std::chrono::steady_clock;
using grpc::experimental::InterceptionHookPoints;

std::string Path(absl::string_view service, absl::string_view method) {
  return absl::StrCat("/", service, "/", method);
}

// Counts one RPC. Reads and writes of a stream may call it at the same time.
class RpcMetricsInterceptor final : public grpc::experimental::Interceptor {
 public:
  RpcMetricsInterceptor(RpcMethodMetrics& method, const grpc::ServerContextBase& context)
      : method_(method), context_(context), start_(Clock::now()) {
    method_.Started();
  }
  // The RPC has ended; without a status if the connection was lost or the client cancelled it.
  ~RpcMetricsInterceptor() override { Handled(grpc::StatusCode::CANCELLED); }

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    // The end of a client's messages is reported here too, without a message.
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_MESSAGE) &&
        batch->GetRecvMessage() != nullptr) {
      method_.Received();
    }
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_MESSAGE)) {
      method_.Sent();
    }
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      const int code = batch->GetSendStatus().error_code();
      // A stream whose client is gone may be finished with OK, which is not received.
      Handled(code == grpc::StatusCode::OK && context_.IsCancelled() ? grpc::StatusCode::CANCELLED
                                                                     : code);
    }
    batch->Proceed();
  }

 private:
  void Handled(int code) {
    if (!handled_.exchange(true, std::memory_order_relaxed)) {
      method_.Handled(static_cast<size_t>(code), absl::FromChrono(Clock::now() - start_));
    }
  }

  RpcMethodMetrics& method_;
  const grpc::ServerContextBase& context_;
  const Clock::time_point start_;
  std::atomic<bool> handled_{false};
};

class Factory final : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  explicit Factory(const RpcMetrics& metrics) : metrics_(metrics) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(
      grpc::experimental::ServerRpcInfo* info) override {
    // gRPC asks also for the call that a server still awaits as it stops.
    if (*info->method() == '\0') return nullptr;
    return new RpcMetricsInterceptor(metrics_.Find(info->method()), *info->server_context());
  }

 private:
  const RpcMetrics& metrics_;
};

}  // namespace

const char* RpcTypeName(RpcType type) {
  switch (type) {
    case RpcType::kUnary:
      return "unary";
    case RpcType::kClientStream:
      return "client_stream";
    case RpcType::kServerStream:
      return "server_stream";
    case RpcType::kBidiStream:
      return "bidi_stream";
    case RpcType::kUnknown:
      break;
  }
  return "unknown";
}

const char* RpcCodeName(size_t code) {
  static constexpr std::array<const char*, kRpcCodes> kNames = {
      "OK",       "Canceled",       "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  return kNames[code < kNames.size() ? code : kUnknownCode];
}

void RpcMethodMetrics::Handled(size_t code, absl::Duration took) {
  const auto bound = std::lower_bound(kRpcLatencyBounds.begin(), kRpcLatencyBounds.end(),
                                      absl::ToDoubleSeconds(took));
  buckets_[bound - kRpcLatencyBounds.begin()].fetch_add(1, std::memory_order_relaxed);
  latency_nanoseconds_.fetch_add(static_cast<uint64_t>(absl::ToInt64Nanoseconds(took)),
                                 std::memory_order_relaxed);
  handled_[code < kRpcCodes ? code : kUnknownCode].fetch_add(1, std::memory_order_relaxed);
}

uint64_t RpcMethodMetrics::handled() const {
  uint64_t sum = 0;
  for (size_t code = 0; code < kRpcCodes; ++code) sum += handled(code);
  return sum;
}

double RpcMethodMetrics::latency_sum_seconds() const {
  return static_cast<double>(latency_nanoseconds_.load(std::memory_order_relaxed)) * 1e-9;
}

RpcMetrics::RpcMetrics()
    : unknown_(std::make_unique<RpcMethodMetrics>(RpcType::kUnknown, "unknown", "unknown")) {}

void RpcMetrics::Add(RpcType type, absl::string_view service, absl::string_view method) {
  auto [known, added] = by_path_.try_emplace(Path(service, method), nullptr);
  if (!added) return;
  methods_.push_back(
      std::make_unique<RpcMethodMetrics>(type, std::string(service), std::string(method)));
  known->second = methods_.back().get();
}

void RpcMetrics::AddService(const google::protobuf::ServiceDescriptor& service) {
  for (int i = 0; i < service.method_count(); ++i) {
    const google::protobuf::MethodDescriptor& method = *service.method(i);
    const RpcType type =
        method.client_streaming()
            ? (method.server_streaming() ? RpcType::kBidiStream : RpcType::kClientStream)
            : (method.server_streaming() ? RpcType::kServerStream : RpcType::kUnary);
    Add(type, service.full_name(), method.name());
  }
}

RpcMethodMetrics& RpcMetrics::Find(absl::string_view path) const {
  const auto found = by_path_.find(path);
  return found == by_path_.end() ? *unknown_ : *found->second;
}

std::vector<const RpcMethodMetrics*> RpcMetrics::methods() const {
  std::vector<const RpcMethodMetrics*> methods;
  methods.reserve(methods_.size() + 1);
  for (const auto& method : methods_) methods.push_back(method.get());
  methods.push_back(unknown_.get());
  return methods;
}

uint64_t RpcMetrics::in_flight() const {
  uint64_t in_flight = 0;
  for (const RpcMethodMetrics* method : methods()) {
    // In this order: an RPC that ends in between counts as started, so that the difference is not
    // negative.
    const uint64_t handled = method->handled();
    in_flight += method->started() - handled;
  }
  return in_flight;
}

std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> MakeRpcMetricsInterceptor(
    const RpcMetrics& metrics) {
  return std::make_unique<Factory>(metrics);
}

namespace {

MetricLabels RpcLabels(const RpcMethodMetrics& method) {
  return {{"grpc_type", RpcTypeName(method.type())},
          {"grpc_service", method.service()},
          {"grpc_method", method.method()}};
}

// Exports every code from the start, as go-grpc-prometheus does: a rate includes the first failure
// only if the series was 0 before.
void AppendHandled(const std::vector<const RpcMethodMetrics*>& methods, MetricFamilies& families) {
  MetricFamily family{
      "grpc_server_handled_total",
      "Total number of RPCs completed on the server, regardless of success or failure.",
      MetricKind::kCounter};
  for (const RpcMethodMetrics* method : methods) {
    for (size_t code = 0; code < kRpcCodes; ++code) {
      MetricLabels labels = RpcLabels(*method);
      labels.emplace_back("grpc_code", RpcCodeName(code));
      family.Add(std::move(labels), static_cast<double>(method->handled(code)));
    }
  }
  Append(std::move(family), families);
}

MetricHistogram Latencies(const RpcMethodMetrics& method) {
  MetricHistogram histogram;
  uint64_t count = 0;
  for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) {
    count += method.latency_bucket(i);
    const double bound = i < kRpcLatencyBounds.size() ? kRpcLatencyBounds[i]
                                                      : std::numeric_limits<double>::infinity();
    histogram.buckets.push_back({bound, count});
  }
  histogram.sum = method.latency_sum_seconds();
  return histogram;
}

void AppendLatencies(const std::vector<const RpcMethodMetrics*>& methods,
                     MetricFamilies& families) {
  MetricFamily family{
      "grpc_server_handling_seconds",
      "Histogram of response latency (seconds) of gRPC that had been application-level handled by "
      "the server.",
      MetricKind::kHistogram};
  for (const RpcMethodMetrics* method : methods) {
    family.samples.push_back({RpcLabels(*method), 0, Latencies(*method)});
  }
  Append(std::move(family), families);
}

}  // namespace

void AppendRpcFamilies(const RpcMetrics& rpc, MetricFamilies& families) {
  const std::vector<const RpcMethodMetrics*> methods = rpc.methods();
  const auto counter = [&](const char* name, const char* help,
                           uint64_t (RpcMethodMetrics::*value)() const) {
    MetricFamily family{name, help, MetricKind::kCounter};
    for (const RpcMethodMetrics* method : methods) {
      family.Add(RpcLabels(*method), static_cast<double>((method->*value)()));
    }
    Append(std::move(family), families);
  };
  counter("grpc_server_started_total", "Total number of RPCs started on the server.",
          &RpcMethodMetrics::started);
  counter("grpc_server_msg_received_total",
          "Total number of RPC stream messages received on the server.",
          &RpcMethodMetrics::received);
  counter("grpc_server_msg_sent_total", "Total number of gRPC stream messages sent by the server.",
          &RpcMethodMetrics::sent);
  AppendHandled(methods, families);
  AppendLatencies(methods, families);
  AppendSingle("perceptrond_in_flight_rpcs", "RPCs in flight: started and not finished.",
               MetricKind::kGauge, static_cast<double>(rpc.in_flight()), families);
}

}  // namespace perceptrond
