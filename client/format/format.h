// A format of example files: turns one line into one example. One file a format; MakeFormat() is
// their catalogue.
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

struct FormatOptions {
  FormatKind kind = FormatKind::kSvmlight;
  LabelRule labels;
  // True: an example without a label is an error.
  bool require_label = true;

  // svmlight: what the file calls the first feature, 0 or 1. Required there, ignored elsewhere.
  std::optional<int> index_base;

  // CSV: one character, not a quote. Default comma.
  char delimiter = ',';
  // CSV: the first line names the columns. Default true.
  bool header = true;
  // CSV: the label's column, by its name in the header or its number from 1. Empty: there is none.
  std::string label_column;
  // CSV: columns are the positions of dense rows, not named features. Default false.
  bool dense = false;
};

// What a line turned out to be.
enum class LineKind { kExample, kNothing };

// Threads: one at a time; a format may remember a header.
class Format {
 public:
  virtual ~Format() = default;

  // Parses one line, without its end, into *row, which is cleared first. kNothing: an empty line, a
  // comment or a header. INVALID_ARGUMENT: what is wrong with the line; *row then holds anything.
  // Any bytes may be given.
  virtual absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) = 0;

  // The next line is the first of a file.
  virtual void StartFile() {}
};

// INVALID_ARGUMENT: options that contradict the format, such as svmlight without an index base.
absl::StatusOr<std::unique_ptr<Format>> MakeFormat(const FormatOptions& options);

// "svmlight", "vw", "csv", "jsonl", "text".
std::optional<FormatKind> FormatByName(std::string_view name);

// By extension: .svm and .svmlight, .vw, .csv, .jsonl, .tsv (text). Nothing else is guessed.
std::optional<FormatKind> FormatByExtension(std::string_view path);

std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options);
std::unique_ptr<Format> MakeVw(const FormatOptions& options);
std::unique_ptr<Format> MakeCsv(const FormatOptions& options);
std::unique_ptr<Format> MakeJsonl(const FormatOptions& options);
std::unique_ptr<Format> MakeText(const FormatOptions& options);

}  // namespace perceptrond::client
