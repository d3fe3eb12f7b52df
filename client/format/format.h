// Formats of example files: each parses one line, CSV also several, into one example. One file per format; labels and
// numbers are parsed here for all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/row.h"

namespace perceptrond::client {

// Parses a decimal number ("-1", "+.5", "3e-2") in [p, end). Returns the position after it, or null
// if there is none or it is not a finite float32. Numbers too small for a float are 0.
const char* ParseFloat(const char* p, const char* end, float* value);

// Parses a text that is a number as a whole; false if it is not.
bool ParseWholeFloat(std::string_view text, float* value);

// True if a text is a number as a whole, but larger than this, or than a float holds.
bool IsTooLarge(std::string_view text, double largest = std::numeric_limits<float>::max());

// Says why ParseWholeFloat() refuses a text, to follow its quotation: it "is not a finite number", or is too large.
std::string NumberProblem(std::string_view text);

// What labels an input had so far: 0 means -1 only where -1 does not occur. One thread reads the
// input; any may look.
struct LabelsSeen {
  std::atomic<bool> zero = false;
  std::atomic<bool> negative = false;
  // A line of text whose first field is no label, and so is text.
  std::atomic<bool> none_before_tab = false;
};

// A plain value.
struct LabelRule {
  // The model's label names, that of -1 first, or the names of its classes in order; may be empty.
  std::vector<std::string> names;
  // Most classes of the model; 0: the labels are -1 and +1.
  uint32_t max_classes = 0;
  // The model adds classes by name: any text is a label name.
  bool new_names = false;
  // 0 means -1, whatever else occurs.
  bool zero_is_negative = false;
  // 0 is returned as 0, for a caller that knows only at the end what it meant.
  bool keep_zero = false;
  // Two labels: 0 means -1 in an input without -1; both in one are an error. Null: 0 is an error,
  // because it can also mean "no label". Must outlive the rule.
  LabelsSeen* seen = nullptr;
};

// Reads labels. Equal numbers are one label name (core/vector/number_key.h). If any label name is a number, as with the
// classes 1 and 2, numbers are names only. Else they are -1 and +1 (or 0, see LabelRule), of a
// multiclass model its classes from 0. Threads: one at a time.
class Labels {
 public:
  explicit Labels(LabelRule rule);

  // Sets the row's label, or label_name if classes are added by name. INVALID_ARGUMENT: not a label; the row then has
  // none.
  absl::Status Read(std::string_view text, Row* row);
  // True if the model has a label that is written so.
  bool Has(std::string_view text) const;

 private:
  // The position in rule_.names; absent: none.
  std::optional<size_t> FindName(std::string_view text) const;
  absl::Status ReadNewName(std::string_view text, Row* row);
  absl::StatusOr<int> ReadSign(std::string_view text) const;
  absl::StatusOr<int> ReadClass(std::string_view text) const;

  LabelRule rule_;
  absl::flat_hash_map<std::string, size_t> positions_;
  // The label names that are numbers, by NumberKey().
  absl::flat_hash_map<std::string, std::string> numbers_;
};

enum class FormatKind { kSvmlight, kVw, kCsv, kJsonl, kText, kIds };

// A plain value.
struct FormatOptions {
  FormatKind kind = FormatKind::kSvmlight;
  LabelRule labels;
  // True (default): an example without a label is an error.
  bool require_label = true;

  // svmlight: index of the first feature in the file, 0 or 1. Required for svmlight only.
  std::optional<int> index_base;

  // CSV: separator of the fields, not a quote or line end. Default comma.
  char delimiter = ',';
  // CSV: the first line names the columns. Absent (default): it does, and is an error unless something shows it: a column
  // that is given by its name, or one that the model has a weight for where no field is a number or a date.
  std::optional<bool> header;
  // CSV: whether the model has a weight for one of these columns; absent: this is not known. Null (default): it never is.
  std::function<std::optional<bool>(const std::vector<std::string>& columns)> has_weight_of;
  // CSV: column of the label, by its name in the header or its number from 1. Empty: no label.
  std::string label_column;
  // CSV: column of the text, likewise; rows are then texts, and other columns are not read.
  std::string text_column;
  // CSV: columns that are not read, likewise.
  std::vector<std::string> ignored_columns;
  // CSV: columns are the dimensions of dense rows, not named features, and there is no header. Default false.
  bool dense = false;
};

// The content of a line. kNothing: no example, such as an empty line or a comment. kHeader: a header, which belongs to
// the lines after it.
enum class LineKind { kExample, kNothing, kHeader };

// A format may store the header of a file. Threads: one at a time.
class Format {
 public:
  virtual ~Format() = default;

  // Parses one line, or the lines of a record, without the end into *row, which is cleared first.
  // They may contain any bytes. INVALID_ARGUMENT: the line is malformed;
  // *row is then unspecified. FAILED_PRECONDITION: so is the header, and no other line can be read.
  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row);

  // Why the example that Parse() read last has no label, although it has something in the label's place; OK otherwise.
  // Where a label is required, this is an error of Parse().
  const absl::Status& label_status() const { return label_status_; }

  // CSV, whose fields may contain line breaks within quotes: where in the line the quote is that is open at its
  // end. npos: before the line, as `in_quotes` says. Absent: none is, and the record ends.
  virtual std::optional<size_t> FindOpenQuote(std::string_view /*line*/, bool /*in_quotes*/) const {
    return std::nullopt;
  }

  // Call before the first line of each file.
  virtual void StartFile() {}

 protected:
  explicit Format(const FormatOptions& options)
      : labels_(options.labels), require_label_(options.require_label) {}

  // Parse() for a row that is empty.
  virtual absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) = 0;

  // Reads the text in the label's place. An error only where a label is required.
  absl::Status ReadLabel(std::string_view text, Row* row);
  // The same for something that is no label.
  absl::Status NoLabel(absl::Status why);

  const Labels& labels() const { return labels_; }
  bool require_label() const { return require_label_; }

 private:
  Labels labels_;
  const bool require_label_;
  absl::Status label_status_;
};

// Returns the format options.kind. INVALID_ARGUMENT: options that the format does not allow, such
// as svmlight without an index base.
absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const FormatOptions& options);

// The format named "svmlight", "vw", "csv", "jsonl", "text" or "ids"; absent for other names.
std::optional<FormatKind> FormatByName(std::string_view name);

// The format by extension: .svm and .svmlight, .vw, .csv, .jsonl and .json, .tsv (text); absent for others.
// A .gz or .zst after it is left out.
std::optional<FormatKind> FormatByExtension(std::string_view path);

// The formats, each defined in the file of its name. Precondition: options as checked by
// MakeFormat().
std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options);
std::unique_ptr<Format> MakeVw(const FormatOptions& options);
std::unique_ptr<Format> MakeCsv(const FormatOptions& options);
std::unique_ptr<Format> MakeJsonl(const FormatOptions& options);
std::unique_ptr<Format> MakeText(const FormatOptions& options);
std::unique_ptr<Format> MakeIds(const FormatOptions& options);

}  // namespace perceptrond::client
