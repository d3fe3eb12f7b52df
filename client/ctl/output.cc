#include "client/ctl/output.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver_util.h>
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/command.h"
#include "client/ctl/terminal.h"
#include "client/error.h"
#include "client/utf8.h"

namespace perceptrond::client {
namespace {

// gRPC has no code and no detail for what goes wrong below it, only words.
const char* TransportAdvice(absl::string_view message) {
  const auto says = [message](const char* words) { return absl::StrContains(message, words); };
  if (says("wrong version number"))
    return "that server does not seem to serve TLS: leave out --tls";
  if (says("certificate verify failed")) {
    return "the server's certificate is of no authority that is trusted: see --tls-ca";
  }
  if (says("is not in peer certificate")) {
    return "the server's certificate bears another name: see --tls-server-name";
  }
  // What gRPC makes of credentials it cannot use.
  if (says("empty address list")) {
    return "do --tls-cert, --tls-key and --tls-ca hold what they should, and belong together?";
  }
  if (says("Socket closed") || says("Connection reset")) {
    return "is perceptrond there, and does it serve TLS? --tls and --tls-ca then; or a certificate "
           "of yours, --tls-cert and --tls-key, if it asks for one";
  }
  return nullptr;
}

// What a person can do about it; null where the message says it all.
const char* Advice(const absl::Status& status, const std::string& reason) {
  if (reason == "MODEL_NOT_FOUND") return "'perceptronctl list' shows the models there are";
  if (reason == "MODEL_EXISTS") return "choose another name, or delete that model first";
  if (reason == "MODEL_FROZEN") return "'perceptronctl unfreeze' lets it learn again";
  if (reason == "ETAG_MISMATCH") return "somebody changed it since: get it again and look";
  if (reason == "PRODUCER_SUPERSEDED") return "another stream uses the same --producer";
  if (reason == "OFFSET_GAP") return "check --start-offset against what the server has";
  if (reason == "PRODUCER_LIMIT") {
    return "give --producer a name that the model knows, or learn with --unnumbered";
  }
  if (reason == "NOT_LINEAR") return "'predict' gives its scores, which is all there is to say";
  if (reason == "DRAINING") return "the server is stopping: try again when it is back";
  if (reason.empty() && absl::IsUnavailable(status)) {
    if (const char* advice = TransportAdvice(status.message())) return advice;
  }
  if (GaveUpAfter(status).has_value()) {
    return "is perceptrond running there? --server says where to look, --timeout for how long";
  }
  if (reason.empty() && absl::IsUnavailable(status)) {
    return "is perceptrond running there? --server or PERCEPTROND_SERVER says where to look";
  }
  if (absl::IsDeadlineExceeded(status)) return "--timeout allows it more time";
  if (absl::IsUnimplemented(status)) return "is that a perceptrond server?";
  return nullptr;
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

// MessageToJsonString() lists maps as they happen to lie in memory.
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

void Complain(std::string_view line) {
  // In the order in which they were said.
  std::fflush(stdout);
  Write(stderr, absl::StrCat("perceptronctl: ", std::string(line), "\n"));
}

int Outcome::Report() const {
  if (!error.empty()) Complain(error);
  return code;
}

Outcome Failed(std::string_view doing, const absl::Status& status) {
  const std::string reason = ErrorReason(status);
  std::string text = absl::StrCat(
      PrintableInLine(doing), ": ", GaveUp(status), PrintableInLine(std::string(status.message())),
      " (", absl::StatusCodeToString(status.code()), reason.empty() ? "" : ", ", reason, ")");
  for (const auto& [field, description] : FieldViolations(status)) {
    // Where there is but one, the message often is that already.
    if (absl::StrContains(status.message(), description)) continue;
    absl::StrAppend(&text, "\n  ", PrintableInLine(field), ": ", PrintableInLine(description));
  }
  if (const char* advice = Advice(status, reason); advice != nullptr) {
    absl::StrAppend(&text, "\n  hint: ", advice);
  }
  const bool late = absl::IsDeadlineExceeded(status) || GaveUpAfter(status).has_value();
  return {late ? kExitTimeout : kExitFailed, text};
}

Outcome WrongUsage(std::string_view message) { return {kExitUsage, std::string(message)}; }

int PrintError(std::string_view doing, const absl::Status& status) {
  return Failed(doing, status).Report();
}

int PrintUsageError(std::string_view message) { return WrongUsage(message).Report(); }

std::string ToJson(const google::protobuf::Message& message, bool pretty) {
  // For good: a line of output each would be slow to make one.
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

// The length of the character that `text` begins with; 0: that is no UTF-8.
size_t CharacterLength(std::string_view text) {
  for (size_t length = 1; length <= std::min<size_t>(4, text.size()); ++length) {
    if (IsValidUtf8(text.substr(0, length))) return length;
  }
  return 0;
}

// C1 is U+0080 to U+009F: in UTF-8 a C2 before the byte itself.
bool IsC1(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' &&
         static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string Printable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = CharacterLength(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, length));
    if (IsC1(character)) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(character[1]));
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

}  // namespace perceptrond::client
