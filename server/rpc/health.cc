#include "server/rpc/health.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "grpc/health/v1/health.pb.h"
#include "server/rpc/call.h"
#include "server/rpc/message.h"
#include "server/rpc/router.h"
#include "server/rpc/status.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

namespace v1 = ::grpc::health::v1;

// Of a service's name, and some.
constexpr size_t kMostBytes = 64 << 10;

v1::HealthCheckResponse::ServingStatus StatusOf(const Health& health, const std::string& service) {
  if (!health.Knows(service)) return v1::HealthCheckResponse::SERVICE_UNKNOWN;
  return health.serving() ? v1::HealthCheckResponse::SERVING : v1::HealthCheckResponse::NOT_SERVING;
}

class Check final : public Reactor {
 public:
  Check(Call& call, const Health& health) : call_(call), health_(health) {}

  void Start() { call_.StartRead(&bytes_); }
  void OnReadDone(bool ok) override {
    v1::HealthCheckRequest request;
    v1::HealthCheckResponse response;
    absl::Status status = ok ? ParseMessage(bytes_, kMostBytes, request) : NoRequest();
    if (status.ok() && !health_.Knows(request.service())) {
      status = absl::NotFoundError(absl::StrCat("no service \"", request.service(), "\""));
    }
    if (status.ok()) {
      response.set_status(StatusOf(health_, request.service()));
      status = SerializeMessage(response, bytes_);
    }
    FinishUnary(call_, status, bytes_);
  }

 private:
  Call& call_;
  const Health& health_;
  grpc::ByteBuffer bytes_;
};

}  // namespace

// Writes the status, and again when it has changed.
class HealthWatch final : public Reactor, public std::enable_shared_from_this<HealthWatch> {
 public:
  HealthWatch(Call& call, Health& health) : call_(call), health_(health) {}

  void Start() { call_.StartRead(&incoming_); }
  void GetSummary() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    Tell();
  }

  void OnReadDone(bool ok) override {
    v1::HealthCheckRequest request;
    const absl::Status status = ok ? ParseMessage(incoming_, kMostBytes, request) : NoRequest();
    if (status.ok()) health_.Add(shared_from_this());
    MutexLock lock(&mutex_);
    if (!status.ok()) return Finish(ToGrpc(status));
    service_ = request.service();
    asked_ = true;
    Tell();
  }
  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) over_ = true;
    Tell();
  }
  void OnCancel() override {
    MutexLock lock(&mutex_);
    over_ = true;
    Tell();
  }

 private:
  void Tell() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (over_) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the watcher is gone"));
    if (!asked_) return;
    v1::HealthCheckResponse response;
    response.set_status(StatusOf(health_, service_));
    if (response.status() == told_) return;
    told_ = response.status();
    if (absl::Status status = SerializeMessage(response, outgoing_); !status.ok())
      return Finish(ToGrpc(status));
    writing_ = true;
    call_.StartWrite(outgoing_);
  }
  void Finish(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    call_.Finish(status);
  }

  Call& call_;
  Health& health_;
  grpc::ByteBuffer incoming_;

  Mutex mutex_;
  std::string service_ ABSL_GUARDED_BY(mutex_);
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  // What was said last; UNKNOWN is never said.
  v1::HealthCheckResponse::ServingStatus told_ ABSL_GUARDED_BY(mutex_) =
      v1::HealthCheckResponse::UNKNOWN;
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Nobody is there any more.
  bool over_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

Health::Health(Router& router) : router_(router) {
  const auto start = [this]<typename Kind>(Call& call) {
    const auto reactor = std::make_shared<Kind>(call, *this);
    call.Bind(reactor);
    reactor->Start();
  };
  router.AddService("grpc.health.v1.Health",
                    {{"Check", [start](Call& call) { start.operator()<Check>(call); }},
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
  std::vector<std::weak_ptr<HealthWatch>> watches;
  {
    MutexLock lock(&mutex_);
    serving_ = false;
    watches.swap(watches_);
  }
  for (const std::weak_ptr<HealthWatch>& watch : watches) {
    if (const auto alive = watch.lock()) alive->GetSummary();
  }
}

bool Health::serving() const {
  MutexLock lock(&mutex_);
  return serving_;
}

void Health::Add(const std::shared_ptr<HealthWatch>& watch) {
  MutexLock lock(&mutex_);
  if (watches_.size() >= sweep_at_) {
    std::erase_if(watches_, [](const std::weak_ptr<HealthWatch>& one) { return one.expired(); });
    sweep_at_ = std::max(kLeastSwept, 2 * watches_.size());
  }
  watches_.push_back(watch);
}

}  // namespace perceptrond
