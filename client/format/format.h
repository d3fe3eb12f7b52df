// Formats of example files: each parses one line into one example. One file per format.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/format/labels.h"
#include "client/row.h"

namespace perceptrond::client {

enum class FormatKind { kSvmlight, kVw, kCsv, kJsonl, kText };

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
  // CSV: the first line names the columns. Default true.
  bool header = true;
  // CSV: column of the label, by its name in the header or its number from 1. Empty: no label.
  std::string label_column;
  // CSV: columns are the dimensions of dense rows, not named features. Default false.
  bool dense = false;
};

// The content of a line.
enum class LineKind { kExample, kNothing };

// A format may store the header of a file. Threads: one at a time.
class Format {
 public:
  virtual ~Format() = default;

  // Parses one line, without its end, into *row, which is cleared first. The line may contain any
  // bytes. kNothing: an empty line, a comment or a header. INVALID_ARGUMENT: the line is malformed;
  // *row is then unspecified.
  virtual absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) = 0;

  // Call before the first line of each file.
  virtual void StartFile() {}
};

// Returns the format options.kind. INVALID_ARGUMENT: options that the format does not allow, such
// as svmlight without an index base.
absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const FormatOptions& options);

// The format named "svmlight", "vw", "csv", "jsonl" or "text"; absent for other names.
std::optional<FormatKind> FormatByName(std::string_view name);

// The format by extension: .svm and .svmlight, .vw, .csv, .jsonl, .tsv (text); absent for others.
std::optional<FormatKind> FormatByExtension(std::string_view path);

// The formats, each defined in the file of its name. Precondition: options as checked by
// MakeFormat().
std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options);
std::unique_ptr<Format> MakeVw(const FormatOptions& options);
std::unique_ptr<Format> MakeCsv(const FormatOptions& options);
std::unique_ptr<Format> MakeJsonl(const FormatOptions& options);
std::unique_ptr<Format> MakeText(const FormatOptions& options);

}  // namespace perceptrond::client
