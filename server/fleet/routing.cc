#include "server/fleet/routing.h"

#include <atomic>
#include <utility>

#include "core/error/error.h"
#include "core/fleet/fleet.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "server/rpc/message.h"
#include "server/rpc/unary.h"

namespace perceptrond {
namespace {

Destination Nowhere(absl::Status why) {
  Destination destination;
  destination.error = std::move(why);
  return destination;
}

}  // namespace

// Reads the first message, then passes callbacks on to whatever reactor handles the call.
class RoutingReactor final : public Reactor, public std::enable_shared_from_this<RoutingReactor> {
 public:
  RoutingReactor(Call& call, const Routing& routing, const RoutedMethod& method)
      : call_(call), routing_(routing), method_(method) {}

  void Start() {
    // Messages of streams are timed one by one.
    if (!method_.names.is_stream() && call_.slow_calls().enabled())
      call_.timing().Start(Part::kReceive, EventTime());
    call_.UseMemory(routing_.backend_.memory);
    call_.StartReadRequest(&first_);
  }

  void OnReadDone(bool ok) override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) return bound->OnReadDone(ok);
    if (decided_.exchange(true)) return;
    if (!ok) return call_.Finish(ToGrpc(MissingRequest()));
    if (absl::Status status = HoldRequest(call_, routing_.backend_, first_); !status.ok())
      return call_.Finish(ToGrpc(status));
    call_.timing().SwitchAt(Part::kQueue, EventTime());
    NamedModels named;
    // A malformed message, or one without a model, is for the method to refuse.
    if (!method_.names.Read(first_, named) || named.model.empty()) return RunHere();
    if (method_.runs_at == RunsAt::kAnyWriter) return Go(routing_.FindAnyWriter());
    if (method_.runs_at == RunsAt::kSourceWriter) {
      if (named.other_model.empty()) return RunHere();
      named.model = std::move(named.other_model);
    }
    call_.timing().model = named.model.substr(0, CallTiming::kMaxNameBytes);
    if (std::optional<Destination> known = routing_.FindLoaded(named.model, method_.without_writer))
      return Go(*known);
    routing_.backend_.workers.Schedule(
        WorkSize::kManagement, [self = shared_from_this(), model = std::move(named.model)] {
          self->Go(self->routing_.Find(model, self->method_.without_writer));
        });
  }
  void OnRequestTimeout() override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) return bound->OnRequestTimeout();
    if (!decided_.exchange(true)) call_.Finish(ToGrpc(RequestTimeout()));
  }
  void OnWriteDone(bool ok) override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) bound->OnWriteDone(ok);
  }
  void OnFlush() override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) bound->OnFlush();
  }
  void OnAlarm(bool ok) override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) bound->OnAlarm(ok);
  }
  void OnCancel() override {
    {
      MutexLock lock(&mutex_);
      cancelled_ = true;
    }
    PassOnCancel();
  }
  void OnDone() override {
    if (const std::shared_ptr<Reactor> bound = this->bound()) bound->OnDone();
  }

 private:
  std::shared_ptr<Reactor> bound() const {
    MutexLock lock(&mutex_);
    return bound_;
  }

  void Go(const Destination& destination) {
    if (!destination.error.ok()) return call_.Finish(ToGrpc(destination.error));
    if (destination.address.empty()) return RunHere();
    HandOver([&] { routing_.relay_(call_, destination, method_); });
  }
  void RunHere() {
    HandOver([&] { method_.here(call_); });
  }

  // Has `handle` bind another reactor and start its operations.
  void HandOver(const std::function<void()>& handle) {
    const auto bind = [this](std::shared_ptr<Reactor> reactor) {
      MutexLock lock(&mutex_);
      bound_ = std::move(reactor);
    };
    // Neither goes before the other reactor knows of a cancellation.
    const std::shared_ptr<RoutingReactor> self = shared_from_this();
    call_.Hold(call_.message_returned_);
    call_.HandOver(bind, first_);
    handle();
    {
      MutexLock lock(&mutex_);
      handed_over_ = true;
    }
    PassOnCancel();
    call_.Release();
  }

  // Once, of a call that is cancelled and handed over.
  void PassOnCancel() {
    std::shared_ptr<Reactor> cancelled;
    {
      MutexLock lock(&mutex_);
      if (!cancelled_ || !handed_over_ || std::exchange(cancel_passed_on_, true)) return;
      cancelled = bound_;
    }
    cancelled->OnCancel();
  }

  Call& call_;
  const Routing& routing_;
  const RoutedMethod& method_;
  grpc::ByteBuffer first_;
  // Whether the first message has arrived or its time is over.
  std::atomic<bool> decided_ = false;
  mutable Mutex mutex_;
  std::shared_ptr<Reactor> bound_ ABSL_GUARDED_BY(mutex_);
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  // The reactor is bound, and its first operations were started.
  bool handed_over_ ABSL_GUARDED_BY(mutex_) = false;
  bool cancel_passed_on_ ABSL_GUARDED_BY(mutex_) = false;
};

Call::Method Routing::Wrap(const RoutedMethod& method) {
  return [this, &method](Call& call) {
    const auto reactor = std::make_shared<RoutingReactor>(call, *this, method);
    call.Bind(reactor);
    reactor->Start();
  };
}

std::optional<Destination> Routing::FindLoaded(const std::string& model,
                                               Without without_writer) const {
  const std::shared_ptr<Model> loaded = backend_.store.GetIfLoaded(model);
  if (loaded == nullptr) return std::nullopt;
  return FindById(loaded->id(), model, without_writer);
}

Destination Routing::Find(const std::string& model, Without without_writer) const {
  const absl::StatusOr<storage::ModelHeader> header = backend_.store.catalogue().Find(model);
  // The method says what is wrong with the name.
  if (absl::IsNotFound(header.status())) return {};
  if (!header.ok()) return Nowhere(header.status());
  return FindById(header->id(), model, without_writer);
}

Destination Routing::FindAnyWriter() const {
  if (backend_.store.fleet()->WritesAny()) return {};
  // That of the first partition.
  return FindById(0, "", Without::kFail);
}

Destination Routing::FindById(uint64_t id, const std::string& model, Without without_writer) const {
  Fleet& fleet = *backend_.store.fleet();
  if (fleet.Writes(id)) return {};
  // One that was silent for long may be gone, or alone without the journal.
  if (without_writer == Without::kHere && !fleet.HasOtherWriter(id)) return {};
  const Writer writer = fleet.WriterOf(id);
  if (writer.epoch > 0 && !writer.released && writer.address != fleet.address())
    return {writer.address, id, writer.epoch, absl::OkStatus()};
  return Nowhere(fleet.must_yield() ? AddressTakenError(fleet.address())
                                    : NotTheWriterError(model));
}

}  // namespace perceptrond
