// Example files of `learn`, `predict` and `explain`: their flags, a reader over all files,
// and the reporting of bad lines and rows.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/ctl/dimension.h"
#include "client/ctl/output.h"
#include "client/format/decompress.h"
#include "client/format/format.h"
#include "client/format/reader.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

struct InputOptions {
  // The subcommand, for error messages.
  std::string command;
  std::vector<std::string> files;
  std::string format;
  int index_base = -1;
  bool zero_is_negative = false;
  std::string label_column;
  std::string text_column;
  std::vector<std::string> ignored_columns;
  // 1: the first line of csv has names, -1: data; 0: names, and an error unless something shows that it has.
  int header = 0;
  std::string delimiter = ",";
  int64_t skip_lines = 0;
  bool skip_bad_lines = false;
  // Label 0 is kept as 0 (LabelRule).
  bool keep_zero_labels = false;
  // A row that does not fit a model's dimension or slots ends the input: what is left of the data without
  // such rows would be a biased part of it.
  bool check_dimension = false;
};

// What is kept of an input that can be read only once.
inline constexpr size_t kMostKeptBytes = size_t{2} << 30;

// Returns the whole content of a file; "-" is standard input. RESOURCE_EXHAUSTED: it has more than `most_bytes`.
// NOT_FOUND and others: it cannot be opened or read, or an interrupt ended it (CANCELLED).
absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t most_bytes = kMostKeptBytes);

void AddInputOptions(CLI::App* command, InputOptions* options);

// Threads: one at a time; Where(), AtTag() and Stop() any.
class Input {
 public:
  // Call Make().
  Input();
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // `reread`: the files will be read more than once, so standard input and pipes are kept in memory.
  // `client`: is asked whether the model has weights for the columns of CSV files, and must outlive the input; null: they
  // may be any.
  // INVALID_ARGUMENT: incomplete options. FAILED_PRECONDITION and others: a file that is compressed
  // with something else than gzip or zstd, or cannot be read.
  static absl::StatusOr<std::unique_ptr<Input>> Make(const InputOptions& options,
                                                     const perceptron::v1::Model& model,
                                                     bool require_label, bool reread,
                                                     const Client* client = nullptr);

  // Has rows fit another model as well, beside the `first` that Make() got. FAILED_PRECONDITION: it has
  // other labels.
  absl::Status AddModel(const perceptron::v1::Model& first, const perceptron::v1::Model& other);

  // Sets a callback that runs before each read that blocks, for example to flush what was read.
  void OnWait(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }

  // Ends a Next() that waits for input, and all later ones.
  void Stop();

  // Reads the next example into *row; false at the end of the last file, after an interrupt or after
  // Stop().
  // INVALID_ARGUMENT: a malformed line, as "file:line: what is wrong"; the next call reads on.
  // Other errors: a file cannot be read, or is of another kind than the model.
  absl::StatusOr<bool> Next(Row* row);

  // Fraction of the input read so far, 0 to 1 by bytes; absent if its size is unknown.
  std::optional<double> fraction() const;

  // True if a file has this format.
  bool Has(FormatKind kind) const { return formats_.contains(kind); }
  // These describe the line that Next() read last, as Format::label_status() and Reader::lines_without_example() do.
  const absl::Status& label_status() const { return format()->label_status(); }
  uint64_t lines_without_example() const { return reader_->lines_without_example(); }
  // -1: not given.
  int index_base() const { return options_.index_base; }

  // Identifies the line that Next() read last; Where() turns a tag into "file:line".
  uint64_t tag() const;
  std::string Where(uint64_t tag) const;
  // The error with that line's position in front.
  absl::Status AtLine(const absl::Status& status) const { return reader_->AtLine(status); }
  absl::Status AtTag(uint64_t tag, const absl::Status& status) const;

  // Goes back to the start of the first file.
  void Rewind();

 private:
  absl::Status AddFormat(FormatKind kind, const perceptron::v1::Model& model, bool require_label,
                         const Client* client);
  Format* format() const { return formats_.at(kinds_[file_ - 1]).get(); }
  absl::Status OpenNext();
  bool Wait(int descriptor) const;
  absl::Status CheckRow(const Row& row) const;
  absl::Status WithTitleHint(const absl::Status& status) const;
  void NoticeLabels();

  InputOptions options_;
  std::vector<RowTarget> targets_;
  bool reread_ = false;
  // The format of each file.
  std::vector<FormatKind> kinds_;
  std::map<FormatKind, std::unique_ptr<Format>> formats_;
  LabelsSeen labels_;
  bool noticed_zero_ = false;
  bool noticed_text_ = false;
  std::unique_ptr<Reader> reader_;
  // The reader's source.
  const MaybeCompressedSource* source_ = nullptr;
  // Size of each file in bytes, if known.
  std::vector<std::optional<uint64_t>> sizes_;
  // Number of the file being read, from 1; 0 before the first.
  size_t file_ = 0;
  // What can be read only once and is needed again, by number of the file.
  std::map<size_t, std::string> contents_;
  std::function<void()> on_wait_;
  std::atomic<bool> stopped_ = false;
  // Can be read once Stop() was called.
  const int stop_;
};

// Prints bad lines of the input and validation errors from the server: the first five of each, the
// rest are only counted. Threads: any.
class RowErrors {
 public:
  // skip_bad_lines: go on after a malformed line.
  explicit RowErrors(bool skip_bad_lines) : skip_bad_lines_(skip_bad_lines) {}

  // An error of Input::Next(). INVALID_ARGUMENT is a malformed line, which can be skipped; any
  // other error ends the run.
  Outcome AddBadLine(const absl::Status& status);
  // The server's validation error for the row that Input::tag() identified. `prefix` begins the line.
  void AddValidationError(const Input& input, uint64_t tag, const absl::Status& status,
                          const std::string& prefix = "");
  // Prints the totals.
  void PrintCounts() const;

  uint64_t skipped() const { return skipped_; }
  uint64_t validation_errors() const { return validation_errors_; }

 private:
  const bool skip_bad_lines_;
  std::atomic<uint64_t> skipped_ = 0;
  std::atomic<uint64_t> validation_errors_ = 0;
};

}  // namespace perceptrond::client
