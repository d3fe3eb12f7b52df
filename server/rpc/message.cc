#include "server/rpc/message.h"

#include <algorithm>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/features/names.h"
#include "core/settings/settings.h"
#include "core/vector/name.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace perceptrond {
namespace {

// Trailers share 8 KiB by default. They hold the message twice, once with each byte beyond ASCII
// written as three, and the details in base64.
constexpr size_t kMaxMessageBytes = 768;
constexpr size_t kMaxDescriptionBytes = 512;
constexpr size_t kMaxFieldBytes = 256;

// At most `max_bytes` of the text, cut between two UTF-8 characters.
std::string Truncate(absl::string_view text, size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  const auto is_continuation = [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; };
  while (max_bytes > 0 && is_continuation(text[max_bytes])) --max_bytes;
  return std::string(text.substr(0, max_bytes));
}

// Details repeat parts of the request, which may have any length.
void TruncateDetail(absl::string_view url, std::string& detail) {
  if (detail.size() <= kMaxDescriptionBytes) return;
  if (url == kBadRequestUrl) {
    google::rpc::BadRequest request;
    if (!request.ParseFromString(detail)) return;
    for (auto& violation : *request.mutable_field_violations()) {
      violation.set_field(Truncate(violation.field(), kMaxFieldBytes));
      violation.set_description(Truncate(violation.description(), kMaxDescriptionBytes));
    }
    request.SerializeToString(&detail);
  } else if (url == kErrorInfoUrl) {
    google::rpc::ErrorInfo info;
    if (!info.ParseFromString(detail)) return;
    for (auto& [key, value] : *info.mutable_metadata()) value = Truncate(value, kMaxFieldBytes);
    info.SerializeToString(&detail);
  }
}

}  // namespace

void ToProto(const absl::Status& status, google::rpc::Status& proto) {
  proto.set_code(static_cast<int>(status.code()));
  const absl::string_view message = status.message();
  proto.set_message(Truncate(ToValidUtf8({message.data(), message.size()}), kMaxMessageBytes));
  status.ForEachPayload([&](absl::string_view url, const absl::Cord& payload) {
    google::protobuf::Any& detail = *proto.add_details();
    detail.set_type_url(std::string(url));
    absl::CopyCordToString(payload, detail.mutable_value());
    TruncateDetail(url, *detail.mutable_value());
  });
}

absl::Status FromProto(const google::rpc::Status& proto) {
  absl::Status status(static_cast<absl::StatusCode>(proto.code()), proto.message());
  for (const google::protobuf::Any& detail : proto.details())
    status.SetPayload(detail.type_url(), absl::Cord(detail.value()));
  return status;
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  google::rpc::Status details;
  ToProto(status, details);
  return {static_cast<grpc::StatusCode>(status.code()), details.message(),
          details.SerializeAsString()};
}

absl::Status DrainingError() { return StoppedError(StopReason::kDraining); }

absl::Status CancelledError() { return StoppedError(StopReason::kCancelled); }

namespace {

constexpr size_t kChecksumDigits = 16;
// More than twice what the longest name takes.
constexpr size_t kMaxPageTokenBytes = 512;
// The longest part of an invalid token that an error repeats.
constexpr size_t kMaxShownBytes = 80;

std::string Checksum(absl::string_view list, absl::string_view position) {
  // The length separates list and position.
  const std::string text = absl::StrCat("page of ", list.size(), " ", list, " ", position);
  return absl::StrCat(absl::Hex(HashBytes(text.data(), text.size(), 0), absl::kZeroPad16));
}

}  // namespace

namespace {

bool IsNameOf(absl::string_view collection, absl::string_view name) {
  return absl::ConsumePrefix(&name, collection) && IsModelId(name);
}

absl::Status BadName(absl::string_view name, absl::string_view field, absl::string_view what) {
  return InvalidField("INVALID_FIELD", field,
                      absl::StrCat("\"", absl::CHexEscape(name), "\" is not ", what,
                                   "NAME, with NAME of letters, digits, '_', '-' and '.', starting "
                                   "with a letter or a digit"));
}

}  // namespace

absl::Status CheckModelName(absl::string_view name, absl::string_view field) {
  if (IsNameOf(kModelCollection, name)) return absl::OkStatus();
  if (IsNameOf(kAliasCollection, name)) return AliasNotFound(name);
  return BadName(name, field, "a model's name; write models/");
}

absl::Status CheckNoAlias(absl::string_view name, absl::string_view field) {
  if (!IsNameOf(kAliasCollection, name)) return CheckModelName(name, field);
  return InvalidField("INVALID_FIELD", field,
                      absl::StrCat("\"", name, "\" is an alias: name the model itself here"));
}

absl::Status CheckAliasName(absl::string_view name, absl::string_view field) {
  if (IsNameOf(kAliasCollection, name)) return absl::OkStatus();
  return BadName(name, field, "an alias's name; write aliases/");
}

absl::Status CheckId(absl::string_view id, absl::string_view field) {
  if (id.size() <= kMaxIdBytes) return absl::OkStatus();
  return InvalidField(
      "INVALID_FIELD", field,
      absl::StrCat("has ", id.size(), " bytes; an id has at most ", kMaxIdBytes, " bytes"));
}

absl::StatusOr<size_t> ReadPageSize(int32_t page_size, size_t standard, size_t maximum) {
  if (page_size < 0) {
    return InvalidField("INVALID_FIELD", "page_size",
                        absl::StrCat(page_size, " is below 0; send 0 for the default"));
  }
  return page_size == 0 ? standard : std::min(static_cast<size_t>(page_size), maximum);
}

std::string MakePageToken(absl::string_view list, absl::string_view name) {
  return absl::WebSafeBase64Escape(absl::StrCat(Checksum(list, name), name));
}

std::string MakePageToken(absl::string_view list, std::initializer_list<uint64_t> numbers) {
  return MakePageToken(list, absl::StrJoin(numbers, " "));
}

absl::Status BadPageToken(absl::string_view token) {
  return InvalidField(
      "INVALID_FIELD", "page_token",
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(token.substr(0, kMaxShownBytes)),
                   "\" is not a token of this list; send next_page_token of the previous page "
                   "unchanged, or nothing to start at the beginning"));
}

namespace {

// The content of a token whose checksum is right; else empty.
std::string ContentOf(absl::string_view list, absl::string_view token) {
  std::string text;
  if (token.size() > kMaxPageTokenBytes || !absl::WebSafeBase64Unescape(token, &text) ||
      text.size() <= kChecksumDigits)
    return "";
  const std::string content = text.substr(kChecksumDigits);
  // Base64 can spell the same bytes with other trailing bits; only one spelling is valid.
  return token == MakePageToken(list, content) ? content : "";
}

}  // namespace

absl::StatusOr<std::string> ReadPageName(absl::string_view list, absl::string_view token,
                                         absl::string_view collection) {
  if (token.empty()) return std::string();
  std::string name = ContentOf(list, token);
  if (!IsNameOf(collection, name)) return BadPageToken(token);
  return name;
}

absl::StatusOr<std::vector<uint64_t>> ReadPageNumbers(absl::string_view list,
                                                      absl::string_view token, size_t count) {
  std::vector<uint64_t> numbers;
  if (token.empty()) return numbers;
  const std::string content = ContentOf(list, token);
  for (const absl::string_view part : absl::StrSplit(content, ' ')) {
    if (!absl::SimpleAtoi(part, &numbers.emplace_back())) return BadPageToken(token);
  }
  if (numbers.size() != count) return BadPageToken(token);
  return numbers;
}

}  // namespace perceptrond
