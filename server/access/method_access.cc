#include "server/access/method_access.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/wire_format_lite.h>
#include <grpcpp/support/proto_buffer_reader.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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
  // The field of another model's name, for which the caller needs other_role.
  const char* other = "";
  Role other_role = Role::kRead;
  // A bool, with which the method needs the role admin.
  const char* more = "";
  // What the method does concerns every model.
  bool every_model = false;
  // Whether an alias may stand for the model: while a stream is open, or for each of its messages.
  enum class Takes : uint8_t { kModel, kAlias, kAliasEachTime } takes = Takes::kModel;
};
constexpr auto kAlias = Entry::Takes::kAlias;

constexpr Entry Needs(const char* method, Right right) {
  return {.method = method, .right = right};
}

constexpr Entry kEntries[] = {
    // The store asks about the components of a composition.
    {.method = "perceptron.v1.ModelService.CreateModel", .role = Role::kAdmin, .id = "model_id"},
    {.method = "perceptron.v1.ModelService.GetModel",
     .role = Role::kRead,
     .name = "name",
     .takes = kAlias},
    {.method = "perceptron.v1.ModelService.ListWeights",
     .role = Role::kRead,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.ModelService.ListModels", .role = Role::kRead},
    {.method = "perceptron.v1.ModelService.UpdateModel",
     .role = Role::kAdmin,
     .name = "model.name"},
    {.method = "perceptron.v1.ModelService.DeleteModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.FreezeModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.UnfreezeModel", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.ModelService.WatchModel",
     .role = Role::kRead,
     .name = "name",
     .takes = kAlias},
    {.method = "perceptron.v1.LearningService.Learn",
     .role = Role::kLearn,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.LearningService.LearnStream",
     .role = Role::kLearn,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.PredictionService.Predict",
     .role = Role::kRead,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.PredictionService.PredictStream",
     .role = Role::kRead,
     .name = "model",
     .takes = Entry::Takes::kAliasEachTime},
    {.method = "perceptron.v1.PredictionService.Explain",
     .role = Role::kRead,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.AnalysisService.Analyze",
     .role = Role::kRead,
     .name = "model",
     .more = "replace_weights",
     .takes = kAlias},
    {.method = "perceptron.v1.AnalysisService.ListStoredExamples",
     .role = Role::kRead,
     .name = "model",
     .takes = kAlias},
    {.method = "perceptron.v1.AliasService.GetAlias", .role = Role::kRead, .name = "name"},
    {.method = "perceptron.v1.AliasService.ListAliases", .role = Role::kRead},
    {.method = "perceptron.v1.AliasService.UpdateAlias",
     .role = Role::kAdmin,
     .name = "alias.name",
     .other = "alias.model"},
    {.method = "perceptron.v1.AliasService.DeleteAlias", .role = Role::kAdmin, .name = "name"},
    {.method = "perceptron.v1.AliasService.ChallengeAlias",
     .role = Role::kAdmin,
     .name = "name",
     .other = "challenger"},
    {.method = "perceptron.v1.HistoryService.CopyModel",
     .role = Role::kAdmin,
     .name = "new_name",
     .other = "name"},
    {.method = "perceptron.v1.HistoryService.RenameModel",
     .role = Role::kAdmin,
     .name = "name",
     .other = "new_name",
     .other_role = Role::kAdmin},
    {.method = "perceptron.v1.HistoryService.ExportModel", .role = Role::kRead, .name = "name"},
    {.method = "perceptron.v1.HistoryService.ImportModel",
     .role = Role::kAdmin,
     .name = "new_name"},
    {.method = "perceptron.v1.HistoryService.CreateSnapshot",
     .role = Role::kAdmin,
     .name = "model"},
    {.method = "perceptron.v1.HistoryService.ListSnapshots", .role = Role::kRead, .name = "model"},
    {.method = "perceptron.v1.HistoryService.DeleteSnapshot",
     .role = Role::kAdmin,
     .name = "model"},
    {.method = "perceptron.v1.HistoryService.RollBackModel", .role = Role::kAdmin, .name = "model"},
    {.method = "perceptron.v1.BackupService.CreateBackup",
     .role = Role::kAdmin,
     .every_model = true},
    {.method = "perceptron.v1.BackupService.ListBackups",
     .role = Role::kAdmin,
     .every_model = true},
    Needs("inference.GRPCInferenceService.ServerLive", Right::kHealth),
    Needs("inference.GRPCInferenceService.ServerReady", Right::kHealth),
    Needs("inference.GRPCInferenceService.ServerMetadata", Right::kHealth),
    {.method = "inference.GRPCInferenceService.ModelReady",
     .role = Role::kRead,
     .id = "name",
     .takes = kAlias},
    {.method = "inference.GRPCInferenceService.ModelMetadata",
     .role = Role::kRead,
     .id = "name",
     .takes = kAlias},
    {.method = "inference.GRPCInferenceService.ModelInfer",
     .role = Role::kRead,
     .id = "model_name",
     .takes = kAlias},
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

// A field to be read out of a message, and where its value goes: one of the two is not null.
struct Sought {
  std::span<const int> path;
  // The last value of a string.
  std::string* last = nullptr;
  // Set if a bool is true in some occurrence.
  bool* flag = nullptr;
};

// Reads the fields that are sought out of a message. Allocates nothing for a field that occurs again.
class FieldReader {
 public:
  FieldReader(CodedInputStream& in, std::span<const Sought> sought) : in_(in), sought_(sought) {}

  // Those of `sought` whose bit is set, in a part of the message that lies `depth` fields deep.
  bool Read(size_t depth, uint32_t bits) {
    while (const uint32_t tag = in_.ReadTag()) {
      const int field = WireFormatLite::GetTagFieldNumber(tag);
      uint32_t within = 0;
      const Sought* here = nullptr;
      for (size_t i = 0; i < sought_.size(); ++i) {
        const std::span<const int> path = sought_[i].path;
        if ((bits >> i & 1) == 0 || path.size() <= depth || path[depth] != field) continue;
        if (path.size() == depth + 1) here = &sought_[i];
        if (path.size() > depth + 1) within |= uint32_t{1} << i;
      }
      if (!ReadField(tag, here, within, depth)) return false;
    }
    return in_.ConsumedEntireMessage();
  }

 private:
  bool ReadField(uint32_t tag, const Sought* here, uint32_t within, size_t depth) {
    const auto type = WireFormatLite::GetTagWireType(tag);
    if (here != nullptr && here->flag != nullptr && type == WireFormatLite::WIRETYPE_VARINT) {
      uint64_t value = 0;
      if (!in_.ReadVarint64(&value)) return false;
      // Also if a later occurrence says otherwise, which asks for less than is checked.
      *here->flag |= value != 0;
      return true;
    }
    const bool is_bytes = type == WireFormatLite::WIRETYPE_LENGTH_DELIMITED;
    if (here != nullptr && here->last != nullptr && is_bytes)
      return WireFormatLite::ReadBytes(&in_, here->last);
    if (within == 0 || !is_bytes) return WireFormatLite::SkipField(&in_, tag);
    uint32_t size = 0;
    if (!in_.ReadVarint32(&size) || size > static_cast<uint32_t>(INT32_MAX)) return false;
    const CodedInputStream::Limit limit = in_.PushLimit(static_cast<int>(size));
    if (!Read(depth + 1, within) || in_.BytesUntilLimit() != 0) return false;
    in_.PopLimit(limit);
    return true;
  }

  CodedInputStream& in_;
  const std::span<const Sought> sought_;
};

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
  other_ = Resolve(method, found->other);
  more_ = Resolve(method, found->more);
  other_role_ = found->other_role;
  takes_alias_ = found->takes != Entry::Takes::kModel;
  follows_alias_ = found->takes == Entry::Takes::kAliasEachTime;
  // SetModel appends a field of the message itself.
  if (takes_alias_ && model_.size() != 1) Die(method.full_name(), "takes an alias within a field");
}

void MethodAccess::SetModel(const std::string& model, grpc::ByteBuffer& message) const {
  const absl::string_view name =
      is_id_ ? absl::StripPrefix(model, kModelCollection) : absl::string_view(model);
  std::string field;
  {
    google::protobuf::io::StringOutputStream stream(&field);
    google::protobuf::io::CodedOutputStream out(&stream);
    out.WriteTag(
        WireFormatLite::MakeTag(model_.front(), WireFormatLite::WIRETYPE_LENGTH_DELIMITED));
    out.WriteVarint32(static_cast<uint32_t>(name.size()));
    out.WriteRaw(name.data(), static_cast<int>(name.size()));
  }
  std::vector<grpc::Slice> slices;
  if (!message.Dump(&slices).ok()) return;
  slices.emplace_back(field);
  grpc::ByteBuffer with(slices.data(), slices.size());
  message.Swap(&with);
}

bool MethodAccess::Read(grpc::ByteBuffer& message, NamedModels& named) const {
  // Of a field that is given more than once the parser takes the last one.
  std::string name;
  const Sought sought[] = {{.path = model_, .last = &name},
                           {.path = other_, .last = &named.other_model},
                           {.path = more_, .flag = &named.asks_for_more}};
  if (!message.Valid()) return true;
  grpc::ProtoBufferReader reader(&message);
  CodedInputStream in(&reader);
  constexpr uint32_t kAll = (uint32_t{1} << std::size(sought)) - 1;
  if (!reader.status().ok() || !FieldReader(in, sought).Read(0, kAll)) return false;
  const bool is_full = !is_id_ || absl::StartsWith(name, kAliasCollection);
  if (!name.empty()) named.model = is_full ? std::move(name) : absl::StrCat(kModelCollection, name);
  return true;
}

}  // namespace perceptrond
