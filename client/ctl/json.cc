#include "client/ctl/json.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "client/ctl/output.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

void Quote(std::string_view text, std::string* out) {
  const bool utf8 = IsValidUtf8(text);
  out->push_back('"');
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const auto byte = static_cast<unsigned char>(c);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    // U+0080 to U+009F are control characters for terminals.
    const bool c1 = utf8 && byte == 0xC2 && next < 0xA0;
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20 || byte == 0x7F || c1 || (!utf8 && byte >= 0x80)) {
      absl::StrAppendFormat(out, "\\u%04x", c1 ? next : byte);
      i += c1 ? 1 : 0;
    } else {
      out->push_back(c);
    }
  }
  out->push_back('"');
}

}  // namespace

void JsonObject::Key(std::string_view key) {
  if (text_.size() > 1) text_.push_back(',');
  Quote(key, &text_);
  text_.push_back(':');
}

JsonObject& JsonObject::Text(std::string_view key, std::string_view value) {
  Key(key);
  Quote(value, &text_);
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
