// A JSON object written field by field, in the order given.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perceptrond::client {

class JsonObject {
 public:
  JsonObject& Text(std::string_view key, std::string_view value);
  // As a string: protobuf's JSON form of 64-bit whole numbers, which others could not all read.
  JsonObject& Integer(std::string_view key, int64_t value);
  // Left out if not finite: JSON has no such number.
  JsonObject& Number(std::string_view key, double value);
  JsonObject& Number(std::string_view key, float value);
  JsonObject& Bool(std::string_view key, bool value);
  // `json` is taken as it is.
  JsonObject& Raw(std::string_view key, std::string_view json);
  std::string str() const { return text_ + "}"; }

 private:
  void Key(std::string_view key);
  std::string text_ = "{";
};

// "[a,b,c]" of JSON values.
std::string JsonArray(const std::vector<std::string>& values);

}  // namespace perceptrond::client
