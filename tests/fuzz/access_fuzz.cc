// Access control, from any bytes. The first byte chooses: an access file gives rules
// that keep their promises, or words about what is wrong; a request names the models that its handler
// will see, as Protobuf's own parser says; headers give a token or a trace, or none; a config file gives
// settings that are printed as a file of the same ones, or words.
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "inference/inference_service.pb.h"
#include "perceptron/v1/analysis_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/access/access_control.h"
#include "server/access/method_access.h"
#include "server/access/rules.h"
#include "server/config/options.h"
#include "server/rpc/trace_context.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/temp_dir.h"

namespace {

namespace v1 = ::perceptron::v1;
using perceptrond::MethodAccess;
using perceptrond::NamedModels;
using perceptrond::Principal;
using perceptrond::Role;
using perceptrond::testing::Check;

// A principal may list exactly the models that it may read.
void CheckPrefixes(const Principal& principal) {
  const std::vector<std::string> prefixes = principal.ReadablePrefixes();
  for (size_t i = 0; i < prefixes.size(); ++i) {
    Check(principal.Has(Role::kRead, prefixes[i]));
    for (size_t j = 0; j < prefixes.size(); ++j)
      Check(i == j || !std::string_view(prefixes[i]).starts_with(prefixes[j]));
  }
  Check(prefixes.empty() != principal.HasSome(Role::kRead));
  for (const Principal::Grant& grant : principal.grants) {
    for (const Role role : {Role::kRead, Role::kLearn, Role::kAdmin}) {
      if (role <= grant.role) Check(principal.Has(role, grant.prefix + "x"));
      Check(!principal.Has(role, grant.prefix + "x") || principal.HasSome(role));
    }
  }
}

void CheckFile(const std::string& text) {
  const auto rules = perceptrond::AccessRules::Parse(text);
  if (!rules.ok()) return Check(!rules.status().message().empty());
  for (const Principal& principal : (*rules)->principals()) {
    Check(!principal.name.empty());
    CheckPrefixes(principal);
  }
  const Principal* const without_credentials = (*rules)->Find({});
  Check(without_credentials == nullptr || without_credentials->anonymous);
  Check((*rules)->Find({.token = perceptrond::DigestToken("not in the file"), .certificate = {}}) ==
        nullptr);
}

template <typename Request>
void CheckRequest(const char* method, const std::string& bytes, std::string (*name)(const Request&),
                  void (*more)(const Request&, const NamedModels&) = nullptr) {
  const MethodAccess access(
      *google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method));
  Request request;
  const bool parses = request.ParseFromString(bytes);
  const grpc::Slice slices[] = {grpc::Slice(bytes.substr(0, bytes.size() / 2)),
                                grpc::Slice(bytes.substr(bytes.size() / 2))};
  grpc::ByteBuffer buffer(slices, 2);
  NamedModels named;
  const bool read = access.Read(buffer, named);
  if (!parses) return;
  Check(read && named.model == name(request));
  if (more != nullptr) more(request, named);
}

std::string FullName(const std::string& id) { return id.empty() ? "" : "models/" + id; }

void CheckRequests(uint8_t which, const std::string& bytes) {
  switch (which % 6) {
    case 0:
      return CheckRequest<v1::GetModelRequest>(
          "perceptron.v1.ModelService.GetModel", bytes,
          [](const v1::GetModelRequest& request) { return request.name(); });
    case 1:
      return CheckRequest<v1::CreateModelRequest>(
          "perceptron.v1.ModelService.CreateModel", bytes,
          [](const v1::CreateModelRequest& request) { return FullName(request.model_id()); });
    case 2:
      return CheckRequest<v1::UpdateModelRequest>(
          "perceptron.v1.ModelService.UpdateModel", bytes,
          [](const v1::UpdateModelRequest& request) { return request.model().name(); });
    case 3:
      return CheckRequest<v1::LearnRequest>(
          "perceptron.v1.LearningService.Learn", bytes,
          [](const v1::LearnRequest& request) { return request.model(); });
    case 4:
      return CheckRequest<v1::AnalyzeRequest>(
          "perceptron.v1.AnalysisService.Analyze", bytes,
          [](const v1::AnalyzeRequest& request) { return request.model(); },
          [](const v1::AnalyzeRequest& request, const NamedModels& named) {
            Check(named.asks_for_more || !request.replace_weights());
          });
    default:
      return CheckRequest<inference::ModelInferRequest>(
          "inference.GRPCInferenceService.ModelInfer", bytes,
          [](const inference::ModelInferRequest& request) {
            return FullName(request.model_name());
          });
  }
}

void CheckHeaders(const std::string& value) {
  perceptrond::TokenOf(value);
  const auto trace = perceptrond::ParseTraceparent(value);
  if (!trace.has_value()) return;
  Check(trace->trace_id.size() == 32 && trace->span_id.size() == 16);
  const std::string whole = "00-" + trace->trace_id + "-" + trace->span_id + "-00";
  Check(perceptrond::ParseTraceparent(whole).has_value());
}

void CheckConfig(const std::string& text) {
  static const perceptrond::testing::TempDir directory;
  const auto parse = [](const std::string& content) {
    const std::string path = directory.path() + "/config";
    std::ofstream(path, std::ios::binary) << content;
    return perceptrond::ParseOptions({"--config", path});
  };
  const perceptrond::ParseResult read = parse(text);
  if (read.exit_code.has_value()) return Check(*read.exit_code == 2 && !read.err.empty());
  const std::string printed = perceptrond::ConfigText(read.options);
  perceptrond::testing::CheckEqual("settings", perceptrond::ConfigText(parse(printed).options),
                                   printed);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data + 2), size - 2);
  switch (data[0] % 4) {
    case 0:
      CheckFile(bytes);
      break;
    case 1:
      CheckRequests(data[1], bytes);
      break;
    case 2:
      CheckHeaders(bytes);
      break;
    default:
      CheckConfig(bytes);
  }
  return 0;
}
