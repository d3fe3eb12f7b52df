// CSV by RFC 4180: fields may be quoted, with line breaks inside and quotes doubled. All columns but
// the label's are features: named by the header (without one by their number from 1), or for dense
// rows the dimensions in order; or one is the text, and the others are not read. An empty field is an
// absent feature; in dense rows it is an error.
#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/format/format.h"

namespace perceptrond::client {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

class Csv final : public Format {
 public:
  explicit Csv(const FormatOptions& options) : options_(options) {}

  void StartFile() override { columns_.clear(); }

  std::optional<size_t> FindOpenQuote(std::string_view line, bool in_quotes) const override {
    constexpr size_t kBefore = std::string_view::npos;
    // Most lines have none.
    if (line.find('"') == std::string_view::npos)
      return in_quotes ? std::optional(kBefore) : std::nullopt;
    size_t opened = kBefore;
    size_t i = 0;
    while (true) {
      if (!in_quotes && (i >= line.size() || line[i] != '"')) {
        i = line.find(options_.delimiter, i);
        if (i == std::string_view::npos) return std::nullopt;
        ++i;
        continue;
      }
      if (!in_quotes) opened = i++;
      i = EndOfQuotes(line, i);
      if (i == std::string_view::npos) return opened;
      // Text after a closing quote is an error, which ends the record.
      if (i >= line.size() || line[i] != options_.delimiter) return std::nullopt;
      ++i;
      in_quotes = false;
    }
  }

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    if (line.empty()) return LineKind::kNothing;
    const bool has_text = !options_.text_column.empty();
    if (!columns_.empty() && !has_text && ParsePlain(line, row)) return LineKind::kExample;
    row->Clear();
    if (absl::Status status = Split(line); !status.ok()) {
      // Without the columns' names no other line can be read either.
      if (columns_.empty() && options_.header)
        return absl::FailedPreconditionError(std::string(status.message()));
      return status;
    }
    if (columns_.empty()) {
      if (absl::Status status = NameColumns(); !status.ok()) return status;
      if (options_.header) return LineKind::kNothing;
    }
    if (fields_.size() != columns_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields_.size(), " fields, but the first line has ", columns_.size()));
    }
    row->kind = has_text ? RowKind::kText : options_.dense ? RowKind::kDense : RowKind::kNamed;
    if (has_text) row->text = fields_[text_];
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (has_text && i != label_) continue;
      absl::Status status = i == label_ ? ReadLabelField(Trim(fields_[i]), row)
                                        : ReadFeature(i, Trim(fields_[i]), row);
      if (!status.ok()) return status;
    }
    return LineKind::kExample;
  }

 private:
  static constexpr size_t kNoColumn = static_cast<size_t>(-1);

  // Parses a line of plain numbers and a label. False: it has something else, or an error.
  bool ParsePlain(std::string_view line, Row* row) const {
    row->kind = options_.dense ? RowKind::kDense : RowKind::kNamed;
    const char* p = line.data();
    const char* const end = p + line.size();
    for (size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0 && (p == end || *p++ != options_.delimiter)) return false;
      if (column == label_) {
        const char* const begin = p;
        p = std::find(p, end, options_.delimiter);
        const std::string_view field(begin, static_cast<size_t>(p - begin));
        if (field.find('"') != std::string_view::npos || !ReadLabelField(Trim(field), row).ok())
          return false;
      } else if (p != end && *p == options_.delimiter) {
        // An absent feature, of which dense rows have none.
        if (options_.dense) return false;
      } else {
        float value = 0;
        p = ParseFloat(p, end, &value);
        if (p == nullptr) return false;
        if (!options_.dense) row->AddName(columns_[column]);
        row->values.push_back(value);
      }
    }
    return p == end;
  }

  // The position after the quote that closes the quotes that `begin` is within; npos: there is none.
  static size_t EndOfQuotes(std::string_view line, size_t begin) {
    for (size_t i = line.find('"', begin); i != std::string_view::npos; i = line.find('"', i + 2)) {
      if (i + 1 >= line.size() || line[i + 1] != '"') return i + 1;
    }
    return std::string_view::npos;
  }

  absl::Status Split(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    // Reserved, so that views into unquoted_ stay valid.
    unquoted_.reserve(line.size());
    size_t i = 0;
    while (true) {
      if (i < line.size() && line[i] == '"') {
        const size_t begin = i + 1;
        i = EndOfQuotes(line, begin);
        if (i == std::string_view::npos)
          return absl::InvalidArgumentError("a quoted field does not end");
        if (i < line.size() && line[i] != options_.delimiter) {
          return absl::InvalidArgumentError("text follows a closing quote");
        }
        fields_.push_back(Unquote(line.substr(begin, i - 1 - begin)));
      } else {
        const size_t end = std::min(line.find(options_.delimiter, i), line.size());
        fields_.push_back(line.substr(i, end - i));
        // So that the rest of a record with a line break is not read as a record.
        if (!columns_.empty() && fields_.back().find('"') != std::string_view::npos)
          return absl::InvalidArgumentError(
              "a quote is within a field that does not begin with one");
        i = end;
      }
      if (i >= line.size()) return absl::OkStatus();
      ++i;
    }
  }

  // The content of quotes, with one quote for two.
  std::string_view Unquote(std::string_view quoted) {
    if (quoted.find('"') == std::string_view::npos) return quoted;
    const size_t begin = unquoted_.size();
    for (size_t i = 0; i < quoted.size(); ++i) {
      unquoted_.push_back(quoted[i]);
      if (quoted[i] == '"') ++i;
    }
    return std::string_view(unquoted_).substr(begin);
  }

  absl::Status NameColumns() {
    for (size_t i = 0; i < fields_.size(); ++i)
      columns_.push_back(options_.header ? std::string(Trim(fields_[i])) : absl::StrCat(i + 1));
    absl::Status status = FindColumn(options_.label_column, "label", &label_);
    if (status.ok()) status = FindColumn(options_.text_column, "text", &text_);
    if (status.ok() && text_ != kNoColumn && text_ == label_)
      status =
          absl::FailedPreconditionError("--label-column and --text-column name the same column");
    if (status.ok() && options_.header && !options_.dense && text_ == kNoColumn)
      status = CheckFeatureNames();
    // No other line can be read either.
    if (!status.ok()) columns_.clear();
    return status;
  }

  // Without names of their own no example is valid.
  absl::Status CheckFeatureNames() const {
    absl::flat_hash_map<absl::string_view, size_t> first;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (i == label_) continue;
      if (columns_[i].empty())
        return absl::FailedPreconditionError(
            absl::StrCat("column ", i + 1, " has no name; name it in the first line"));
      const auto [known, is_new] = first.emplace(columns_[i], i);
      if (!is_new) {
        return absl::FailedPreconditionError(absl::StrCat("columns ", known->second + 1, " and ",
                                                          i + 1, " are both named \"", columns_[i],
                                                          "\"; give each a name of its own"));
      }
    }
    return absl::OkStatus();
  }

  // Sets the column named `wanted`, by its name or else its number from 1, if it is not empty.
  absl::Status FindColumn(const std::string& wanted, absl::string_view role, size_t* column) const {
    *column = kNoColumn;
    if (wanted.empty()) return absl::OkStatus();
    const size_t count = columns_.size();
    // Of equal names the last.
    const auto named = std::find(columns_.rbegin(), columns_.rend(), wanted);
    size_t number = 0;
    if (named != columns_.rend()) {
      *column = static_cast<size_t>(columns_.rend() - named) - 1;
    } else if (absl::SimpleAtoi(wanted, &number) && number >= 1 && number <= count) {
      *column = number - 1;
    } else {
      const std::string first =
          absl::StrJoin(columns_.begin(), columns_.begin() + std::min<size_t>(count, 10), ", ");
      return absl::FailedPreconditionError(absl::StrCat(
          "there is no column \"", wanted, "\" for the ", role, ": the first line has ", first,
          count > 10 ? absl::StrCat(" and ", count - 10, " more") : "",
          count == 1 ? "; --delimiter sets the separator" : ""));
    }
    return absl::OkStatus();
  }

  absl::Status ReadLabelField(std::string_view field, Row* row) const {
    absl::Status status = ReadLabel(options_.labels, field, row);
    return options_.require_label ? status : absl::OkStatus();
  }

  absl::Status ReadFeature(size_t column, std::string_view field, Row* row) const {
    if (field.empty() && !options_.dense) return absl::OkStatus();
    float value = 0;
    if (!ParseWholeFloat(field, &value)) {
      return absl::InvalidArgumentError(absl::StrCat("column ", columns_[column], ": \"",
                                                     std::string(field.substr(0, 40)),
                                                     "\" is not a finite number"));
    }
    if (!options_.dense) row->AddName(columns_[column]);
    row->values.push_back(value);
    return absl::OkStatus();
  }

  const FormatOptions options_;
  // Names of all columns; empty before the first line.
  std::vector<std::string> columns_;
  size_t label_ = kNoColumn;
  size_t text_ = kNoColumn;
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

}  // namespace

std::unique_ptr<Format> MakeCsv(const FormatOptions& options) {
  return std::make_unique<Csv>(options);
}

}  // namespace perceptrond::client
