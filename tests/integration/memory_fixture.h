// Clients that do not read what they asked for, and what a server's memory comes to.
#pragma once

#include <grpcpp/generic/generic_stub.h>

#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "tests/integration/fixture.h"
#include "tests/server/metrics/http_client.h"

namespace perceptrond::testing {

inline constexpr size_t kMiB = 1 << 20;

// A size in /proc/PID/status, in bytes.
inline size_t ProcessSize(pid_t pid, absl::string_view name) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/status"));
  size_t kilobytes = 0;
  for (std::string line; std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, name) || !absl::ConsumeSuffix(&rest, " kB")) continue;
    EXPECT_TRUE(absl::SimpleAtoi(absl::StripAsciiWhitespace(rest), &kilobytes));
  }
  return kilobytes << 10;
}
// The most memory that the process has had.
inline size_t PeakMemory(pid_t pid) { return ProcessSize(pid, "VmHWM:"); }
inline size_t AddressSpace(pid_t pid) { return ProcessSize(pid, "VmSize:"); }

// The value of a series; 0 if there is none.
inline double MetricOf(int port, absl::string_view series) {
  const std::string body = Body(::perceptrond::Get(port, "/metrics"));
  for (absl::string_view line : absl::StrSplit(body, '\n')) {
    double value = 0;
    if (absl::ConsumePrefix(&line, series) && absl::ConsumePrefix(&line, " ") &&
        absl::SimpleAtod(line, &value))
      return value;
  }
  return 0;
}

// A call of any method that sends and never reads.
class UnreadCall {
 public:
  UnreadCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(this);
    Await(absl::Seconds(30));
  }
  ~UnreadCall() {
    context_.TryCancel();
    queue_.Shutdown();
    void* tag = nullptr;
    for (bool ok = false; queue_.Next(&tag, &ok);) {
    }
  }

  // Returns whether the message was sent within `timeout`: if not, the server does not read, and
  // nothing more can be sent.
  bool Send(const std::string& message, absl::Duration timeout) {
    const grpc::Slice slice(message);
    call_->Write(grpc::ByteBuffer(&slice, 1), this);
    return Await(timeout);
  }
  // Reads what is left, and returns the status that the server ended the call with.
  grpc::Status AwaitEnd() {
    grpc::ByteBuffer message;
    do {
      call_->Read(&message, &read_);
    } while (AwaitTag(&read_));
    grpc::Status status;
    call_->Finish(&status, &finished_);
    AwaitTag(&finished_);
    return status;
  }

 private:
  bool Await(absl::Duration timeout) {
    void* tag = nullptr;
    bool ok = false;
    return queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(absl::Now() + timeout)) ==
               grpc::CompletionQueue::GOT_EVENT &&
           ok;
  }

  // Passes over a write that was still pending.
  bool AwaitTag(const char* wanted) {
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok) && tag != wanted) {
    }
    return ok;
  }

  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  grpc::GenericStub stub_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  char read_ = 0;
  char finished_ = 0;
};

}  // namespace perceptrond::testing
