// JSON objects written field by field, in the order given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perceptrond::client {

// Threads: one at a time.
class JsonObject {
 public:
  JsonObject& Text(std::string_view key, std::string_view value);
  // Written as a string, as protobuf writes 64-bit integers: many parsers read numbers as doubles.
  JsonObject& Integer(std::string_view key, int64_t value);
  // Omitted if not finite, which JSON cannot represent.
  JsonObject& Number(std::string_view key, double value);
  JsonObject& Number(std::string_view key, float value);
  JsonObject& Bool(std::string_view key, bool value);
  // `json` is inserted unchanged.
  JsonObject& Raw(std::string_view key, std::string_view json);
  std::string str() const { return text_ + "}"; }

 private:
  void Key(std::string_view key);
  std::string text_ = "{";
};

// The JSON array "[a,b,c]" of JSON values.
std::string JsonArray(const std::vector<std::string>& values);

}  // namespace perceptrond::client
