#include "client/format/labels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/format/number.h"

namespace perceptrond::client {

absl::StatusOr<int> ParseLabel(const LabelRule& rule, std::string_view text) {
  for (size_t i = 0; i < rule.names.size(); ++i) {
    if (text == rule.names[i]) return i == 0 ? -1 : 1;
  }
  float number = 0;
  const bool named = std::any_of(rule.names.begin(), rule.names.end(),
                                 [&](const auto& name) { return ParseWholeFloat(name, &number); });
  if (!named && ParseWholeFloat(text, &number)) {
    if (number == 1) return 1;
    if (number == -1) return -1;
    if (number == 0) {
      if (rule.zero_is_negative) return -1;
      return absl::InvalidArgumentError(
          "label 0 is neither -1 nor +1; if 0 means -1 in this file, say --zero-is-negative");
    }
  }
  const std::string shown(text.substr(0, 40));
  if (rule.names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("label \"", shown, "\" is neither -1 nor +1"));
  }
  std::string names;
  for (const std::string& name : rule.names) absl::StrAppend(&names, "\"", name, "\", ");
  return absl::InvalidArgumentError(
      absl::StrCat("label \"", shown, "\" is none of the model's: ",
                   named ? names.substr(0, names.size() - 2) : names + "-1 or +1"));
}

}  // namespace perceptrond::client
