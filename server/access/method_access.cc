#include "server/access/method_access.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Fields are in the request: "model.name" is the field name of the field model.
struct Entry {
  const char* method;
  std::optional<Right> right = std::nullopt;
  Role role = Role::kAdmin;
  // The field of the model's name, or of its id. Neither: the method names no model.
  const char* name = "";
  const char* id = "";
  // The repeated field of further models, which the caller must be able to read.
  const char* also_read = "";
  // A bool, with which the method needs the role admin.
  const char* more = "";
  // What the method does concerns every model.
  bool every_model = false;
};

constexpr Entry Needs(const char* method, Right right) {
  return {.method = method, .right = right};
}

constexpr Entry kEntries[] = {
    {.method = "perceptron.v1.ModelService.CreateModel",
     .role = Role::kAdmin,
     .id = "model_id",
     .also_read = "model.feature_space.composition.inputs.model"},
    {.method = "perceptron.v1.ModelService.GetModel", .role = Role::kRead, .name = "name"},
    {.method = "perceptron.v1.ModelService.ListModels", .role = Role::kRead},
    {.method = "perceptron.v1.ModelService.UpdateModel",
     .role = Role::kAdmin,
     .name = "model.name"},
    {.method = "perceptron.v1.ModelService.DeleteModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.FreezeModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.UnfreezeModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.WatchModel", .role = Role::kRead, .name = "name"},
    {.method = "perceptron.v1.LearningService.Learn", .role = Role::kLearn, .name = "model"},
    {.method = "perceptron.v1.LearningService.LearnStream", .role = Role::kLearn, .name = "model"},
    {.method = "perceptron.v1.PredictionService.Predict", .role = Role::kRead, .name = "model"},
    {.method = "perceptron.v1.PredictionService.PredictStream",
     .role = Role::kRead,
     .name = "model"},
    {.method = "perceptron.v1.PredictionService.Explain", .role = Role::kRead, .name = "model"},
    {.method = "perceptron.v1.AnalysisService.Analyze",
     .role = Role::kRead,
     .name = "model",
     .more = "replace_weights"},
    {.method = "perceptron.v1.AnalysisService.ListStoredExamples",
     .role = Role::kRead,
     .name = "model"},
    {.method = "perceptron.v1.BackupService.CreateBackup",
     .role = Role::kAdmin,
     .every_model = true},
    {.method = "perceptron.v1.BackupService.ListBackups",
     .role = Role::kAdmin,
     .every_model = true},
    Needs("inference.GRPCInferenceService.ServerLive", Right::kHealth),
    Needs("inference.GRPCInferenceService.ServerReady", Right::kHealth),
    Needs("inference.GRPCInferenceService.ServerMetadata", Right::kHealth),
    {.method = "inference.GRPCInferenceService.ModelReady", .role = Role::kRead, .id = "name"},
    {.method = "inference.GRPCInferenceService.ModelMetadata", .role = Role::kRead, .id = "name"},
    {.method = "inference.GRPCInferenceService.ModelInfer",
     .role = Role::kRead,
     .id = "model_name"},
    Needs("grpc.health.v1.Health.Check", Right::kHealth),
    Needs("grpc.health.v1.Health.Watch", Right::kHealth),
    Needs("grpc.reflection.v1alpha.ServerReflection.ServerReflectionInfo", Right::kReflection),
};

[[noreturn]] void Die(const std::string& method, absl::string_view why) {
  std::fprintf(stderr, "server/access/method_access.cc: %s %s\n", method.c_str(),
               std::string(why).c_str());
  std::abort();
}

// The numbers of the fields that a path of names has; empty for an empty path.
FieldPath Resolve(const google::protobuf::MethodDescriptor& method, const std::string& names) {
  FieldPath path;
  if (names.empty()) return path;
  const google::protobuf::Descriptor* message = method.input_type();
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(names, '.'))) {
    const google::protobuf::FieldDescriptor* const field =
        message == nullptr ? nullptr : message->FindFieldByName(name);
    if (field == nullptr) Die(method.full_name(), absl::StrCat("has no field ", names));
    path.push_back(field->number());
    message = field->message_type();
  }
  return path;
}

// What a message has in one field.
struct Sought {
  std::span<const int> path;
  std::vector<std::string>* strings = nullptr;
  bool* flag = nullptr;
};

// Finds the fields in a message or a part of one.
bool Find(CodedInputStream& in, std::span<const Sought> sought) {
  constexpr auto kBytes = WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
  while (const uint32_t tag = in.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    const auto type = WireFormatLite::GetTagWireType(tag);
    std::vector<Sought> within;
    const Sought* here = nullptr;
    for (const Sought& one : sought) {
      if (one.path.empty() || one.path.front() != field) continue;
      if (one.path.size() == 1) here = &one;
      if (one.path.size() > 1) within.push_back({one.path.subspan(1), one.strings, one.flag});
    }
    if (here != nullptr && here->flag != nullptr && type == WireFormatLite::WIRETYPE_VARINT) {
      uint64_t value = 0;
      if (!in.ReadVarint64(&value)) return false;
      // Also if a later occurrence says otherwise, which asks for less than is checked.
      *here->flag |= value != 0;
    } else if (here != nullptr && here->strings != nullptr && type == kBytes) {
      if (!WireFormatLite::ReadBytes(&in, &here->strings->emplace_back())) return false;
    } else if (!within.empty() && type == kBytes) {
      uint32_t size = 0;
      if (!in.ReadVarint32(&size) || size > static_cast<uint32_t>(INT32_MAX)) return false;
      const CodedInputStream::Limit limit = in.PushLimit(static_cast<int>(size));
      if (!Find(in, within) || in.BytesUntilLimit() != 0) return false;
      in.PopLimit(limit);
    } else if (!WireFormatLite::SkipField(&in, tag)) {
      return false;
    }
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

MethodAccess::MethodAccess(const google::protobuf::MethodDescriptor& method)
    : path_(absl::StrCat("/", method.service()->full_name(), "/", method.name())),
      is_stream_(method.client_streaming() || method.server_streaming()),
      takes_examples_(method.input_type()->FindFieldByName("columns") != nullptr ||
                      method.input_type()->FindFieldByName("raw_input_contents") != nullptr) {
  const Entry* const found =
      std::find_if(std::begin(kEntries), std::end(kEntries),
                   [&](const Entry& entry) { return method.full_name() == entry.method; });
  if (found == std::end(kEntries))
    Die(method.full_name(), "has no entry: say there who may call it");
  right_ = found->right;
  role_ = found->role;
  for_every_model_ = found->every_model;
  is_id_ = *found->id != '\0';
  model_ = Resolve(method, is_id_ ? found->id : found->name);
  also_read_ = Resolve(method, found->also_read);
  more_ = Resolve(method, found->more);
}

bool MethodAccess::Read(grpc::ByteBuffer& message, NamedModels& named) const {
  std::vector<std::string> names;
  const Sought sought[] = {{model_, &names, nullptr},
                           {also_read_, &named.also_read, nullptr},
                           {more_, nullptr, &named.asks_for_more}};
  if (!message.Valid()) return true;
  grpc::ProtoBufferReader reader(&message);
  CodedInputStream in(&reader);
  if (!reader.status().ok() || !Find(in, sought)) return false;
  // Of a field that is given more than once the parser takes the last one.
  if (!names.empty() && !names.back().empty())
    named.model = is_id_ ? absl::StrCat(kModelCollection, names.back()) : std::move(names.back());
  return true;
}

}  // namespace perceptrond
