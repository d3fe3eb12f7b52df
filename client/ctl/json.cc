#include "client/ctl/json.h"

#include <cmath>
#include <cstdio>

#include "client/ctl/output.h"
#include "client/utf8.h"

namespace perceptrond::client {
namespace {

void Quote(std::string_view text, std::string* out) {
  const bool utf8 = IsValidUtf8(text);
  out->push_back('"');
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out->push_back('\\');
      out->push_back(c);
    } else if (byte < 0x20 || (!utf8 && byte >= 0x80)) {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\u%04x", byte);
      out->append(escape);
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
  return Raw(key, std::to_string(value));
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
