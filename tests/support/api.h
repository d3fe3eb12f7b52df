// Calls of a server, and their outcomes in words that a test can compare.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "google/protobuf/text_format.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

// google.rpc.ErrorInfo.reason of a status; "" without one.
std::string Reason(const grpc::Status& status);
std::string Reason(const google::rpc::Status& status);
// The first field that google.rpc.BadRequest names; "" without one.
std::string BadField(const google::rpc::Status& status);
std::string BadField(const grpc::Status& status);
// The delay of google.rpc.RetryInfo.
std::optional<absl::Duration> RetryDelay(const google::rpc::Status& status);
std::optional<absl::Duration> RetryDelay(const grpc::Status& status);
// A value of google.rpc.ErrorInfo's metadata.
std::string Metadata(const google::rpc::Status& status, const std::string& key);

// "OK", or the code, the reason and the first bad field, as far as there are any:
// "INVALID_ARGUMENT NON_FINITE_VALUE examples[1].sparse.values[0]".
std::string Outcome(const google::rpc::Status& status);
std::string Outcome(const grpc::Status& status);
// The rows' errors: "1: INVALID_ARGUMENT UNKNOWN_LABEL columns.labels[1]; 3: ...".
std::string Outcome(const google::protobuf::RepeatedPtrField<v1::RowError>& errors);
// A message's error on a stream, or its rows'.
template <typename Result>
std::string Outcome(const Result& result) {
  return result.has_error() ? Outcome(result.error()) : Outcome(result.row_errors());
}

// A message in Protobuf's text format.
template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// A stub's view of one LearnStream: sends and receives in lock step or apart. Not thread-safe.
class RawLearnStream {
 public:
  RawLearnStream(v1::LearningService::Stub& stub, const std::string& model,
                 const std::string& producer = "");
  // The opening answer.
  v1::StreamOpened Open();
  // Adds these fields, in text format, to the first message.
  RawLearnStream& With(const std::string& fields) {
    first_.MergeFrom(FromText<v1::LearnStreamRequest>(fields));
    return *this;
  }
  void Send(const v1::LearnStreamRequest& request) { stream_->Write(request); }
  // The next result; fails the test if the stream ends first.
  v1::LearnResult Result();
  v1::LearnResult Ask(const v1::LearnStreamRequest& request) {
    Send(request);
    return Result();
  }
  v1::LearnResult Ask(const std::string& request) {
    return Ask(FromText<v1::LearnStreamRequest>(request));
  }
  // The outcome of a stream that the first message ends.
  std::string Refusal() {
    Send(first_);
    return Outcome(Finish());
  }
  // The answer that the latest result came in.
  const v1::LearnStreamResponse& answer() const { return answer_; }
  // Reads the next answer. Returns false at the stream's end.
  bool Read();
  // Half-closes, reads what is left, and returns the stream's status.
  grpc::Status Finish();
  // Reads what is left and returns the stream's status, without half-closing: the server ends the stream.
  grpc::Status AwaitEnd();
  v1::LearnStreamRequest& first() { return first_; }

 private:
  grpc::ClientContext context_;
  v1::LearnStreamRequest first_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::LearnStreamRequest, v1::LearnStreamResponse>>
      stream_;
  v1::LearnStreamResponse answer_;
  int next_result_ = 0;
};

// {index: value, ...} and a label.
v1::Example SparseExample(int label, std::initializer_list<std::pair<uint32_t, float>> features);

// Calls of one server.
class Api {
 public:
  void Connect(const std::string& address);
  v1::Model CreateDense(const std::string& id, uint32_t dimension);
  v1::Model Create(const std::string& id, const v1::Model& settings);
  v1::Model Create(const std::string& id, const std::string& settings) {
    return Create(id, FromText<v1::Model>(settings));
  }
  v1::Model Get(const std::string& id, v1::ModelView view = v1::MODEL_VIEW_WEIGHTS);
  grpc::Status Learn(const v1::LearnRequest& request, v1::LearnResult* result = nullptr);
  grpc::Status Predict(const v1::PredictRequest& request, v1::PredictResponse* response);
  // Calls a method such as "ModelService/GetModel", of perceptron.v1 unless it names a package, with
  // one message in text format. `answer`: the last message of the answer.
  grpc::Status Send(const std::string& method, const std::string& request,
                    google::protobuf::Message* answer = nullptr, const std::string& token = "");
  // The Outcome of such a call.
  std::string Call(const std::string& method, const std::string& request,
                   google::protobuf::Message* answer = nullptr, const std::string& token = "") {
    return Outcome(Send(method, request, answer, token));
  }
  // The answer of such a call, which must succeed.
  template <typename Answer>
  Answer AnswerOf(const std::string& method, const std::string& request,
                  const std::string& token = "") {
    Answer answer;
    EXPECT_EQ(Call(method, request, &answer, token), "OK") << method << " " << request;
    return answer;
  }
  // Calls any method with any bytes; the answers' bytes if `answers` is set. With a token, if one is
  // given.
  grpc::Status CallRaw(const std::string& method, const std::vector<std::string>& messages,
                       std::vector<std::string>* answers = nullptr, const std::string& token = "");
  v1::LearningService::Stub& learning() { return *learning_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 protected:
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::ModelService::Stub> models_;
  std::unique_ptr<v1::LearningService::Stub> learning_;
  std::unique_ptr<v1::PredictionService::Stub> predictions_;
};

}  // namespace perceptrond::testing
