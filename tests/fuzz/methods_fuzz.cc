// Every method of every service, health and reflection among them, over a connection to a whole server in this process, with an access
// file. An input is a program of up to eight calls: each chooses the method, the caller and up to
// three messages, which are valid requests after changes (tests/fuzz/message_mutator.h), or with any
// bytes appended, which Protobuf takes for more fields. Page tokens and files are changed too, and
// then get the checksum that fits. Each call ends with an answer whose figures fit together, or with
// an error that has a reason and names the field that is invalid. The server is as well as before:
// every model that there is then learns and predicts, has the same settings, weights and counters
// when it is loaded from the journal, and can be deleted.
#include <google/protobuf/arena.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/empty.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/settings/settings.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "grpc/health/v1/health.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "perceptron/v1/alias_service.pb.h"
#include "perceptron/v1/history_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "server/access/token.h"
#include "server/rpc/message.h"
#include "server/server.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/message_mutator.h"
#include "tests/integration/methods.h"
#include "tests/support/inference.h"
#include "tests/support/model_file.h"
#include "tests/support/temp_dir.h"

namespace {

namespace oip = ::inference;
namespace reflection = ::grpc::reflection::v1alpha;
namespace v1 = ::perceptron::v1;
using google::protobuf::DynamicCastToGenerated;
using google::protobuf::Message;
using google::protobuf::MethodDescriptor;
using perceptrond::testing::ApiMethod;
using perceptrond::testing::Check;
using perceptrond::testing::CheckEqual;
using perceptrond::testing::FuzzInput;
using perceptrond::testing::kApiMethods;
using perceptrond::testing::MessageMutator;
using perceptrond::testing::ModelFileFrame;

constexpr size_t kMostCalls = 8;
constexpr size_t kMostChanges = 8;
constexpr size_t kMostMessageBytes = 8 << 20;
// Strings of answers that later requests may have, each of at most so many bytes.
constexpr size_t kMostSeen = 64;
constexpr size_t kMostSeenBytes = 256;
// No call takes as long.
constexpr std::chrono::seconds kDeadline(3600);

// Rows for every feature space; what a model does not take is an error of the row.
constexpr char kRows[] =
    "examples { dense { values: [1.5, -2] } label: 1 } examples { sparse {} label: -1 } "
    "examples { dense { values: 0.5 } label: -1 } "
    "examples { sparse { indices: 0 values: 1.5 } label: 1 } "
    "examples { named { names: ['a', 'b^c'] values: [1.5, -2] } label: -1 } "
    "examples { named { names: 'a' } label: 1 } "
    "examples { text: 'Free prize, free' label: -1 } examples { text: '' label: 1 }";

// Those of every gRPC server, which name no model.
constexpr ApiMethod kOtherMethods[] = {
    {"grpc.health.v1.Health/Check", "", "admin", false, "OK"},
    {"grpc.health.v1.Health/Watch", "", "admin", false, "OK"},
    {"grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "list_services: ''", "admin",
     false, "OK"},
};

constexpr char kAdmin[] = "admin-token";
constexpr char kReader[] = "reader-token";

// A server, and a connection to it, for all inputs.
class Service {
 public:
  Service() {
    const std::string access = directory_.path() + "/access";
    const auto principal = [](const char* token, const char* role) {
      return absl::StrCat("principal { name: '", token, "' token_sha256: '",
                          perceptrond::FormatDigest(perceptrond::DigestToken(token)),
                          "' allow { role: ", role,
                          " models: '' } right: HEALTH right: REFLECTION }\n");
    };
    std::ofstream(access) << principal(kAdmin, "ADMIN") << principal(kReader, "READ");
    chmod(access.c_str(), 0600);
    perceptrond::Options options;
    options.addresses = {"unix:" + directory_.path() + "/socket"};
    options.journal = perceptrond::JournalKind::kMemory;
    options.metrics_address = "";
    // No array has more than 64 MiB, the most that tests/fuzz/run.sh lets a program ask for at once.
    options.memory_budget = uint64_t{64} << 20;
    options.max_analysis_time = absl::Seconds(1);
    options.max_message_cost = 40'000'000;
    options.self_probe_interval = absl::ZeroDuration();
    options.log_level = perceptrond::LogLevel::kError;
    options.access_file = access;
    options.audit_log = directory_.path() + "/audit";
    auto server = perceptrond::Server::Start(options);
    Check(server.ok());
    server_ = *std::move(server);
    grpc::ChannelArguments any_size;
    any_size.SetMaxReceiveMessageSize(-1);
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
        options.addresses[0], grpc::InsecureChannelCredentials(), any_size));
  }

  // Sends the messages, half-closes and receives the answers, of which at most `most_answers` are
  // awaited.
  grpc::Status Call(const std::string& path, const std::vector<std::string>& messages,
                    const std::string& token, size_t most_answers,
                    std::vector<std::string>& answers);

 private:
  const perceptrond::testing::TempDir directory_;
  std::unique_ptr<perceptrond::Server> server_;
  std::unique_ptr<grpc::GenericStub> stub_;
};

std::string ToText(const grpc::ByteBuffer& bytes) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!bytes.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices)
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return text;
}

grpc::Status Service::Call(const std::string& path, const std::vector<std::string>& messages,
                           const std::string& token, size_t most_answers,
                           std::vector<std::string>& answers) {
  enum Step : intptr_t { kStart, kWrite, kRead, kFinish };
  const auto tag = [](Step step) { return reinterpret_cast<void*>(static_cast<intptr_t>(step)); };
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kDeadline);
  context.AddMetadata("authorization", "Bearer " + token);
  grpc::CompletionQueue queue;
  const auto stream = stub_->PrepareCall(&context, path, &queue);
  grpc::ByteBuffer answer;
  grpc::Status status;
  size_t written = 0;
  bool is_writing = false;
  bool is_reading = false;
  const auto write_next = [&] {
    if (written > messages.size()) return;
    is_writing = true;
    if (written == messages.size()) {
      ++written;
      return stream->WritesDone(tag(kWrite));
    }
    const grpc::Slice slice(messages[written++]);
    stream->Write(grpc::ByteBuffer(&slice, 1), tag(kWrite));
  };
  stream->StartCall(tag(kStart));
  void* done = nullptr;
  for (bool ok = false; queue.Next(&done, &ok);) {
    switch (static_cast<Step>(reinterpret_cast<intptr_t>(done))) {
      case kStart:
        if (ok) write_next();
        is_reading = ok;
        if (ok) stream->Read(&answer, tag(kRead));
        break;
      case kWrite:
        is_writing = false;
        if (ok) write_next();
        break;
      case kRead:
        is_reading = ok;
        if (!ok) break;
        answers.push_back(ToText(answer));
        if (answers.size() == most_answers) context.TryCancel();
        stream->Read(&answer, tag(kRead));
        break;
      case kFinish:
        queue.Shutdown();
        continue;
    }
    if (!is_writing && !is_reading) stream->Finish(&status, tag(kFinish));
  }
  return status;
}

Service& TheService() {
  static Service service;
  return service;
}

const MethodDescriptor& Find(const ApiMethod& method) {
  const bool has_package = absl::StrContains(method.path, ".");
  const std::string name = absl::StrReplaceAll(
      absl::StrCat(has_package ? "" : "perceptron.v1.", method.path), {{"/", "."}});
  const MethodDescriptor* const found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(name);
  Check(found != nullptr);
  return *found;
}

// On the arena: a message of a million examples is allocated in a few pieces.
Message& Make(const google::protobuf::Descriptor& type, google::protobuf::Arena& arena) {
  return *google::protobuf::MessageFactory::generated_factory()->GetPrototype(&type)->New(&arena);
}

// The detail of this type; an empty one if the error has none.
template <typename Detail>
Detail DetailOf(const grpc::Status& status) {
  google::rpc::Status details;
  Detail found;
  if (!details.ParseFromString(status.error_details())) return found;
  for (const auto& detail : details.details()) {
    if (detail.UnpackTo(&found)) break;
  }
  return found;
}

std::string ReasonOf(const grpc::Status& status) {
  return DetailOf<google::rpc::ErrorInfo>(status).reason();
}

// A finding unless the call ended as the API says.
void CheckStatus(const std::string& path, const grpc::Status& status) {
  const grpc::StatusCode code = status.error_code();
  const std::string reason = ReasonOf(status);
  const bool is_damage = reason == "JOURNAL_CORRUPT";
  const bool is_known = code != grpc::StatusCode::UNKNOWN && code != grpc::StatusCode::INTERNAL &&
                        code != grpc::StatusCode::DEADLINE_EXCEEDED;
  // gRPC's own has none.
  const bool has_reason = code == grpc::StatusCode::OK || code == grpc::StatusCode::CANCELLED ||
                          code == grpc::StatusCode::RESOURCE_EXHAUSTED || !reason.empty();
  const bool has_field = code != grpc::StatusCode::INVALID_ARGUMENT ||
                         DetailOf<google::rpc::BadRequest>(status).field_violations_size() > 0;
  if (is_known && has_reason && has_field && !is_damage) return;
  std::fprintf(stderr, "%s: %d %s: %s\n", path.c_str(), static_cast<int>(code), reason.c_str(),
               status.error_message().c_str());
  std::abort();
}

void CheckFigures(const v1::LearnResult& result) {
  Check(result.mistakes() <= result.examples() && result.updates() <= result.examples());
  Check(result.updates() == static_cast<uint64_t>(result.updated_rows_size()));
  Check(result.updated_rows_size() == result.update_revisions_size());
  for (int i = 1; i < result.updated_rows_size(); ++i) {
    Check(result.updated_rows(i - 1) < result.updated_rows(i));
    Check(result.update_revisions(i - 1) < result.update_revisions(i));
  }
}

void CheckFigures(const v1::PredictResponse& response) {
  Check(response.scores_size() == response.predicted_labels_size());
  Check(response.distances().empty() || response.distances_size() == response.scores_size());
  for (const v1::RowError& error : response.row_errors())
    Check(error.row() < static_cast<uint32_t>(response.scores_size()));
}

// Calls a method of perceptron.v1 as the administrator.
template <typename Request, typename Answer>
grpc::Status Ask(const std::string& method, const Request& request, Answer& answer) {
  std::vector<std::string> answers;
  const std::string path = "/perceptron.v1." + method;
  const grpc::Status status =
      TheService().Call(path, {request.SerializeAsString()}, kAdmin, SIZE_MAX, answers);
  CheckStatus(path, status);
  if (status.ok()) Check(answers.size() == 1 && answer.ParseFromString(answers[0]));
  return status;
}

// The same request in raw contents has the same answer: no number gets lost on the way.
void CheckRaw(const oip::ModelInferRequest& request, const oip::ModelInferResponse& response) {
  if (request.raw_input_contents_size() > 0) return;
  std::vector<std::string> answers;
  const std::string raw = perceptrond::testing::Raw(request).SerializeAsString();
  const std::string path = "/inference.GRPCInferenceService/ModelInfer";
  Check(TheService().Call(path, {raw}, kAdmin, SIZE_MAX, answers).ok());
  CheckEqual("answers", answers.at(0), perceptrond::testing::Raw(response).SerializeAsString());
}

// A finding unless it says something about this request.
void CheckReflection(const reflection::ServerReflectionResponse& answer) {
  Check(answer.message_response_case() !=
        reflection::ServerReflectionResponse::MESSAGE_RESPONSE_NOT_SET);
  Check(!answer.has_error_response() || !answer.error_response().error_message().empty());
  for (const std::string& file : answer.file_descriptor_response().file_descriptor_proto())
    Check(google::protobuf::FileDescriptorProto().ParseFromString(file));
}

// A finding unless the figures of an answer fit together.
void CheckAnswer(const std::string& request, const Message& answer) {
  if (const auto* const learned = DynamicCastToGenerated<v1::LearnResponse>(&answer))
    CheckFigures(learned->result());
  if (const auto* const stream = DynamicCastToGenerated<v1::LearnStreamResponse>(&answer))
    for (const v1::LearnResult& result : stream->results()) CheckFigures(result);
  if (const auto* const predicted = DynamicCastToGenerated<v1::PredictResponse>(&answer))
    CheckFigures(*predicted);
  if (const auto* const told =
          DynamicCastToGenerated<reflection::ServerReflectionResponse>(&answer))
    CheckReflection(*told);
  oip::ModelInferRequest asked;
  if (const auto* const inferred = DynamicCastToGenerated<oip::ModelInferResponse>(&answer))
    if (asked.ParseFromString(request)) CheckRaw(asked, *inferred);
}

// One run of calls, on models of its own.
class Program {
 public:
  Program()
      : seen_{"models/a", "models/b", "models/c", "aliases/x"}, mutator_(seen_, kMostMessageBytes) {
    for (const char* text : {"",
                             "models/none",
                             "models/",
                             "a",
                             "x",
                             "new",
                             "models/new",
                             "k",
                             "1.2",
                             "*",
                             "description",
                             "values",
                             "indices",
                             "FP32",
                             "BYTES",
                             "no",
                             "yes",
                             "perceptron.v1.LearningService",
                             "perceptron/v1/model.proto",
                             "perceptron.v1.figure",
                             "google.protobuf.FieldOptions"})
      seen_.emplace_back(text);
    seen_.emplace_back(1 << 16, 'x');
    mutator_.SetMakeBytes([this](FuzzInput& input) { return MakeBytes(input); });
    Create("a", "feature_space { dense { dimension: 2 } } stored_predictions {}");
    Create("b",
           "feature_space { named {} } learner { classes { max_classes: 3 new_classes: "
           "NEW_CLASSES_NAMED } } stored_examples { max_sample: 4 }");
    Create("c",
           "feature_space { composition { inputs { model: 'models/a' } inputs { model: 'models/a' "
           "output: OUTPUT_SCORE } } }");
    Teach(
        "model: 'models/a' producer_id: 'p' first_offset: 0 examples { dense { values: [1, 2] } "
        "label: 1 } examples { dense { values: [3, 1] } label: -1 }");
    Teach(
        "model: 'models/b' examples { named { names: ['u', 'v'] } label_name: 'no' } "
        "examples { named { names: 'w' } label_name: 'yes' }");
    v1::UpdateAliasRequest alias;
    alias.mutable_alias()->set_name("aliases/x");
    alias.mutable_alias()->set_model("models/b");
    alias.set_allow_missing(true);
    v1::Alias made;
    Check(Ask("AliasService/UpdateAlias", alias, made).ok());
    file_ = Export("models/a");
  }

  void Run(FuzzInput& input) {
    for (size_t i = 0; i < kMostCalls && (i == 0 || !input.empty()); ++i) CallOne(input);
  }
  // Teaches and loads every model, and deletes everything.
  void CheckAndClear() {
    v1::ListAliasesResponse aliases;
    Check(Ask("AliasService/ListAliases", v1::ListAliasesRequest(), aliases).ok());
    for (const v1::Alias& alias : aliases.aliases()) {
      v1::DeleteAliasRequest request;
      request.set_name(alias.name());
      google::protobuf::Empty nothing;
      Check(Ask("AliasService/DeleteAlias", request, nothing).ok());
    }
    // Components after what is composed of them.
    for (int round = 0; round < 10; ++round) {
      v1::ListModelsResponse models;
      Check(Ask("ModelService/ListModels", v1::ListModelsRequest(), models).ok());
      Check(models.unreachable().empty());
      if (models.models().empty()) return;
      for (const v1::Model& model : models.models()) {
        Use(model.name());
        LoadAndDelete(model.name());
      }
    }
    Check(false);
  }

 private:
  static void Create(const std::string& id, const std::string& settings) {
    v1::CreateModelRequest request;
    request.set_model_id(id);
    Check(google::protobuf::TextFormat::ParseFromString(settings, request.mutable_model()));
    v1::Model created;
    Check(Ask("ModelService/CreateModel", request, created).ok());
  }
  static void Teach(const std::string& text) {
    v1::LearnRequest request;
    Check(google::protobuf::TextFormat::ParseFromString(text, &request));
    v1::LearnResponse learned;
    Check(Ask("LearningService/Learn", request, learned).ok());
  }
  static std::string Export(const std::string& name) {
    v1::ExportModelRequest request;
    request.set_name(name);
    v1::ExportModelResponse piece;
    Check(Ask("HistoryService/ExportModel", request, piece).ok());
    return piece.piece();
  }
  // Learns and predicts, unless the model refuses it.
  static void Use(const std::string& name) {
    v1::LearnRequest learn;
    Check(google::protobuf::TextFormat::ParseFromString(kRows, &learn));
    learn.set_model(name);
    v1::LearnResponse learned;
    Ask("LearningService/Learn", learn, learned);
    v1::PredictRequest predict;
    predict.set_model(name);
    *predict.mutable_examples() = learn.examples();
    v1::PredictResponse predicted;
    Ask("PredictionService/PredictStream", predict, predicted);
  }
  static grpc::Status Get(const std::string& name, v1::Model& model) {
    v1::GetModelRequest get;
    get.set_name(name);
    get.set_view(v1::MODEL_VIEW_WEIGHTS);
    const grpc::Status got = Ask("ModelService/GetModel", get, model);
    if (got.ok() || ReasonOf(got) == "MODEL_NOT_FOUND") return got;
    // It predicts by votes or a kernel, or the weights are too many.
    get.clear_view();
    return Ask("ModelService/GetModel", get, model);
  }
  // What is the same once the model is loaded again.
  static std::string StateOf(v1::Model model) {
    model.clear_name();
    model.clear_etag();
    model.clear_update_time();
    model.clear_expire_time();
    model.clear_stored_examples();
    model.mutable_report()->mutable_drift()->clear_window_examples();
    model.mutable_report()->mutable_drift()->clear_window_error();
    // Correct examples that were sampled after the last snapshot are lost, and then an analysis is not of all data.
    if (model.report().has_analysis()) {
      model.mutable_report()->mutable_analysis()->clear_current();
      model.mutable_report()->clear_margin_floor();
      model.mutable_report()->clear_update_bound();
      model.mutable_report()->clear_updates_left();
    }
    return model.DebugString();
  }
  // One that has another name is loaded from the journal, unless it is used.
  static void LoadAndDelete(const std::string& name) {
    v1::Model before;
    const bool known = Get(name, before).ok();
    v1::RenameModelRequest rename;
    rename.set_name(name);
    rename.set_new_name("models/renamed");
    v1::Model model;
    v1::DeleteModelRequest remove;
    remove.set_name(Ask("HistoryService/RenameModel", rename, model).ok() ? rename.new_name()
                                                                          : name);
    const grpc::Status got = Get(remove.name(), model);
    // Its settings have all defaults.
    perceptrond::FillDefaults(model);
    if (known && got.ok()) CheckEqual("models", StateOf(model), StateOf(before));
    google::protobuf::Empty nothing;
    const grpc::Status removed = Ask("ModelService/DeleteModel", remove, nothing);
    // Or it has expired.
    Check(got.ok() || ReasonOf(got) == "MODEL_NOT_FOUND");
    Check(removed.ok() || ReasonOf(removed) == "MODEL_IN_USE" ||
          ReasonOf(removed) == "MODEL_NOT_FOUND");
  }

  void CallOne(FuzzInput& input) {
    const size_t chosen = input.Below(std::size(kApiMethods) + std::size(kOtherMethods));
    const ApiMethod& method = chosen < std::size(kApiMethods)
                                  ? kApiMethods[chosen]
                                  : kOtherMethods[chosen - std::size(kApiMethods)];
    const MethodDescriptor& type = Find(method);
    const std::string token = input.Below(8) == 7 ? kReader : kAdmin;
    constexpr const char* kNames[] = {"models/a", "models/b", "models/c", "models/new"};
    const std::string name = input.OneOf(kNames);
    google::protobuf::Arena arena;
    std::vector<std::string> messages;
    for (size_t left = type.client_streaming() ? 1 + input.Below(3) : 1; left > 0; --left) {
      Message& message = Make(*type.input_type(), arena);
      Check(google::protobuf::TextFormat::ParseFromString(method.Request(name), &message));
      AddFile(message);
      size_t changes = input.Below(kMostChanges + 2);
      if (changes > kMostChanges) {
        const std::string bytes = input.Bytes(input.Byte());
        if (!message.MergeFromString(bytes)) {
          messages.push_back(bytes);
          continue;
        }
        changes = input.Below(kMostChanges + 1);
      }
      for (; changes > 0; --changes) mutator_.Mutate(input, message);
      AddTokens(input, message);
      AddUid(input, message);
      messages.push_back(message.SerializePartialAsString());
    }
    // A watch has no end.
    const size_t most_answers = absl::StrContains(method.path, "Watch") ? 1 : SIZE_MAX;
    const std::string path = absl::StrCat("/", type.service()->full_name(), "/", type.name());
    std::vector<std::string> answers;
    CheckStatus(path, TheService().Call(path, messages, token, most_answers, answers));
    for (const std::string& bytes : answers) {
      Message& answer = Make(*type.output_type(), arena);
      Check(answer.ParseFromString(bytes));
      CheckAnswer(messages.back(), answer);
      Remember(answer);
    }
  }

  void AddFile(Message& message) const {
    auto* const import = DynamicCastToGenerated<v1::ImportModelRequest>(&message);
    if (import != nullptr) import->set_piece(file_);
  }
  // The file of a model with changes, and with the checksum of the changed bytes; or any bytes.
  std::string MakeBytes(FuzzInput& input) const {
    if (input.Below(4) == 3) return std::string(input.Below(256), static_cast<char>(input.Byte()));
    std::vector<ModelFileFrame> frames = perceptrond::testing::FramesOf(file_);
    const MessageMutator mutator(seen_, kMostMessageBytes / 2);
    for (size_t changes = input.Below(kMostChanges); changes > 0; --changes)
      mutator.Mutate(input, frames[input.Below(frames.size())]);
    return perceptrond::testing::ModelFileOf(frames);
  }
  // Gives a list's request a token whose checksum is right, of any content.
  void AddTokens(FuzzInput& input, Message& message) const {
    const auto* const field = message.GetDescriptor()->FindFieldByName("page_token");
    if (field == nullptr || !input.Flag()) return;
    constexpr const char* kLists[] = {"ListWeights ", "ListWeights.terms ",
                                      "ListStoredExamples of ", "ListModels", "ListAliases"};
    constexpr const char* kParts[] = {"0", "1", "2", "18446744073709551615", "", "x", "models/a"};
    std::string list = input.OneOf(kLists);
    if (absl::EndsWith(list, " ")) list += Uid("models/a");
    std::string content = input.OneOf(kParts);
    for (size_t more = input.Below(4); more > 0; --more)
      absl::StrAppend(&content, " ", input.OneOf(kParts));
    message.GetReflection()->SetString(&message, field, perceptrond::MakePageToken(list, content));
  }
  // Nobody guesses it.
  static void AddUid(FuzzInput& input, Message& message) {
    auto* const stream = DynamicCastToGenerated<v1::LearnStreamRequest>(&message);
    if (stream == nullptr || !stream->producer().has_resume() || !input.Flag()) return;
    stream->mutable_producer()->mutable_resume()->set_model_uid(Uid(stream->model()));
  }
  static std::string Uid(const std::string& name) {
    v1::GetModelRequest request;
    request.set_name(name);
    v1::Model model;
    return Ask("ModelService/GetModel", request, model).ok() ? model.uid() : "";
  }
  // Names, ids, tokens and etags of an answer.
  void Remember(const Message& answer) {
    const google::protobuf::Reflection& reflection = *answer.GetReflection();
    std::vector<const google::protobuf::FieldDescriptor*> fields;
    reflection.ListFields(answer, &fields);
    for (const auto* const field : fields) {
      const int size = field->is_repeated() ? std::min(reflection.FieldSize(answer, field), 4) : 1;
      for (int i = 0; i < size && seen_.size() < kMostSeen; ++i) {
        if (field->cpp_type() == field->CPPTYPE_MESSAGE) {
          Remember(field->is_repeated() ? reflection.GetRepeatedMessage(answer, field, i)
                                        : reflection.GetMessage(answer, field));
        } else if (field->type() == field->TYPE_STRING) {
          std::string text = field->is_repeated() ? reflection.GetRepeatedString(answer, field, i)
                                                  : reflection.GetString(answer, field);
          if (text.size() <= kMostSeenBytes) seen_.push_back(std::move(text));
        }
      }
    }
  }

  std::vector<std::string> seen_;
  MessageMutator mutator_;
  // Of models/a.
  std::string file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  Program program;
  program.Run(input);
  program.CheckAndClear();
  return 0;
}
