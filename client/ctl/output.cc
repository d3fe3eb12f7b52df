#include "client/ctl/output.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/command.h"
#include "client/ctl/terminal.h"
#include "client/error.h"
#include "core/vector/control_characters.h"
#include "core/vector/json.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

// A hint for errors below gRPC, which it reports only as message text; null for others.
const char* TransportHint(absl::string_view message) {
  const auto says = [message](const char* words) { return absl::StrContains(message, words); };
  if (says("wrong version number")) return "the server does not seem to use TLS: omit --tls";
  if (says("certificate verify failed")) {
    return "the server's certificate is not signed by a trusted authority: see --tls-ca";
  }
  if (says("is not in peer certificate")) {
    return "the server's certificate has another name: see --tls-server-name";
  }
  // gRPC reports this for credentials it cannot use.
  if (says("empty address list")) {
    return "check that --tls-cert, --tls-key and --tls-ca hold valid PEM, and that key and "
           "certificate match";
  }
  // gRPC's words for an answer in HTTP/1.
  if (says("http1.x server")) {
    return "a web server answers there, perhaps perceptrond's metrics and status page "
           "(--metrics-address, port 7601): give the address that it serves gRPC on (--address, "
           "port "
           "7600)";
  }
  if (says("Socket closed") || says("Connection reset")) {
    return "is perceptrond running there? If it uses TLS, give --tls and --tls-ca; if it requires "
           "a "
           "client certificate, --tls-cert and --tls-key";
  }
  return nullptr;
}

// What the user can do about the error; null where the message suffices.
const char* Hint(const absl::Status& status, const std::string& reason) {
  if (reason == "MODEL_NOT_FOUND" || reason == "COMPONENT_NOT_FOUND")
    return "'perceptronctl list' lists the models";
  if (reason == "ALIAS_NOT_FOUND") return "'perceptronctl alias' lists the aliases";
  if (reason == "MODEL_EXISTS") return "choose another name, or delete the existing model first";
  if (reason == "MODEL_FROZEN") return "'perceptronctl unfreeze' lets it learn again";
  if (reason == "ETAG_MISMATCH")
    return "the model has changed since: get it again and repeat the command with its new etag";
  if (reason == "PRODUCER_SUPERSEDED")
    return "another stream uses the same --producer; give each stream its own";
  if (reason == "OFFSET_GAP")
    return "--start-offset must not be above the offset the server expects next";
  if (reason == "PRODUCER_LIMIT") {
    return "use a --producer that the model already knows, or learn with --unnumbered";
  }
  if (reason == "NOT_LINEAR") return "use 'perceptronctl predict' for the model's scores";
  if (reason == "KEEPER_UNREACHABLE")
    return "its labels can be learned once the server that predicted them answers again";
  if (reason == "DRAINING") return "the server is shutting down: retry once it has restarted";
  if (reason.empty() && absl::IsUnavailable(status)) {
    if (const char* hint = TransportHint(status.message())) return hint;
  }
  if (GaveUpAfter(status).has_value()) {
    return "is perceptrond running there? --server sets the address, --timeout the longest wait";
  }
  if (reason.empty() && absl::IsUnavailable(status)) {
    return "is perceptrond running there? --server or PERCEPTROND_SERVER sets the address";
  }
  if (absl::IsDeadlineExceeded(status)) return "raise --timeout";
  if (absl::IsUnimplemented(status))
    return "is this a perceptrond server, and of the same version?";
  return nullptr;
}

std::string& ProxyName() {
  static auto* const name = new std::string;
  return *name;
}

template <typename Number>
std::string ShortestOf(Number value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

std::string GaveUp(const absl::Status& status) {
  const auto after = GaveUpAfter(status);
  if (!after.has_value()) return "";
  return absl::StrCat("gave up after ", absl::FormatDuration(*after), " without an answer: ");
}

// MessageToJsonString() would print map entries in arbitrary order.
std::string Serialize(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

}  // namespace

void Print(std::string_view text) { Write(stdout, text); }

void PrintDone(std::string_view text) {
  if (!IsQuiet()) Print(text);
}

void PrintNotice(std::string_view line) {
  if (!IsQuiet()) PrintStderr(line);
}

void NameProxy(std::string variable) { ProxyName() = std::move(variable); }

void PrintStderr(std::string_view line) {
  // Keeps the order of standard output and standard error on a terminal.
  FlushOutput();
  Write(stderr, absl::StrCat("perceptronctl: ", std::string(line), "\n"));
}

int Outcome::Report() const {
  if (!error.empty()) PrintStderr(error);
  return code;
}

Outcome Failed(std::string_view doing, const absl::Status& status) {
  const std::string reason = ErrorReason(status);
  std::string text = absl::StrCat(
      PrintableInLine(doing), ": ", GaveUp(status), PrintableInLine(std::string(status.message())),
      " (", absl::StatusCodeToString(status.code()), reason.empty() ? "" : ", ", reason, ")");
  for (const auto& [field, description] : FieldViolations(status)) {
    // A single violation is often the message itself.
    if (absl::StrContains(status.message(), description)) continue;
    absl::StrAppend(&text, "\n  ", PrintableInLine(field), ": ", PrintableInLine(description));
  }
  if (const char* hint = Hint(status, reason); hint != nullptr) {
    absl::StrAppend(&text, "\n  hint: ", hint);
  }
  if (reason.empty() && absl::IsUnavailable(status) && !ProxyName().empty()) {
    absl::StrAppend(
        &text, "\n  hint: ", ProxyName(),
        " is set, so the server is called through a proxy, unless no_proxy has its host");
  }
  const bool late = absl::IsDeadlineExceeded(status) || GaveUpAfter(status).has_value();
  return {late ? kExitTimeout : kExitFailed, text};
}

Outcome UsageError(std::string_view message) { return {kExitUsage, std::string(message)}; }

int PrintError(std::string_view doing, const absl::Status& status) {
  return Failed(doing, status).Report();
}

int PrintUsageError(std::string_view message) { return UsageError(message).Report(); }

std::string ToJson(const google::protobuf::Message& message, bool pretty) {
  // Never freed: one for each line of output would be slow.
  static auto* const types = google::protobuf::util::NewTypeResolverForDescriptorPool(
      "type.googleapis.com", google::protobuf::DescriptorPool::generated_pool());
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = pretty;
  options.always_print_primitive_fields = true;
  std::string json;
  const auto status = google::protobuf::util::BinaryToJsonString(
      types, "type.googleapis.com/" + message.GetDescriptor()->full_name(), Serialize(message),
      &json, options);
  if (!status.ok()) return "{}";
  while (!json.empty() && json.back() == '\n') json.pop_back();
  return json;
}

std::string Shortest(float value) { return ShortestOf(value); }
std::string Shortest(double value) { return ShortestOf(value); }

namespace {

bool IsPlain(char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

}  // namespace

std::string Printable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, length));
    if (length > 1 && IsControlCharacter(CodePoint(character))) {
      absl::StrAppendFormat(&out, "\\u%04x", CodePoint(character));
    } else if (length > 1 || IsPlain(text.front())) {
      out.append(character);
    } else {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string PrintableInLine(std::string_view text) {
  return absl::StrReplaceAll(Printable(text), {{"\n", "\\n"}, {"\t", "\\t"}});
}

void JsonObject::Key(std::string_view key) {
  if (text_.size() > 1) text_.push_back(',');
  AppendJsonString(key, &text_);
  text_.push_back(':');
}

JsonObject& JsonObject::Text(std::string_view key, std::string_view value) {
  Key(key);
  AppendJsonString(value, &text_);
  return *this;
}

JsonObject& JsonObject::Integer(std::string_view key, int64_t value) {
  return Text(key, std::to_string(value));
}

JsonObject& JsonObject::Number(std::string_view key, double value) {
  return std::isfinite(value) ? Raw(key, Shortest(value)) : *this;
}

JsonObject& JsonObject::Number(std::string_view key, float value) {
  return std::isfinite(value) ? Raw(key, Shortest(value)) : *this;
}

JsonObject& JsonObject::Bool(std::string_view key, bool value) {
  return Raw(key, value ? "true" : "false");
}

JsonObject& JsonObject::Raw(std::string_view key, std::string_view json) {
  Key(key);
  text_.append(json);
  return *this;
}

std::string JsonArray(const std::vector<std::string>& values) {
  std::string text = "[";
  for (const std::string& value : values) {
    if (text.size() > 1) text.push_back(',');
    text.append(value);
  }
  return text + "]";
}

}  // namespace perceptrond::client
