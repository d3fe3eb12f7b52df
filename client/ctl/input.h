// The example files of `learn` and `predict`: their options, and one reader over all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/ctl/output.h"
#include "client/format/format.h"
#include "client/format/reader.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

struct InputOptions {
  // "learn" or "predict".
  std::string command;
  std::vector<std::string> files;
  std::string format;
  int index_base = -1;
  bool zero_is_negative = false;
  std::string label_column;
  bool no_header = false;
  std::string delimiter = ",";
  int64_t skip_lines = 0;
  bool skip_bad_lines = false;
};

void AddInputOptions(CLI::App* command, InputOptions* options);

// Threads: one at a time; Where() any.
class Input {
 public:
  // INVALID_ARGUMENT: options that do not say enough. FAILED_PRECONDITION and others: a file that
  // cannot be read, or is compressed. `again`: the files will be read more than once, so standard
  // input is kept in memory.
  static absl::StatusOr<std::unique_ptr<Input>> Make(const InputOptions& options,
                                                     const perceptron::v1::Model& model,
                                                     bool require_label, bool again);

  // Called before a read that has to wait: nothing more may come for long.
  void OnWait(std::function<void()> on_wait) { on_wait_ = std::move(on_wait); }

  // The next example; false at the end of the last file, or once interrupted. INVALID_ARGUMENT: a
  // line that holds none, as "file:line: why", and reading may go on; other errors: a file cannot
  // be read.
  absl::StatusOr<bool> Next(Row* row);

  // How much of the input has been read, 0 to 1 by bytes; absent where its size is not known.
  std::optional<double> fraction() const;

  // Names the line that Next() read last; Where() says it in words.
  uint64_t tag() const;
  std::string Where(uint64_t tag) const;
  // An error about that line.
  absl::Status AtLine(const absl::Status& status) const { return reader_->AtLine(status); }

  // Back to the start.
  void Rewind();

 private:
  absl::Status OpenNext();
  bool Wait(int descriptor) const;
  absl::Status CheckKind(const Row& row) const;

  InputOptions options_;
  perceptron::v1::FeatureSpace space_;
  bool again_ = false;
  std::unique_ptr<Format> format_;
  std::unique_ptr<Reader> reader_;
  // Of each file, where it has one.
  std::vector<std::optional<uint64_t>> sizes_;
  // The file being read, counted from 1; 0 before the first.
  size_t file_ = 0;
  std::optional<std::string> standard_input_;
  std::function<void()> on_wait_;
};

// Threads: any.
class Complaints {
 public:
  // skip_bad_lines: a line without an example is left out.
  explicit Complaints(bool skip_bad_lines) : skip_bad_lines_(skip_bad_lines) {}

  // What is wrong with the input: INVALID_ARGUMENT is a bad line, which may be left out; anything
  // else ends the run.
  Outcome Take(const absl::Status& status);
  // The server refused the example that Input::tag() named.
  void Refused(const Input& input, uint64_t tag, const absl::Status& status);
  // How many there were, where not all were shown.
  void ReportCounts() const;

  uint64_t skipped() const { return skipped_; }
  uint64_t refused() const { return refused_; }

 private:
  const bool skip_bad_lines_;
  std::atomic<uint64_t> skipped_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace perceptrond::client
