#include "server/page/parameters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"

namespace perceptrond {

std::string Parameters::Text(absl::string_view name) {
  known_.emplace(name);
  for (const auto& [key, value] : request_.query) {
    if (key == name) return value;
  }
  return "";
}

bool Parameters::Flag(absl::string_view name) {
  const std::string text = Text(name);
  if (!text.empty() && text != "true" && text != "false") Refuse(name, "is neither true nor false");
  return text == "true";
}

double Parameters::Number(absl::string_view name, double default_value) {
  const std::string text = Text(name);
  if (text.empty()) return default_value;
  double number = 0;
  if (absl::SimpleAtod(text, &number) && std::isfinite(number) && number >= 0) return number;
  Refuse(name, "is not a number of at least 0");
  return default_value;
}

uint64_t Parameters::Integer(absl::string_view name, uint64_t default_value) {
  const std::string text = Text(name);
  if (text.empty()) return default_value;
  absl::string_view digits = text;
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    Refuse(name, "is not an integer");
    return default_value;
  }
  if (negative) return 0;
  uint64_t number;
  return absl::SimpleAtoi(digits, &number) ? number : std::numeric_limits<uint64_t>::max();
}

absl::Status Parameters::Check() const {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : request_.query) {
    if (known_.contains(name)) continue;
    std::vector<std::string> names(known_.begin(), known_.end());
    std::sort(names.begin(), names.end());
    return InvalidField(
        "INVALID_FIELD", absl::CHexEscape(name),
        absl::StrCat("is no parameter here; there are ", absl::StrJoin(names, ", ")));
  }
  return absl::OkStatus();
}

void Parameters::Refuse(absl::string_view name, absl::string_view description) {
  if (status_.ok()) status_ = InvalidField("INVALID_FIELD", name, description);
}

}  // namespace perceptrond
