#include "core/report/format.h"

#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace perceptrond {
namespace {

namespace pb = ::google::protobuf;
namespace v1 = ::perceptron::v1;
using Type = pb::FieldDescriptor::CppType;

// Above it a count is written as a power of ten.
constexpr double kLargestGrouped = 1e15;

bool IsCount(const pb::FieldDescriptor& field) {
  const Type type = field.cpp_type();
  const bool whole =
      type == pb::FieldDescriptor::CPPTYPE_UINT64 || type == pb::FieldDescriptor::CPPTYPE_INT64 ||
      type == pb::FieldDescriptor::CPPTYPE_UINT32 || type == pb::FieldDescriptor::CPPTYPE_INT32;
  const v1::FigureUnit unit = field.options().GetExtension(v1::figure).unit();
  return unit == v1::FIGURE_UNIT_COUNT || (unit == v1::FIGURE_UNIT_UNSPECIFIED && whole);
}

std::string FormatCount(double value) {
  if (!(value >= 0 && value < kLargestGrouped)) return absl::StrFormat("%.4g", value);
  return Grouped(static_cast<uint64_t>(value));
}

std::string FormatEnum(const pb::FieldDescriptor& field, double number) {
  const pb::EnumValueDescriptor* const value =
      field.enum_type()->FindValueByNumber(static_cast<int>(number));
  if (value == nullptr) return "";
  const v1::ValueText& text = TextOf(*value);
  const std::string name = absl::AsciiStrToUpper(text.name());
  return text.meaning().empty() ? name : absl::StrCat(name, " (", text.meaning(), ")");
}

// Protobuf ends the process at a time that is none, which a damaged message may have.
std::string FormatTime(double seconds) {
  using pb::util::TimeUtil;
  const auto whole = static_cast<int64_t>(
      std::clamp<double>(seconds, TimeUtil::kTimestampMinSeconds, TimeUtil::kTimestampMaxSeconds));
  return TimeUtil::ToString(TimeUtil::SecondsToTimestamp(whole));
}

std::string FormatValue(const pb::FieldDescriptor& field, double value) {
  const v1::Figure& options = field.options().GetExtension(v1::figure);
  if (field.is_map()) return FormatCount(value);
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) return FormatEnum(field, value);
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_BOOL) return value != 0 ? "yes" : "no";
  if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE) return FormatTime(value);
  if (options.unit() == v1::FIGURE_UNIT_RATIO) return Percent(value);
  if (IsCount(field)) return FormatCount(value);
  const int digits = options.digits() == 0 ? 4 : static_cast<int>(options.digits());
  return absl::StrFormat("%.*g", digits, value);
}

// Takes the plural's s, or es, from the first word of `text`, or from a second one that ends it: "1
// examples" and "1 row errors" are none.
void MakeSingular(absl::string_view& text, std::string& out) {
  size_t end = 0;
  for (int word = 0; word < 2; ++word) {
    const size_t begin = end < text.size() && text[end] == ' ' ? end + 1 : end;
    end = begin;
    while (end < text.size() && absl::ascii_isalpha(text[end])) ++end;
    const bool may_be_plural = word == 0 || end == text.size();
    if (!may_be_plural || end < begin + 2 || text[end - 1] != 's') continue;
    const size_t ending = absl::EndsWith(text.substr(0, end), "sses") ? 2 : 1;
    absl::StrAppend(&out, text.substr(0, end - ending));
    text.remove_prefix(end);
    return;
  }
}

const pb::FieldDescriptor* FindField(const pb::Message& holder, absl::string_view name) {
  return holder.GetDescriptor()->FindFieldByName(std::string(name));
}

// A field of the message itself, as a figure without a definition of its own.
Figure FieldAlone(const pb::FieldDescriptor& field) {
  Figure figure;
  figure.path = {&field};
  return figure;
}

// Absent if one of the fields is absent, or `below` is 0.
std::optional<double> Quotient(const pb::Message& holder, absl::string_view above,
                               absl::string_view below) {
  const pb::FieldDescriptor* const dividend = FindField(holder, above);
  const pb::FieldDescriptor* const divisor = FindField(holder, below);
  if (dividend == nullptr || divisor == nullptr) return std::nullopt;
  const std::optional<double> a = ValueOf(holder, FieldAlone(*dividend));
  const std::optional<double> b = ValueOf(holder, FieldAlone(*divisor));
  if (!a.has_value() || !b.has_value() || *b == 0) return std::nullopt;
  return *a / *b;
}

// Fills in a text's placeholders. `own` is for "{}", `key` for "{key}"; other names are looked up
// in `holder`. Absent if a field that the text needs is absent.
std::optional<std::string> FillIn(absl::string_view text, const pb::Message& holder,
                                  const pb::FieldDescriptor& field, double own,
                                  absl::string_view key) {
  std::string out;
  while (true) {
    const size_t open = text.find('{');
    const size_t close = text.find('}', open);
    if (close == absl::string_view::npos) break;
    absl::StrAppend(&out, text.substr(0, open));
    const absl::string_view name = text.substr(open + 1, close - open - 1);
    text.remove_prefix(close + 1);
    if (name == "key") {
      absl::StrAppend(&out, key);
      continue;
    }
    if (const size_t slash = name.find('/'); slash != absl::string_view::npos) {
      const std::optional<double> quotient =
          Quotient(holder, name.substr(0, slash), name.substr(slash + 1));
      if (!quotient.has_value()) return std::nullopt;
      absl::StrAppendFormat(&out, "%.4g", *quotient);
      continue;
    }
    const pb::FieldDescriptor* const named = name.empty() ? &field : FindField(holder, name);
    if (named == nullptr) return std::nullopt;
    const std::optional<double> value = name.empty() ? own : ValueOf(holder, FieldAlone(*named));
    if (!value.has_value()) return std::nullopt;
    absl::StrAppend(&out, FormatValue(*named, *value));
    if (IsCount(*named) && *value == 1) MakeSingular(text, out);
  }
  return absl::StrCat(out, text);
}

// What a figure adds to its line: nothing, one item, or of a map one for each entry.
std::vector<std::string> Items(const pb::Message& report, const Figure& figure) {
  const pb::Message* const holder = FindHolder(report, figure);
  std::vector<std::string> items;
  if (holder == nullptr) return items;
  const auto add = [&](const std::string& text, double value, absl::string_view key) {
    if (text.empty()) return;
    if (auto item = FillIn(text, *holder, figure.field(), value, key))
      items.push_back(*std::move(item));
  };
  const std::string& text = figure.options->text();
  for (const auto& [key, value] : EntriesOf(report, figure)) add(text, value, key);
  if (const std::optional<double> value = ValueOf(report, figure)) {
    const bool zero = *value == 0 && figure.options->has_zero_text();
    add(zero ? figure.options->zero_text() : text, *value, "");
  }
  return items;
}

// "pass 2: 150 examples, 3 mistakes": a comma after each item that does not end with a colon.
std::string Join(const std::vector<std::string>& items) {
  std::string line;
  for (const std::string& item : items) {
    if (!line.empty()) absl::StrAppend(&line, absl::EndsWith(line, ":") ? " " : ", ");
    absl::StrAppend(&line, item);
  }
  return line;
}

struct Line {
  std::string key;
  std::vector<std::string> items;
};

}  // namespace

std::string Percent(double ratio) {
  const double percent = 100 * ratio;
  if (percent > 0 && percent < 0.005) return absl::StrFormat("%.2g %%", percent);
  return absl::StrFormat("%.2f %%", percent);
}

std::string Grouped(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, 1, ',');
  return text;
}

std::string Counted(uint64_t count, absl::string_view things) {
  std::string text = absl::StrCat(Grouped(count), " ");
  if (count == 1) MakeSingular(things, text);
  return absl::StrCat(text, things);
}

std::string StateName(v1::ConvergenceState state) {
  const pb::EnumValueDescriptor* const value =
      v1::ConvergenceState_descriptor()->FindValueByNumber(state);
  return value == nullptr ? "" : TextOf(*value).name();
}

std::vector<std::string> FormatReport(const pb::Message& report) {
  std::vector<Line> lines;
  for (const Figure& figure : ListFigures(*report.GetDescriptor())) {
    std::vector<std::string> items = Items(report, figure);
    if (items.empty()) continue;
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const Line& other) { return other.key == figure.line_key; });
    if (line == lines.end()) {
      line = lines.insert(lines.end(), {figure.line_key, {}});
      if (!figure.line.empty()) line->items.push_back(absl::StrCat(figure.line, ":"));
    }
    line->items.insert(line->items.end(), items.begin(), items.end());
  }
  std::vector<std::string> text;
  for (const Line& line : lines) text.push_back(Join(line.items));
  return text;
}

std::string FormatFigures(const pb::Message& message) {
  std::vector<std::string> all;
  for (const Figure& figure : ListFigures(*message.GetDescriptor())) {
    const std::vector<std::string> items = Items(message, figure);
    all.insert(all.end(), items.begin(), items.end());
  }
  return Join(all);
}

std::string DescribeUpdates(uint64_t updates, uint64_t mistakes) {
  std::string text = Counted(updates, "updates");
  if (updates > mistakes)
    absl::StrAppend(&text, " (", Grouped(updates - mistakes), " of them without a mistake)");
  return text;
}

std::vector<FigureView> ViewFigures(const pb::Message& report) {
  std::vector<FigureView> views;
  for (const Figure& figure : ListFigures(*report.GetDescriptor())) {
    FigureView view;
    const std::optional<double> value = ValueOf(report, figure);
    if (value.has_value()) view.value = FormatValue(figure.field(), *value);
    for (const auto& [key, count] : EntriesOf(report, figure))
      absl::StrAppend(&view.value, view.value.empty() ? "" : ", ", FormatCount(count), " ", key);
    if (view.value.empty()) continue;
    view.name =
        absl::StrJoin(figure.path, ".", [](std::string* out, const pb::FieldDescriptor* field) {
          absl::StrAppend(out, field->name());
        });
    view.title = figure.title;
    view.help = figure.options->help();
    view.headline = figure.options->headline();
    views.push_back(std::move(view));
  }
  return views;
}

}  // namespace perceptrond
