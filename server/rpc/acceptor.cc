#include "server/rpc/acceptor.h"

#include <chrono>

#include "server/rpc/event.h"

namespace perceptrond {

Acceptor::~Acceptor() {
  if (queue_ == nullptr) return;
  queue_->Shutdown();
  for (std::thread& thread : threads_) thread.join();
  // Where nobody polled.
  Poll();
}

void Acceptor::AddTo(grpc::ServerBuilder& builder) {
  builder.RegisterAsyncGenericService(&service_);
  queue_ = builder.AddCompletionQueue();
}

void Acceptor::Start(int threads) {
  // One for each that may come at once to a thread.
  for (int i = 0; i < threads; ++i) {
    AwaitCall();
    threads_.emplace_back([this] { Poll(); });
  }
}

void Acceptor::Stop(grpc::Server& server) {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  server.Shutdown(std::chrono::system_clock::now());
  const auto none = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return calls_ == 0; };
  MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&none));
}

void Acceptor::AwaitCall() {
  MutexLock lock(&mutex_);
  if (stopping_) return;
  ++calls_;
  // Deletes itself.
  new Call(*this);
}

void Acceptor::Request(grpc::GenericServerContext& context,
                       grpc::GenericServerAsyncReaderWriter& stream, void* tag) {
  service_.RequestCall(&context, &stream, queue_.get(), queue_.get(), tag);
}

void Acceptor::Gone() {
  MutexLock lock(&mutex_);
  --calls_;
}

void Acceptor::Poll() {
  void* event = nullptr;
  for (bool ok = false; queue_->Next(&event, &ok);) static_cast<Event*>(event)->Happened(ok);
}

}  // namespace perceptrond
