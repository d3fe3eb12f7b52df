// CSV by RFC 4180: fields may be quoted, with line breaks inside and quotes doubled. All columns but
// the label's and the ignored ones are features: named by the header (without one by their number from 1), or for dense
// rows, which have no header, the dimensions in their order; or one is the text, and the others are not read. An empty
// field is an absent feature; in dense rows it is an error. Features with names may be words: "red" in the column colour
// is the feature "colour=red". A column has numbers or words, as the file's first example that has a value there; until
// then, and among numbers, a marker of a missing value such as NA is an error.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "client/format/format.h"

namespace perceptrond::client {
namespace {

std::string_view Trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Returns whether a field is a category: it is not meant as a number, as "1e999", "0,5", "$5" and "12%" are, and is no text.
bool IsWord(std::string_view field) {
  double value = 0;
  absl::string_view number(field.data(), field.size());
  absl::ConsumePrefix(&number, "$");
  absl::ConsumeSuffix(&number, "%");
  const size_t begin = field.find_first_not_of("+-");
  return !absl::SimpleAtod(number, &value) &&
         field.find_first_not_of("0123456789.,", begin) != std::string_view::npos &&
         std::none_of(field.begin(), field.end(),
                      [](unsigned char c) { return absl::ascii_isspace(c); });
}

// Returns whether a field consists of what numbers and dates are written with, as 2024-01-31 12:00.
bool IsNumberOrDate(std::string_view field) {
  const size_t digit = field.find_first_not_of("+-.,$");
  return digit != std::string_view::npos && absl::ascii_isdigit(field[digit]) &&
         field.find_first_not_of("0123456789+-.,:/$% eETZ") == std::string_view::npos;
}

// Returns whether other programs write this for a value that is missing.
bool IsMissing(std::string_view field) {
  for (const char* const marker : {"na", "n/a", "nan", "null", "none", "?"}) {
    if (absl::EqualsIgnoreCase({field.data(), field.size()}, marker)) return true;
  }
  return false;
}

class Csv final : public Format {
 public:
  explicit Csv(const FormatOptions& options) : Format(options), options_(options) {}

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

 private:
  // A column is the feature of this number, or plays one of these parts.
  enum Role : int { kLabel = -1, kText = -2, kIgnored = -3 };
  // The values of a column are of one of these kinds.
  enum class Values : uint8_t { kUnknown, kNumbers, kWords };

  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    if (line.empty()) return LineKind::kNothing;
    decided_.clear();
    if (!columns_.empty() && !has_text() && ParsePlain(line, row)) return Decide();
    row->Clear();
    decided_.clear();
    if (absl::Status status = Split(line); !status.ok()) {
      // Without the columns' names no other line can be read either.
      if (columns_.empty() && has_header())
        return absl::FailedPreconditionError(std::string(status.message()));
      return status;
    }
    if (columns_.empty()) {
      if (absl::Status status = NameColumns(); !status.ok()) {
        columns_.clear();
        return status;
      }
      if (has_header()) return LineKind::kHeader;
    }
    if (fields_.size() != columns_.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(fields_.size(), " fields, but the first line has ", columns_.size()));
    }
    StartRow(row);
    for (size_t i = 0; i < fields_.size(); ++i) {
      absl::Status status;
      if (roles_[i] == kLabel) {
        status = ReadLabel(Trim(fields_[i]), row);
      } else if (roles_[i] == kText) {
        row->text = fields_[i];
      } else if (roles_[i] != kIgnored) {
        status = ReadFeature(i, Trim(fields_[i]), row);
      }
      if (!status.ok()) return status;
    }
    return Decide();
  }

  // The row is an example: what it has in columns that had no value yet, they have.
  LineKind Decide() {
    for (const auto& [column, values] : decided_) values_[column] = values;
    return LineKind::kExample;
  }

  bool has_text() const { return !options_.text_column.empty(); }
  bool has_header() const { return options_.header.value_or(true); }

  void StartRow(Row* row) const {
    row->kind = has_text() ? RowKind::kText : options_.dense ? RowKind::kDense : RowKind::kNamed;
    if (options_.dense) row->values.resize(features_);
  }

  void AddNumber(size_t column, float value, Row* row) {
    if (options_.dense) {
      row->values[static_cast<size_t>(roles_[column])] = value;
    } else {
      if (values_[column] == Values::kUnknown) decided_.emplace_back(column, Values::kNumbers);
      row->AddName(columns_[column]);
      row->values.push_back(value);
    }
  }

  // Parses a line of plain numbers and a label. False: it has something else, or an error.
  bool ParsePlain(std::string_view line, Row* row) {
    StartRow(row);
    const char* p = line.data();
    const char* const end = p + line.size();
    for (size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0 && (p == end || *p++ != options_.delimiter)) return false;
      if (roles_[column] < 0) {
        const char* const begin = p;
        p = std::find(p, end, options_.delimiter);
        const std::string_view field(begin, static_cast<size_t>(p - begin));
        if (field.find('"') != std::string_view::npos) return false;
        if (roles_[column] == kLabel && !ReadLabel(Trim(field), row).ok()) return false;
      } else if (p != end && *p == options_.delimiter) {
        // An absent feature, of which dense rows have none.
        if (options_.dense) return false;
      } else {
        float value = 0;
        p = ParseFloat(p, end, &value);
        if (p == nullptr || values_[column] == Values::kWords) return false;
        AddNumber(column, value, row);
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

  // Names the columns by the first line, or by their numbers, and says what each is. An error: no other line can be
  // read either.
  absl::Status NameColumns() {
    for (size_t i = 0; i < fields_.size(); ++i)
      columns_.push_back(has_header() ? std::string(Trim(fields_[i])) : absl::StrCat(i + 1));
    roles_.assign(columns_.size(), has_text() ? static_cast<int>(kIgnored) : 0);
    values_.assign(columns_.size(), Values::kUnknown);
    names_a_column_ = false;
    for (const std::string& ignored : options_.ignored_columns) {
      if (absl::Status status = SetRole(ignored, "--ignore-column", kIgnored); !status.ok())
        return status;
    }
    if (absl::Status status = SetRole(options_.text_column, "--text-column", kText); !status.ok())
      return status;
    if (absl::Status status = SetRole(options_.label_column, "--label-column", kLabel);
        !status.ok())
      return status;
    features_ = 0;
    for (int& role : roles_) {
      if (role >= 0) role = static_cast<int>(features_++);
    }
    if (options_.dense) return absl::OkStatus();
    std::vector<std::string> names;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (roles_[i] >= 0) names.push_back(columns_[i]);
    }
    const bool can_ask = !names.empty() && options_.has_weight_of != nullptr;
    has_weight_ = can_ask ? options_.has_weight_of(names) : std::nullopt;
    if (features_of_first_.empty()) features_of_first_.insert(names.begin(), names.end());
    if (absl::Status status = CheckHeader(); !status.ok()) return status;
    if (absl::Status status = CheckFeatureNames(); !status.ok()) return status;
    return CheckFeatures(names);
  }

  // Sets the role of the column `wanted`, by its name or else its number from 1, unless it is empty.
  absl::Status SetRole(const std::string& wanted, absl::string_view flag, Role role) {
    if (wanted.empty()) return absl::OkStatus();
    const size_t count = columns_.size();
    // Of equal names the last.
    const auto named = std::find(columns_.rbegin(), columns_.rend(), wanted);
    size_t number = 0;
    const bool is_number = absl::SimpleAtoi(wanted, &number);
    if (named != columns_.rend()) {
      number = static_cast<size_t>(columns_.rend() - named);
      names_a_column_ = names_a_column_ || !is_number;
    } else if (!is_number || number < 1 || number > count) {
      const std::string first =
          absl::StrJoin(columns_.begin(), columns_.begin() + std::min<size_t>(count, 10), ", ");
      return absl::FailedPreconditionError(
          absl::StrCat("there is no column \"", wanted, "\" for ", flag, ": the first line has ",
                       first, count > 10 ? absl::StrCat(" and ", count - 10, " more") : "",
                       count == 1 ? "; --delimiter sets the separator" : ""));
    }
    int& was = roles_[number - 1];
    if (was == kText || (was == kIgnored && !has_text())) {
      return absl::FailedPreconditionError(
          absl::StrCat(flag, ": the column \"", wanted, "\" is that of another flag too"));
    }
    was = role;
    return absl::OkStatus();
  }

  // A first line of data would be lost, and its values be taken for names, unless something shows that there are names.
  absl::Status CheckHeader() const {
    if (!has_header() || options_.header.has_value() || names_a_column_) return absl::OkStatus();
    for (size_t i = 0; i < columns_.size(); ++i) {
      const bool is_label = roles_[i] == kLabel && labels().Has(columns_[i]);
      if (!is_label && !IsNumberOrDate(columns_[i])) continue;
      return absl::FailedPreconditionError(absl::StrCat(
          "the first line has \"", columns_[i].substr(0, 40),
          is_label ? "\", a label of the model," : "\"",
          " where the name of a column is expected: give --no-header if it is data, --header if "
          "it names the columns"));
    }
    if (has_weight_.has_value()) return absl::OkStatus();
    return absl::FailedPreconditionError(
        "nothing shows whether the first line is data or names the columns: give --no-header if "
        "it is data, --header if it names them");
  }

  // Features that nobody has learned, such as those of another file, would have no weight.
  absl::Status CheckFeatures(const std::vector<std::string>& names) const {
    const auto refuse = [&](absl::string_view whose) {
      const size_t shown = std::min<size_t>(names.size(), 10);
      return absl::FailedPreconditionError(absl::StrCat(
          whose, ": ", absl::StrJoin(names.begin(), names.begin() + shown, ", "),
          names.size() > shown ? absl::StrCat(" and ", names.size() - shown, " more") : "",
          "; columns are matched by name, as it is written",
          options_.header.has_value() || names_a_column_
              ? ""
              : ", and --no-header reads the first line as data"));
    };
    if (has_weight_ == false) return refuse("the model has a weight for none of the columns");
    const bool shares = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return features_of_first_.contains(name);
    });
    if (has_weight_ == true || names.empty() || shares) return absl::OkStatus();
    return refuse("the first file has none of the columns");
  }

  // Without names of their own no example with names is valid. A column without one is often an index.
  absl::Status CheckFeatureNames() const {
    absl::flat_hash_map<absl::string_view, size_t> first;
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (roles_[i] < 0) continue;
      if (columns_[i].empty()) {
        return absl::FailedPreconditionError(
            absl::StrCat("column ", i + 1,
                         " has no name; name it in the first line, or leave it "
                         "out with --ignore-column ",
                         i + 1));
      }
      const auto [known, is_new] = first.emplace(columns_[i], i);
      if (!is_new) {
        return absl::FailedPreconditionError(absl::StrCat("columns ", known->second + 1, " and ",
                                                          i + 1, " are both named \"", columns_[i],
                                                          "\"; give each a name of its own"));
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadFeature(size_t column, std::string_view field, Row* row) {
    if (field.empty() && !options_.dense) return absl::OkStatus();
    const auto refuse = [&](absl::string_view what) {
      return absl::InvalidArgumentError(absl::StrCat(
          "column ", columns_[column], ": \"", std::string(field.substr(0, 40)), "\" ", what));
    };
    float value = 0;
    if (ParseWholeFloat(field, &value)) {
      if (values_[column] == Values::kWords)
        return refuse("is a number, and the column's first value is a word");
      AddNumber(column, value, row);
      return absl::OkStatus();
    }
    if (!options_.dense && values_[column] != Values::kWords && IsMissing(field))
      return refuse("is a missing value; leave a field without a value empty");
    if (!IsWord(field)) {
      return refuse(field.find_first_of(" \t\r\n") == std::string_view::npos
                        ? NumberProblem(field)
                        : "has blanks, and so is neither a number nor a word; --ignore-column "
                          "leaves the column out, and models created with --text take texts");
    }
    if (options_.dense)
      return refuse("is not a number; models created with --named read words as features");
    if (values_[column] == Values::kNumbers)
      return refuse(
          "is a word, and the column's first value is a number; leave a field without a value "
          "empty");
    if (values_[column] == Values::kUnknown) decided_.emplace_back(column, Values::kWords);
    row->AddName(columns_[column], '=', field);
    row->values.push_back(1);
    return absl::OkStatus();
  }

  const FormatOptions options_;
  // Names of all columns; empty before the first line.
  std::vector<std::string> columns_;
  // For each column a Role, or from 0 on the number of the feature; of dense rows its dimension.
  std::vector<int> roles_;
  // Each column has an entry, unless rows are dense.
  std::vector<Values> values_;
  // The line's kinds for columns that are not known yet apply once it is an example.
  std::vector<std::pair<size_t, Values>> decided_;
  // A flag has the name of a column that cannot be a number.
  bool names_a_column_ = false;
  // FormatOptions::has_weight_of of the file's columns.
  std::optional<bool> has_weight_;
  // The feature columns of the first file that has any.
  absl::flat_hash_set<std::string> features_of_first_;
  size_t features_ = 0;
  std::vector<std::string_view> fields_;
  std::string unquoted_;
};

}  // namespace

std::unique_ptr<Format> MakeCsv(const FormatOptions& options) {
  return std::make_unique<Csv>(options);
}

}  // namespace perceptrond::client
