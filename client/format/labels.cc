#include "client/format/labels.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/format/number.h"

namespace perceptrond::client {
namespace {

// Whether any name is a number; numbers are then names only.
bool NamesAreNumbers(const LabelRule& rule) {
  float number = 0;
  return std::any_of(rule.names.begin(), rule.names.end(),
                     [&](const auto& name) { return ParseWholeFloat(name, &number); });
}

}  // namespace

absl::StatusOr<int> ParseLabel(const LabelRule& rule, std::string_view text) {
  for (size_t i = 0; i < rule.names.size(); ++i) {
    if (text == rule.names[i]) return i == 0 ? -1 : 1;
  }
  float number = 0;
  const bool named = NamesAreNumbers(rule);
  if (!named && ParseWholeFloat(text, &number)) {
    if (number == 1) return 1;
    if (number == -1) return -1;
    if (number == 0) {
      if (rule.zero_is_negative) return -1;
      return absl::InvalidArgumentError(
          "label 0 is neither -1 nor +1; if 0 means -1 in this file, give --zero-is-negative");
    }
  }
  const std::string shown(text.substr(0, 40));
  if (rule.names.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("label \"", shown, "\" is neither -1 nor +1"));
  }
  std::string names;
  for (const std::string& name : rule.names) absl::StrAppend(&names, "\"", name, "\", ");
  return absl::InvalidArgumentError(
      absl::StrCat("label \"", shown, "\" is not a label of the model: ",
                   named ? names.substr(0, names.size() - 2) : names + "-1 or +1"));
}

namespace {

// The number of the class; names take precedence over numbers.
absl::StatusOr<int> ParseClass(const LabelRule& rule, std::string_view text) {
  for (size_t i = 0; i < rule.names.size(); ++i) {
    if (text == rule.names[i]) return static_cast<int>(i);
  }
  float number = 0;
  const bool named = NamesAreNumbers(rule);
  if (!named && ParseWholeFloat(text, &number) && number >= 0 && number < rule.max_classes &&
      number == static_cast<float>(static_cast<uint32_t>(number)))
    return static_cast<int>(number);
  const std::string numbers = absl::StrCat("0 to ", rule.max_classes - 1);
  return absl::InvalidArgumentError(
      absl::StrCat("label \"", std::string(text.substr(0, 40)),
                   "\" is not a class of the model: ", rule.names.empty() ? "" : "its label names",
                   named                ? ", which are numbers themselves"
                   : rule.names.empty() ? numbers
                                        : ", or " + numbers));
}

}  // namespace

absl::Status ReadLabel(const LabelRule& rule, std::string_view text, Row* row) {
  if (rule.new_names) {
    if (text.empty()) return absl::InvalidArgumentError("the label is empty");
    row->label_name = text;
    return absl::OkStatus();
  }
  absl::StatusOr<int> label =
      rule.max_classes > 0 ? ParseClass(rule, text) : ParseLabel(rule, text);
  if (label.ok()) row->label = *label;
  return label.status();
}

}  // namespace perceptrond::client
