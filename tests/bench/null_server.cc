// The equal null server: a server with the real one's transport that parses what the real one
// parses, answers as much, and learns nothing. One completion queue, one polling thread that
// handles small messages itself, workers for larger ones, and in an answer all results that are
// ready: it is to be as fast as this gRPC allows, as a slower one would flatter ours. It shares no
// code with server/.
//   null_server ADDRESS
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/match.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "tests/bench/null_transport.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;
using Bytes = grpc::ByteBuffer;

// As the real server's.
constexpr size_t kMaxInlineBytes = 8 << 10;
constexpr size_t kMaxInboxMessages = 64;
constexpr size_t kMaxInboxBytes = 4 << 20;
constexpr int kMaxReceivedBytes = 64 << 20;
constexpr uint32_t kMaxWritesTogether = 16;
constexpr size_t kMaxInFlight = 1024;

template <typename Request>
int RowCount(const Request& request) {
  return request.has_columns() ? request.columns().row_ends_size() : request.examples_size();
}

void FillResult(int rows, v1::ResultDetail detail, int64_t number, v1::LearnResult& result) {
  result.set_message_number(number);
  result.set_examples(rows);
  result.set_acknowledged_offset(rows);
  result.set_revision(1);
  if (detail == v1::RESULT_DETAIL_UPDATES) return;
  result.mutable_scores()->Resize(rows, 1.5F);
  result.mutable_predicted_labels()->Resize(rows, 1);
}

void FillPrediction(const v1::PredictRequest& request, v1::PredictResponse& response) {
  const int rows = RowCount(request);
  response.mutable_scores()->Resize(rows, 1.5F);
  response.mutable_predicted_labels()->Resize(rows, 1);
  response.mutable_distances()->Resize(rows, 0.5F);
  response.set_revision(1);
}

template <typename Proto>
bool Parse(Bytes& bytes, Proto& proto) {
  return grpc::SerializationTraits<Proto>::Deserialize(&bytes, &proto).ok();
}

Bytes ToBytes(const std::string& text) {
  const grpc::Slice slice(text);
  return Bytes(&slice, 1);
}

// Answers of a LearnStream. Several that are ready become one: bytes of messages, one after the
// other, are a message with the results of all.
struct LearnAnswers {
  static constexpr bool kMerge = true;
  v1::LearnStreamRequest request;
  v1::LearnStreamResponse response;
  v1::ResultDetail detail = v1::RESULT_DETAIL_UNSPECIFIED;
  int64_t messages = 0;

  void Answer(std::string& answer) {
    response.Clear();
    if (messages == 0) {
      detail = request.result_detail();
      response.mutable_opened()->set_model_uid("none");
      response.mutable_opened()->set_name_table_size(request.name_table_size());
    }
    FillResult(RowCount(request), detail, messages++, *response.add_results());
    response.SerializeToString(&answer);
  }
};

// Answers of a PredictStream, one a message.
struct PredictAnswers {
  static constexpr bool kMerge = false;
  v1::PredictRequest request;
  v1::PredictResponse response;
  bool first = true;

  void Answer(std::string& answer) {
    FillPrediction(request, response);
    response.set_name_table_size(std::exchange(first, false) ? request.name_table_size() : 0);
    response.SerializeToString(&answer);
  }
};

// Reads on while messages are handled, by one thread at a time.
template <typename Answers>
class Stream final : public CallHandler {
 public:
  explicit Stream(Call& call) : call_(call) { call_.StartRead(incoming_); }

  void OnRead(bool ok) override {
    {
      MutexLock lock(&mutex_);
      reading_ = false;
      if (!ok) {
        ended_ = true;
        return Pump();
      }
      inbox_bytes_ += incoming_.Length();
      inbox_.emplace_back().Swap(&incoming_);
      if (working_ || inbox_bytes_ > kMaxInlineBytes) return Pump();
      working_ = true;
      if (Answers::kMerge && !std::exchange(held_, true)) call_.FlushLater();
    }
    HandleInbox();
  }
  void OnFlush() override {
    MutexLock lock(&mutex_);
    held_ = false;
    Pump();
  }
  void OnWrite(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!ok) broken_ = true;
    Pump();
  }

 private:
  void HandleInbox() {
    Bytes message;
    std::string answer;
    for (;;) {
      {
        MutexLock lock(&mutex_);
        if (inbox_.empty() || broken_) {
          working_ = false;
          return Pump();
        }
        message.Swap(&inbox_.front());
        inbox_.pop_front();
        inbox_bytes_ -= message.Length();
      }
      const bool parsed = Parse(message, answers_.request);
      message.Clear();
      if (parsed) answers_.Answer(answer);
      MutexLock lock(&mutex_);
      if (!parsed) {
        broken_ = true;
      } else if (Answers::kMerge && !ready_.empty()) {
        ready_.back() += answer;
      } else {
        ready_.push_back(std::move(answer));
      }
      Pump();
    }
  }

  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!writing_ && !held_ && !broken_ && !ready_.empty()) {
      const Bytes answer = ToBytes(ready_.front());
      ready_.pop_front();
      writing_ = true;
      const bool more = !Answers::kMerge && ++writes_ % kMaxWritesTogether != 0 &&
                        (!ready_.empty() || (working_ && !inbox_.empty()));
      call_.StartWrite(answer, more);
    }
    if (!reading_ && !ended_ && !broken_ && !InboxFull()) {
      reading_ = true;
      call_.StartRead(incoming_);
    }
    if (!working_ && !inbox_.empty() && !broken_) {
      working_ = true;
      call_.Schedule([this] { HandleInbox(); });
    }
    const bool answered = ended_ && inbox_.empty() && ready_.empty();
    if (!finished_ && !held_ && !working_ && !writing_ && !reading_ && (broken_ || answered)) {
      finished_ = true;
      call_.Finish(broken_ ? grpc::Status(grpc::StatusCode::CANCELLED, "broken")
                           : grpc::Status::OK);
    }
  }
  // Once full, until it is half empty.
  bool InboxFull() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    const size_t share = was_full_ ? 2 : 1;
    was_full_ = inbox_.size() >= kMaxInboxMessages / share ||
                inbox_bytes_ >= kMaxInboxBytes / share || ready_.size() >= kMaxInFlight / share;
    return was_full_;
  }

  Call& call_;
  // Used by the thread that handles messages.
  Answers answers_;
  Bytes incoming_;
  Mutex mutex_;
  std::deque<Bytes> inbox_ ABSL_GUARDED_BY(mutex_);
  size_t inbox_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);
  uint32_t writes_ ABSL_GUARDED_BY(mutex_) = 0;
  bool was_full_ ABSL_GUARDED_BY(mutex_) = false;
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool working_ ABSL_GUARDED_BY(mutex_) = false;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  // Until the polling thread has handled what it can without waiting.
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

class Unary final : public CallHandler {
 public:
  explicit Unary(Call& call) : call_(call) { call_.StartRead(bytes_); }
  void OnRead(bool ok) override {
    if (!ok) return call_.Finish(grpc::Status::CANCELLED);
    if (bytes_.Length() <= kMaxInlineBytes) return Answer();
    call_.Schedule([this] { Answer(); });
  }
  void OnWrite(bool /*ok*/) override {}

 private:
  void Answer() {
    v1::PredictRequest request;
    v1::PredictResponse response;
    if (!Parse(bytes_, request)) return call_.Finish(grpc::Status::CANCELLED);
    FillPrediction(request, response);
    call_.FinishWith(ToBytes(response.SerializeAsString()));
  }

  Call& call_;
  Bytes bytes_;
};

std::unique_ptr<CallHandler> MakeHandler(Call& call, const std::string& method) {
  if (absl::EndsWith(method, "/LearnStream")) return std::make_unique<Stream<LearnAnswers>>(call);
  if (absl::EndsWith(method, "/PredictStream"))
    return std::make_unique<Stream<PredictAnswers>>(call);
  if (absl::EndsWith(method, "/Predict")) return std::make_unique<Unary>(call);
  return nullptr;
}

int Main(const std::string& address) {
  Workers workers(std::max(4U, std::thread::hardware_concurrency()));
  Transport transport{.make_handler = MakeHandler, .workers = workers};
  grpc::EnableDefaultHealthCheckService(false);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(kMaxReceivedBytes);
  builder.SetMaxSendMessageSize(-1);
  builder.RegisterAsyncGenericService(&transport.service);
  transport.queue = builder.AddCompletionQueue();
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  new Call(transport);
  std::fprintf(stderr, "null server serving address=%s:%d\n",
               address.substr(0, address.rfind(':')).c_str(), port);
  Poll(transport);
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: null_server ADDRESS\n", stderr);
    return 2;
  }
  // As the real server has it.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  std::signal(SIGPIPE, SIG_IGN);
  return perceptrond::bench::Main(argv[1]);
}
