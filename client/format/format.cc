#include "client/format/format.h"

#include <algorithm>
#include <cmath>
#include <system_error>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "client/format/scan.h"

namespace perceptrond::client {
namespace {

// Powers of ten that a float holds exactly.
constexpr float kPowers[] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f, 1e8f, 1e9f, 1e10f};

// Any number that the fast path leaves. `p` points past the sign.
const char* ParseSlowly(const char* p, const char* end, bool negative, float* value) {
  // No "inf" and no "nan": they are not finite.
  if (p == end || !(IsDigit(*p) || *p == '.')) return nullptr;
  const absl::from_chars_result result = absl::from_chars(p, end, *value);
  if (result.ec == std::errc::result_out_of_range) {
    if (std::fabs(*value) > 1) return nullptr;
    *value = 0;
  } else if (result.ec != std::errc()) {
    return nullptr;
  }
  if (negative) *value = -*value;
  return result.ptr;
}

}  // namespace

const char* ParseFloat(const char* p, const char* end, float* value) {
  bool negative = false;
  if (p != end && (*p == '-' || *p == '+')) negative = *p++ == '-';
  const char* const begin = p;
  uint32_t mantissa = 0;
  while (p != end && IsDigit(*p) && mantissa < 100'000'000) {
    mantissa = 10 * mantissa + static_cast<uint32_t>(*p++ - '0');
  }
  int digits = static_cast<int>(p - begin);
  int fraction = 0;
  if (p != end && *p == '.') {
    const char* const point = ++p;
    while (p != end && IsDigit(*p) && mantissa < 100'000'000) {
      mantissa = 10 * mantissa + static_cast<uint32_t>(*p++ - '0');
    }
    fraction = static_cast<int>(p - point);
    digits += fraction;
  }
  // Both exact in float, so that one division rounds correctly (Clinger 1990).
  const bool exact = digits > 0 && mantissa <= (1u << 24) && fraction <= 10;
  if (!exact || (p != end && (IsDigit(*p) || *p == 'e' || *p == 'E'))) {
    return ParseSlowly(begin, end, negative, value);
  }
  const float magnitude = static_cast<float>(mantissa) / kPowers[fraction];
  *value = negative ? -magnitude : magnitude;
  return p;
}

bool ParseWholeFloat(std::string_view text, float* value) {
  const char* const end = text.data() + text.size();
  return ParseFloat(text.data(), end, value) == end && !text.empty();
}

namespace {

// Whether any name is a number; numbers are then names only.
bool NamesAreNumbers(const LabelRule& rule) {
  float number = 0;
  return std::any_of(rule.names.begin(), rule.names.end(),
                     [&](const auto& name) { return ParseWholeFloat(name, &number); });
}

absl::StatusOr<int> ParseZero(const LabelRule& rule) {
  if (rule.zero_is_negative) return -1;
  if (rule.keep_zero) return 0;
  if (rule.seen == nullptr) {
    return absl::InvalidArgumentError(
        "label 0 is neither -1 nor +1; if 0 means -1 in this file, give --zero-is-negative");
  }
  if (rule.seen->negative) {
    return absl::InvalidArgumentError(
        "label 0 beside the label -1 before; if both mean -1, give --zero-is-negative");
  }
  if (!rule.seen->zero) rule.seen->zero = true;
  return -1;
}

absl::StatusOr<int> ParseNegative(const LabelRule& rule) {
  if (rule.seen == nullptr || rule.zero_is_negative || rule.keep_zero) return -1;
  if (rule.seen->zero) {
    return absl::InvalidArgumentError(
        "label -1 beside the label 0 before, which was read as -1; if both mean -1, give "
        "--zero-is-negative");
  }
  if (!rule.seen->negative) rule.seen->negative = true;
  return -1;
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
    if (number == -1) return ParseNegative(rule);
    if (number == 0) return ParseZero(rule);
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

absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const FormatOptions& options) {
  switch (options.kind) {
    case FormatKind::kSvmlight:
      if (!options.index_base.has_value()) {
        return absl::InvalidArgumentError(
            "svmlight files number features from 0 or from 1: give --index-base 0 or --index-base "
            "1 "
            "(most published files: 1)");
      }
      if (*options.index_base != 0 && *options.index_base != 1) {
        return absl::InvalidArgumentError("--index-base must be 0 or 1");
      }
      return MakeSvmlight(options);
    case FormatKind::kVw:
      return MakeVw(options);
    case FormatKind::kCsv:
      if (options.delimiter == '"' || options.delimiter == '\n' || options.delimiter == '\r') {
        return absl::InvalidArgumentError("--delimiter must not be a quote or a newline");
      }
      return MakeCsv(options);
    case FormatKind::kJsonl:
      return MakeJsonl(options);
    case FormatKind::kText:
      return MakeText(options);
    case FormatKind::kIds:
      return MakeIds(options);
  }
  return absl::InvalidArgumentError("unknown format");
}

std::optional<FormatKind> FormatByName(std::string_view name) {
  if (name == "svmlight") return FormatKind::kSvmlight;
  if (name == "vw") return FormatKind::kVw;
  if (name == "csv") return FormatKind::kCsv;
  if (name == "jsonl") return FormatKind::kJsonl;
  if (name == "text") return FormatKind::kText;
  if (name == "ids") return FormatKind::kIds;
  return std::nullopt;
}

std::optional<FormatKind> FormatByExtension(std::string_view path) {
  for (const std::string_view compressed : {".gz", ".zst"}) {
    if (!path.ends_with(compressed)) continue;
    path.remove_suffix(compressed.size());
    break;
  }
  const size_t dot = path.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  const std::string_view extension = path.substr(dot + 1);
  if (extension == "svm") return FormatKind::kSvmlight;
  if (extension == "tsv") return FormatKind::kText;
  return extension == "text" || extension == "ids" ? std::nullopt : FormatByName(extension);
}

}  // namespace perceptrond::client
