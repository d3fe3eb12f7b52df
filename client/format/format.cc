#include "client/format/format.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/charconv.h"
#include "absl/strings/str_cat.h"
#include "client/format/scan.h"
#include "core/vector/number_key.h"

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

bool IsTooLarge(std::string_view text, double largest) {
  if (text.find_first_not_of("+-.0123456789eE") != std::string_view::npos) return false;
  double value = 0;
  const char* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const char* const end = text.data() + text.size();
  // Where a double does not hold the number either, from_chars has set the largest one.
  return absl::from_chars(begin, end, value).ptr == end && std::fabs(value) > largest;
}

std::string NumberProblem(std::string_view text) {
  return IsTooLarge(text) ? "is too large; numbers are from -3.4028235e38 to 3.4028235e38"
                          : "is not a finite number";
}

namespace {

absl::string_view AbslView(std::string_view text) { return {text.data(), text.size()}; }

std::string Quoted(std::string_view text) {
  return absl::StrCat("\"", std::string(text.substr(0, 40)), "\"");
}

absl::StatusOr<int> ReadZero(const LabelRule& rule) {
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

absl::StatusOr<int> ReadNegative(const LabelRule& rule) {
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

Labels::Labels(LabelRule rule) : rule_(std::move(rule)) {
  for (size_t i = 0; i < rule_.names.size(); ++i) {
    positions_.emplace(rule_.names[i], i);
    if (rule_.new_names && IsCode(rule_.names[i])) continue;
    if (std::string key = NumberKey(rule_.names[i]); !key.empty())
      numbers_.emplace(std::move(key), rule_.names[i]);
  }
}

absl::Status Labels::Read(std::string_view text, Row* row) {
  if (rule_.new_names) return ReadNewName(text, row);
  const absl::StatusOr<int> label = rule_.max_classes > 0 ? ReadClass(text) : ReadSign(text);
  if (label.ok()) row->label = *label;
  return label.status();
}

bool Labels::Has(std::string_view text) const {
  if (FindName(text).has_value()) return true;
  if (rule_.new_names) return false;
  // Without a look at what was read so far.
  Labels copy(rule_);
  copy.rule_.keep_zero = true;
  Row row;
  return copy.Read(text, &row).ok();
}

std::optional<size_t> Labels::FindName(std::string_view text) const {
  if (const auto found = positions_.find(AbslView(text)); found != positions_.end())
    return found->second;
  if (numbers_.empty()) return std::nullopt;
  const auto equal = numbers_.find(NumberKey(text));
  if (equal == numbers_.end()) return std::nullopt;
  const auto found = positions_.find(equal->second);
  return found == positions_.end() ? std::nullopt : std::optional(found->second);
}

absl::Status Labels::ReadNewName(std::string_view text, Row* row) {
  if (text.empty()) return absl::InvalidArgumentError("the label is empty");
  row->label_name = text;
  if (positions_.contains(AbslView(text)) || IsCode(text)) return absl::OkStatus();
  std::string key = NumberKey(text);
  if (key.empty()) return absl::OkStatus();
  if (const auto equal = numbers_.find(key); equal != numbers_.end()) {
    row->label_name = equal->second;
  } else if (numbers_.size() < rule_.max_classes) {
    numbers_.emplace(std::move(key), row->label_name);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Labels::ReadSign(std::string_view text) const {
  if (const std::optional<size_t> name = FindName(text)) return *name == 0 ? -1 : 1;
  float number = 0;
  const bool named = !numbers_.empty();
  if (!named && ParseWholeFloat(text, &number)) {
    if (number == 1) return 1;
    if (number == -1) return ReadNegative(rule_);
    if (number == 0) return ReadZero(rule_);
  }
  const std::string label = absl::StrCat("label ", Quoted(text));
  if (rule_.names.empty())
    return absl::InvalidArgumentError(absl::StrCat(
        label, " is neither -1 nor +1; models created with --labels or --classes have others"));
  std::string names;
  for (const std::string& name : rule_.names) absl::StrAppend(&names, "\"", name, "\", ");
  return absl::InvalidArgumentError(
      absl::StrCat(label, " is not a label of the model: ",
                   named ? names.substr(0, names.size() - 2) : names + "-1 or +1"));
}

// The number of the class; names take precedence over numbers.
absl::StatusOr<int> Labels::ReadClass(std::string_view text) const {
  if (const std::optional<size_t> name = FindName(text)) return static_cast<int>(*name);
  float number = 0;
  const bool named = !numbers_.empty();
  if (!named && ParseWholeFloat(text, &number) && number >= 0 && number < rule_.max_classes &&
      number == static_cast<float>(static_cast<uint32_t>(number)))
    return static_cast<int>(number);
  const std::string numbers = absl::StrCat("0 to ", rule_.max_classes - 1);
  return absl::InvalidArgumentError(
      absl::StrCat("label ", Quoted(text),
                   " is not a class of the model: ", rule_.names.empty() ? "" : "its label names",
                   named                 ? ", which are numbers themselves"
                   : rule_.names.empty() ? numbers + "; 'create --labels' gives classes names"
                                         : ", or " + numbers));
}

absl::StatusOr<LineKind> Format::Parse(std::string_view line, Row* row) {
  row->Clear();
  if (!label_status_.ok()) label_status_ = absl::OkStatus();
  return ParseLine(line, row);
}

absl::Status Format::ReadLabel(std::string_view text, Row* row) {
  absl::Status status = labels_.Read(text, row);
  return status.ok() ? status : NoLabel(std::move(status));
}

absl::Status Format::NoLabel(absl::Status why) {
  if (require_label_) return why;
  label_status_ = std::move(why);
  return absl::OkStatus();
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
      if (options.dense && options.header.value_or(true)) {
        return absl::InvalidArgumentError(
            "a dense model keeps no names of columns, so that those of another file could not be "
            "matched with them: a model created with --named matches columns by name; to take them "
            "by position give --no-header, and --skip-lines 1 for a file that has a header");
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
  if (extension == "json") return FormatKind::kJsonl;
  return extension == "text" || extension == "ids" ? std::nullopt : FormatByName(extension);
}

}  // namespace perceptrond::client
