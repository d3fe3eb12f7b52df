#include "server/rpc/health.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/acceptor.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

namespace health_v1 = ::grpc::health::v1;

constexpr absl::string_view kLearningService = "perceptron.v1.LearningService";
constexpr absl::string_view kPredictionServices[] = {"perceptron.v1.PredictionService",
                                                     "inference.GRPCInferenceService"};

health_v1::HealthCheckResponse::ServingStatus StatusOf(const Health& health,
                                                       const std::string& service) {
  if (!health.Knows(service)) return health_v1::HealthCheckResponse::SERVICE_UNKNOWN;
  return health.IsServing(service) ? health_v1::HealthCheckResponse::SERVING
                                   : health_v1::HealthCheckResponse::NOT_SERVING;
}

absl::Status UnknownService(const std::string& service) {
  return MakeError(absl::StatusCode::kNotFound, "UNKNOWN_SERVICE",
                   absl::StrCat("this server has no service \"", absl::Utf8SafeCHexEscape(service),
                                "\"; send \"\" to ask about the server as a whole"),
                   {{"service", service}});
}

class HealthCheck final : public Reactor {
 public:
  HealthCheck(Call& call, const Health& health) : call_(call), health_(health) {}

  void Start() { call_.StartReadRequest(&bytes_); }
  void OnReadDone(bool ok) override {
    if (decided_.exchange(true)) return;
    health_v1::HealthCheckRequest request;
    health_v1::HealthCheckResponse response;
    absl::Status status = ok ? ParseSmallRequest(bytes_, request) : MissingRequest();
    if (status.ok() && !health_.Knows(request.service()))
      status = UnknownService(request.service());
    if (status.ok()) {
      response.set_status(StatusOf(health_, request.service()));
      status = SerializeMessage(response, bytes_);
    }
    FinishUnary(call_, status, bytes_);
  }
  void OnRequestTimeout() override {
    if (!decided_.exchange(true)) call_.Finish(ToGrpc(RequestTimeout()));
  }

 private:
  Call& call_;
  const Health& health_;
  grpc::ByteBuffer bytes_;
  // Whether the request has arrived or its time is over.
  std::atomic<bool> decided_{false};
};

}  // namespace

// Writes the status, and writes it again when it changes.
class HealthWatch final : public Reactor, public std::enable_shared_from_this<HealthWatch> {
 public:
  HealthWatch(Call& call, Health& health) : call_(call), health_(health), writer_(call) {}

  void Start() { call_.StartReadRequest(&incoming_); }
  void OnStatusChanged() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    WriteStatus();
  }

  void OnReadDone(bool ok) override {
    health_v1::HealthCheckRequest request;
    const absl::Status status = ok ? ParseSmallRequest(incoming_, request) : MissingRequest();
    if (status.ok()) health_.Add(shared_from_this());
    MutexLock lock(&mutex_);
    if (!status.ok()) return writer_.Finish(status);
    service_ = request.service();
    WriteStatus();
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writer_.OnWriteDone(ok);
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    writer_.Finish(CancelledError());
  }
  void OnRequestTimeout() override {
    MutexLock lock(&mutex_);
    writer_.Finish(RequestTimeout());
  }

 private:
  // Writes the status unless it was the last one written.
  void WriteStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!service_.has_value()) return;
    health_v1::HealthCheckResponse response;
    response.set_status(StatusOf(health_, *service_));
    if (response.status() == last_status_) return;
    last_status_ = response.status();
    writer_.Write(response);
  }

  Call& call_;
  Health& health_;
  grpc::ByteBuffer incoming_;

  Mutex mutex_;
  // Absent until the request is read.
  std::optional<std::string> service_ ABSL_GUARDED_BY(mutex_);
  // The status written last; initially UNKNOWN, which is never written.
  health_v1::HealthCheckResponse::ServingStatus last_status_ ABSL_GUARDED_BY(mutex_) =
      health_v1::HealthCheckResponse::UNKNOWN;
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
};

Health::Health(Router& router) : router_(router) {
  const auto start = [this]<typename Kind>(Call& call) {
    const auto reactor = std::make_shared<Kind>(call, *this);
    call.Bind(reactor);
    reactor->Start();
  };
  router.AddService("grpc.health.v1.Health",
                    {{"Check", [start](Call& call) { start.operator()<HealthCheck>(call); }},
                     {"Watch", [start](Call& call) { start.operator()<HealthWatch>(call); }}});
}

bool Health::Knows(const std::string& service) const {
  return service.empty() ||
         std::ranges::any_of(router_.services(),
                             [&](const google::protobuf::ServiceDescriptor* one) {
                               return one->full_name() == service;
                             });
}

void Health::Stop() {
  {
    MutexLock lock(&mutex_);
    serving_ = false;
  }
  Notify();
}

void Health::SetLearning(bool can_learn) {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(can_learn_, can_learn) == can_learn) return;
  }
  Notify();
}

void Health::SetPredicting(bool should_predict) {
  {
    MutexLock lock(&mutex_);
    if (std::exchange(should_predict_, should_predict) == should_predict) return;
  }
  Notify();
}

void Health::Notify() {
  std::vector<std::weak_ptr<HealthWatch>> watches;
  {
    MutexLock lock(&mutex_);
    watches = watches_;
  }
  for (const std::weak_ptr<HealthWatch>& watch : watches) {
    if (const auto alive = watch.lock()) alive->OnStatusChanged();
  }
}

bool Health::IsServing(const std::string& service) const {
  MutexLock lock(&mutex_);
  if (!serving_) return false;
  if (service == kLearningService) return can_learn_;
  return should_predict_ ||
         std::ranges::find(kPredictionServices, service) == std::end(kPredictionServices);
}

void Health::Add(const std::shared_ptr<HealthWatch>& watch) {
  MutexLock lock(&mutex_);
  if (watches_.size() >= cleanup_size_) {
    std::erase_if(watches_, [](const std::weak_ptr<HealthWatch>& one) { return one.expired(); });
    cleanup_size_ = std::max(kMinCleanupSize, 2 * watches_.size());
  }
  watches_.push_back(watch);
}

}  // namespace perceptrond
