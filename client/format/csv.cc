// CSV by RFC 4180, one record per line: fields may be quoted, with quotes inside doubled; line
// breaks in fields are not supported. All columns but the label's are features: named by the header
// (without one by their number from 1), or for dense rows the dimensions in order. An empty field
// is an absent feature; in dense rows it is an error.
#include <algorithm>
#include <vector>

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

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    if (line.empty()) return LineKind::kNothing;
    if (!columns_.empty() && ParsePlain(line, row)) return LineKind::kExample;
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
    row->kind = options_.dense ? RowKind::kDense : RowKind::kNamed;
    for (size_t i = 0; i < fields_.size(); ++i) {
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

  absl::Status Split(std::string_view line) {
    fields_.clear();
    unquoted_.clear();
    // Reserved, so that views into unquoted_ stay valid.
    unquoted_.reserve(line.size());
    size_t i = 0;
    while (true) {
      if (i < line.size() && line[i] == '"') {
        const size_t begin = unquoted_.size();
        for (++i;; ++i) {
          if (i >= line.size()) {
            return absl::InvalidArgumentError(
                "a quoted field does not end on its line; fields cannot contain line breaks");
          }
          if (line[i] == '"') {
            if (i + 1 >= line.size() || line[i + 1] != '"') break;
            ++i;
          }
          unquoted_.push_back(line[i]);
        }
        ++i;
        if (i < line.size() && line[i] != options_.delimiter) {
          return absl::InvalidArgumentError("text follows a closing quote");
        }
        fields_.push_back(std::string_view(unquoted_).substr(begin));
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

  absl::Status NameColumns() {
    label_ = kNoColumn;
    const std::string& wanted = options_.label_column;
    for (size_t i = 0; i < fields_.size(); ++i) {
      columns_.push_back(options_.header ? std::string(Trim(fields_[i])) : absl::StrCat(i + 1));
      if (!wanted.empty() && columns_.back() == wanted) label_ = i;
    }
    size_t number = 0;
    if (!wanted.empty() && label_ == kNoColumn && absl::SimpleAtoi(wanted, &number) &&
        number >= 1 && number <= columns_.size()) {
      label_ = number - 1;
    }
    if (!wanted.empty() && label_ == kNoColumn) {
      const std::string first = absl::StrJoin(
          columns_.begin(), columns_.begin() + std::min<size_t>(columns_.size(), 10), ", ");
      const size_t count = columns_.size();
      columns_.clear();
      // No other line can be read either.
      return absl::FailedPreconditionError(
          absl::StrCat("there is no column \"", wanted, "\" for the label: the first line has ",
                       first, count > 10 ? absl::StrCat(" and ", count - 10, " more") : "",
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
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

}  // namespace

std::unique_ptr<Format> MakeCsv(const FormatOptions& options) {
  return std::make_unique<Csv>(options);
}

}  // namespace perceptrond::client
