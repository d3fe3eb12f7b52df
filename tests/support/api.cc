#include "tests/support/api.h"

#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "inference/inference_service.pb.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/backup_service.pb.h"
#include "perceptron/v1/history_service.pb.h"

namespace perceptrond::testing {
namespace {

template <typename Detail>
bool FindDetail(const google::rpc::Status& status, Detail& detail) {
  for (const google::protobuf::Any& any : status.details()) {
    if (any.Is<Detail>()) return any.UnpackTo(&detail);
  }
  return false;
}

google::rpc::Status Parse(const grpc::Status& status) {
  google::rpc::Status details;
  details.ParseFromString(status.error_details());
  return details;
}

std::string Bytes(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices)
    bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// An empty request of a method of this full name.
std::unique_ptr<google::protobuf::Message> NewRequest(const std::string& method) {
  // Otherwise the linker leaves out files that nothing else in a program refers to.
  static const void* const files[] = {v1::Alias::descriptor(), v1::AnalysisResult::descriptor(),
                                      v1::Backup::descriptor(), v1::Snapshot::descriptor(),
                                      ::inference::ModelInferRequest::descriptor()};
  static_cast<void>(files);
  const auto* const found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method);
  if (found == nullptr) {
    ADD_FAILURE() << "there is no method " << method;
    return std::make_unique<v1::GetModelRequest>();
  }
  return std::unique_ptr<google::protobuf::Message>(
      google::protobuf::MessageFactory::generated_factory()
          ->GetPrototype(found->input_type())
          ->New());
}

}  // namespace

std::string Reason(const google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  if (!FindDetail(status, info)) return "";
  EXPECT_EQ(info.domain(), "perceptrond");
  return info.reason();
}

std::string Reason(const grpc::Status& status) { return Reason(Parse(status)); }

std::string BadField(const google::rpc::Status& status) {
  google::rpc::BadRequest bad;
  return FindDetail(status, bad) && bad.field_violations_size() > 0
             ? bad.field_violations(0).field()
             : "";
}

std::string BadField(const grpc::Status& status) { return BadField(Parse(status)); }

std::optional<absl::Duration> RetryDelay(const google::rpc::Status& status) {
  google::rpc::RetryInfo retry;
  if (!FindDetail(status, retry)) return std::nullopt;
  return absl::Seconds(retry.retry_delay().seconds()) +
         absl::Nanoseconds(retry.retry_delay().nanos());
}

std::optional<absl::Duration> RetryDelay(const grpc::Status& status) {
  return RetryDelay(Parse(status));
}

std::string Metadata(const google::rpc::Status& status, const std::string& key) {
  google::rpc::ErrorInfo info;
  return FindDetail(status, info) && info.metadata().contains(key) ? info.metadata().at(key) : "";
}

std::string Outcome(const google::rpc::Status& status) {
  std::string outcome = absl::StatusCodeToString(static_cast<absl::StatusCode>(status.code()));
  for (const std::string& word : {Reason(status), BadField(status)})
    if (!word.empty()) absl::StrAppend(&outcome, " ", word);
  return outcome;
}

std::string Outcome(const grpc::Status& status) {
  google::rpc::Status details = Parse(status);
  details.set_code(status.error_code());
  return Outcome(details);
}

std::string Outcome(const google::protobuf::RepeatedPtrField<v1::RowError>& errors) {
  std::string outcome;
  for (const v1::RowError& error : errors)
    absl::StrAppend(&outcome, outcome.empty() ? "" : "; ", error.row(), ": ",
                    Outcome(error.status()));
  return outcome.empty() ? "OK" : outcome;
}

RawLearnStream::RawLearnStream(v1::LearningService::Stub& stub, const std::string& model,
                               const std::string& producer)
    : stream_(stub.LearnStream(&context_)) {
  first_.set_model("models/" + model);
  if (!producer.empty()) first_.mutable_producer()->set_id(producer);
}

v1::StreamOpened RawLearnStream::Open() {
  stream_->Write(first_);
  EXPECT_TRUE(Read()) << "the stream ended before it opened";
  const v1::StreamOpened opened = answer_.opened();
  (void)Result();  // the first message is answered like any other
  return opened;
}

bool RawLearnStream::Read() {
  next_result_ = 0;
  return stream_->Read(&answer_);
}

v1::LearnResult RawLearnStream::Result() {
  while (next_result_ >= answer_.results_size()) {
    if (!Read()) {
      ADD_FAILURE() << "the stream ended";
      return {};
    }
  }
  return answer_.results(next_result_++);
}

grpc::Status RawLearnStream::Finish() {
  stream_->WritesDone();
  return AwaitEnd();
}

grpc::Status RawLearnStream::AwaitEnd() {
  while (Read()) {
  }
  return stream_->Finish();
}

v1::Example SparseExample(int label, std::initializer_list<std::pair<uint32_t, float>> features) {
  v1::Example example;
  example.set_label(label);
  example.mutable_sparse();
  for (const auto& [index, value] : features) {
    example.mutable_sparse()->add_indices(index);
    example.mutable_sparse()->add_values(value);
  }
  return example;
}

void Api::Connect(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  // Its own connection: one that failed with the server before would first wait before it tries
  // again.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  models_ = v1::ModelService::NewStub(channel_);
  learning_ = v1::LearningService::NewStub(channel_);
  predictions_ = v1::PredictionService::NewStub(channel_);
}

v1::Model Api::CreateDense(const std::string& id, uint32_t dimension) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(dimension);
  return Create(id, settings);
}

v1::Model Api::Create(const std::string& id, const v1::Model& settings) {
  grpc::ClientContext context;
  v1::CreateModelRequest request;
  request.set_model_id(id);
  *request.mutable_model() = settings;
  v1::Model created;
  const grpc::Status status = models_->CreateModel(&context, request, &created);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return created;
}

v1::Model Api::Get(const std::string& id, v1::ModelView view) {
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_name("models/" + id);
  request.set_view(view);
  v1::Model model;
  const grpc::Status status = models_->GetModel(&context, request, &model);
  EXPECT_TRUE(status.ok()) << status.error_message();
  return model;
}

grpc::Status Api::Learn(const v1::LearnRequest& request, v1::LearnResult* result) {
  grpc::ClientContext context;
  v1::LearnResponse response;
  const grpc::Status status = learning_->Learn(&context, request, &response);
  if (result != nullptr) *result = response.result();
  return status;
}

grpc::Status Api::Predict(const v1::PredictRequest& request, v1::PredictResponse* response) {
  grpc::ClientContext context;
  return predictions_->Predict(&context, request, response);
}

grpc::Status Api::Send(const std::string& method, const std::string& request,
                       google::protobuf::Message* answer, const std::string& token) {
  const std::string name =
      method.find('.') == std::string::npos ? "perceptron.v1." + method : method;
  const auto message = NewRequest(absl::StrReplaceAll(name, {{"/", "."}}));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(request, message.get())) << request;
  std::vector<std::string> answers;
  const grpc::Status status = CallRaw("/" + name, {message->SerializeAsString()}, &answers, token);
  if (answer != nullptr && !answers.empty()) {
    EXPECT_TRUE(answer->ParseFromString(answers.back()));
  }
  return status;
}

grpc::Status Api::CallRaw(const std::string& method, const std::vector<std::string>& messages,
                          std::vector<std::string>* answers, const std::string& token) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  // One operation at a time, each waited for.
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call =
      stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  done();
  for (const std::string& message : messages) {
    const grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    if (!done()) break;
  }
  call->WritesDone(nullptr);
  done();
  grpc::ByteBuffer answer;
  for (call->Read(&answer, nullptr); done(); call->Read(&answer, nullptr)) {
    if (answers != nullptr) answers->push_back(Bytes(answer));
  }
  grpc::Status status;
  call->Finish(&status, nullptr);
  done();
  return status;
}

}  // namespace perceptrond::testing
