// A null server as anyone would write it first: gRPC's callback services and the C library's
// allocator. It parses what the real one parses, answers as much, and learns nothing.
//   null_callback_server ADDRESS...
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"
#include "tests/bench/null_answers.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

// Answers one stream's messages in turn.
class LearnAnswerer {
 public:
  using Request = v1::LearnStreamRequest;
  using Response = v1::LearnStreamResponse;
  void operator()(const Request& request, Response& response) {
    if (messages_ == 0) {
      detail_ = request.result_detail();
      response.mutable_opened()->set_model_uid("none");
      response.mutable_opened()->set_name_table_size(GrantedNameTable(request.name_table_size()));
    }
    FillResult(RowCount(request), detail_, messages_++, *response.add_results());
  }

 private:
  v1::ResultDetail detail_ = v1::RESULT_DETAIL_UNSPECIFIED;
  int64_t messages_ = 0;
};

class PredictAnswerer {
 public:
  using Request = v1::PredictRequest;
  using Response = v1::PredictResponse;
  void operator()(const Request& request, Response& response) {
    FillPrediction(request, response);
    if (!std::exchange(answered_, true))
      response.set_name_table_size(GrantedNameTable(request.name_table_size()));
  }

 private:
  bool answered_ = false;
};

// Reads the next message while answers are being written.
template <typename Answerer>
class Stream final
    : public grpc::ServerBidiReactor<typename Answerer::Request, typename Answerer::Response> {
 public:
  Stream() { this->StartRead(&request_); }

  void OnReadDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    reading_ = false;
    if (!ok) {
      ended_ = true;
    } else {
      answers_.emplace_back();
      answerer_(request_, answers_.back());
    }
    Pump();
  }
  void OnWriteDone(bool ok) override {
    absl::MutexLock lock(&mutex_);
    answers_.pop_front();
    writing_ = false;
    if (!ok) broken_ = true;
    Pump();
  }
  void OnDone() override { delete this; }

 private:
  void Pump() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!writing_ && !answers_.empty() && !broken_) {
      writing_ = true;
      this->StartWrite(&answers_.front());
    }
    if (!reading_ && !ended_ && !broken_ && answers_.size() < kMaxInFlight) {
      reading_ = true;
      this->StartRead(&request_);
    }
    if (!finished_ && !writing_ && !reading_ && (broken_ || (ended_ && answers_.empty()))) {
      finished_ = true;
      this->Finish(grpc::Status::OK);
    }
  }

  typename Answerer::Request request_;
  Answerer answerer_;
  absl::Mutex mutex_;
  // The first is being written if writing_.
  std::deque<typename Answerer::Response> answers_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = true;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
};

grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

class NullLearning final : public v1::LearningService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Learn(grpc::CallbackServerContext* context,
                                  const v1::LearnRequest* request,
                                  v1::LearnResponse* response) override {
    FillResult(RowCount(*request), request->result_detail(), 0, *response->mutable_result());
    return Done(context);
  }
  grpc::ServerBidiReactor<v1::LearnStreamRequest, v1::LearnStreamResponse>* LearnStream(
      grpc::CallbackServerContext* /*context*/) override {
    return new Stream<LearnAnswerer>();
  }
};

class NullPrediction final : public v1::PredictionService::CallbackService {
 public:
  grpc::ServerUnaryReactor* Predict(grpc::CallbackServerContext* context,
                                    const v1::PredictRequest* request,
                                    v1::PredictResponse* response) override {
    FillPrediction(*request, *response);
    return Done(context);
  }
  grpc::ServerBidiReactor<v1::PredictRequest, v1::PredictResponse>* PredictStream(
      grpc::CallbackServerContext* /*context*/) override {
    return new Stream<PredictAnswerer>();
  }
};

int Main(const std::vector<std::string>& listen) {
  NullLearning learning;
  NullPrediction prediction;
  grpc::ServerBuilder builder;
  std::vector<int> ports(listen.size());
  for (size_t i = 0; i < listen.size(); ++i)
    builder.AddListeningPort(listen[i], grpc::InsecureServerCredentials(), &ports[i]);
  builder.SetMaxReceiveMessageSize(16 << 20);
  builder.RegisterService(&learning);
  builder.RegisterService(&prediction);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::fputs(ServingLine(listen, ports).c_str(), stderr);
  server->Wait();
  return 0;
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: null_callback_server ADDRESS...\n", stderr);
    return 2;
  }
  return perceptrond::bench::Main(std::vector<std::string>(argv + 1, argv + argc));
}
