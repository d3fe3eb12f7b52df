#include "server/rpc/acceptor.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/error/error.h"
#include "core/sync/thread_name.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

// How long an answer may wait for others, to be sent with them.
constexpr std::chrono::microseconds kMostHeld{200};

void RefuseUnknown(Call& call) {
  call.Bind(std::make_shared<Reactor>());
  call.Finish(ToGrpc(MakeError(absl::StatusCode::kUnimplemented, "UNKNOWN_METHOD",
                               absl::StrCat("this server has no method ", call.path()),
                               {{"method", call.path()}})));
}

}  // namespace

Router::Router() : unknown_(RefuseUnknown) {}

void Router::AddService(const std::string& service, std::vector<NamedMethod> methods) {
  const google::protobuf::ServiceDescriptor* const descriptor =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
  int known = 0;
  for (NamedMethod& named : methods) {
    const bool is_new =
        methods_.emplace(absl::StrCat("/", service, "/", named.name), std::move(named.method))
            .second;
    if (is_new && descriptor != nullptr && descriptor->FindMethodByName(named.name) != nullptr)
      ++known;
  }
  if (descriptor == nullptr || known != descriptor->method_count() ||
      methods.size() != static_cast<size_t>(known)) {
    std::fprintf(stderr, "the registered methods of %s are not those of its proto\n",
                 service.c_str());
    std::abort();
  }
  services_.push_back(descriptor);
}

const Call::Method& Router::Find(const std::string& path) const {
  const auto found = methods_.find(path);
  return found == methods_.end() ? unknown_ : found->second;
}

Acceptor::~Acceptor() {
  if (queue_ != nullptr) ShutDownQueue();
}

void Acceptor::AddTo(grpc::ServerBuilder& builder) {
  // gRPC would decompress a message whatever its size is then. It ends such a call with UNIMPLEMENTED; a message that is
  // there already stays as it is.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP})
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  builder.AddChannelArgument(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
}

void Acceptor::Start(int threads, Spin spin) {
  spin_ = std::move(spin);
  // One waiting call for each thread, since each may receive one at the same time.
  for (int i = 0; i < threads; ++i) {
    AwaitCall();
    threads_.emplace_back([this] {
      NameThisThread("poller");
      Poll();
    });
  }
}

void Acceptor::Stop(grpc::Server& server) {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  server.Shutdown(std::chrono::system_clock::now());
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_ == nullptr; };
  {
    MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&none));
  }
  ShutDownQueue();
}

void Acceptor::ShutDownQueue() {
  if (std::exchange(queue_shut_down_, true)) return;
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  // Drains the queue where no thread polled it.
  Poll();
}

void Acceptor::AwaitCall() {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  // Deletes itself, which waits for this lock.
  Call* const call = new Call(*this);
  call->next_ = calls_;
  if (calls_ != nullptr) calls_->previous_ = call;
  calls_ = call;
}

void Acceptor::Request(grpc::GenericServerContext& context,
                       grpc::GenericServerAsyncReaderWriter& stream, void* tag) {
  service_.RequestCall(&context, &stream, queue_.get(), queue_.get(), tag);
}

void Acceptor::OnCallDestroyed(Call& call) {
  MutexLock lock(&mutex_);
  (call.previous_ != nullptr ? call.previous_->next_ : calls_) = call.next_;
  if (call.next_ != nullptr) call.next_->previous_ = call.previous_;
}

void Acceptor::EndLateRequests(absl::Duration timeout) {
  const int64_t latest = absl::GetCurrentTimeNanos() - absl::ToInt64Nanoseconds(timeout);
  // No call is destroyed while the lock is held.
  MutexLock lock(&mutex_);
  for (Call* call = calls_; call != nullptr; call = call->next_) call->EndIfLate(latest);
}

void Acceptor::Poll() {
  using Clock = std::chrono::steady_clock;
  SpinPolicy policy(spin_.max_duration);
  std::vector<Event*> to_flush;
  events_to_flush = &to_flush;
  Clock::time_point held_since;
  void* event = nullptr;
  bool ok = false;
  for (;;) {
    const Clock::time_point start = Clock::now();
    auto next = grpc::CompletionQueue::TIMEOUT;
    if (!to_flush.empty()) {
      if (start - held_since < kMostHeld)
        next = queue_->AsyncNext(&event, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
      if (next != grpc::CompletionQueue::GOT_EVENT) {
        for (Event* const held : std::exchange(to_flush, {})) held->OnEvent(/*ok=*/true);
      }
    }
    if (next == grpc::CompletionQueue::TIMEOUT && policy.duration() > Clock::duration::zero()) {
      do {
        next = queue_->AsyncNext(&event, &ok, gpr_inf_past(GPR_CLOCK_MONOTONIC));
      } while (next == grpc::CompletionQueue::TIMEOUT && Clock::now() - start < policy.duration());
      if (next == grpc::CompletionQueue::TIMEOUT) policy.OnTimeout();
    }
    if (next == grpc::CompletionQueue::TIMEOUT)
      next = queue_->AsyncNext(&event, &ok, gpr_inf_future(GPR_CLOCK_MONOTONIC));
    if (next != grpc::CompletionQueue::GOT_EVENT) break;
    polled_event_time = Clock::now();
    policy.OnEvent(polled_event_time - start);
    if (to_flush.empty()) held_since = polled_event_time;
    static_cast<Event*>(event)->OnEvent(ok);
    policy.OnHandled(spin_.is_idle);
  }
  events_to_flush = nullptr;
}

}  // namespace perceptrond
