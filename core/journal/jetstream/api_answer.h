// Reads answers of JetStream's API, which are JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace perceptrond::jetstream {

// The number after `"name":`; absent if there is none.
inline std::optional<uint64_t> NumberIn(absl::string_view answer, absl::string_view name) {
  const std::string key = absl::StrCat("\"", name, "\":");
  const size_t at = answer.find(key);
  if (at == absl::string_view::npos) return std::nullopt;
  answer.remove_prefix(at + key.size());
  const size_t digits = answer.find_first_not_of("0123456789");
  uint64_t number = 0;
  return absl::SimpleAtoi(answer.substr(0, digits), &number) ? std::optional(number) : std::nullopt;
}

// The description of an error.
inline std::string DescriptionIn(absl::string_view answer) {
  constexpr absl::string_view kKey = "\"description\":\"";
  const size_t at = answer.find(kKey);
  if (at == absl::string_view::npos) return std::string(answer);
  answer.remove_prefix(at + kKey.size());
  return std::string(answer.substr(0, answer.find('"')));
}

}  // namespace perceptrond::jetstream
