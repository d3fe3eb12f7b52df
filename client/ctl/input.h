// The example files of `learn` and `predict`: their options, and one reader over all of them.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/format/format.h"
#include "client/format/reader.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

struct InputOptions {
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
  // INVALID_ARGUMENT: options that do not say enough, or features that the model does not have.
  // `again`: the files will be read more than once, so standard input is kept in memory.
  static absl::StatusOr<std::unique_ptr<Input>> Make(const InputOptions& options,
                                                     const perceptron::v1::Model& model,
                                                     bool require_label, bool again);

  // The next example; false at the end of the last file, or once interrupted. INVALID_ARGUMENT: a
  // line that holds none, as "file:line: why", and reading may go on; other errors: a file cannot
  // be read.
  absl::StatusOr<bool> Next(Row* row);

  // Names the line that Next() read last; Where() says it in words.
  uint64_t tag() const;
  std::string Where(uint64_t tag) const;
  // An error about that line.
  absl::Status AtLine(const absl::Status& status) const { return reader_->AtLine(status); }

  // Back to the start.
  void Rewind();

 private:
  absl::Status OpenNext();
  absl::Status CheckKind(const Row& row) const;

  InputOptions options_;
  perceptron::v1::FeatureSpace space_;
  bool again_ = false;
  std::unique_ptr<Format> format_;
  std::unique_ptr<Reader> reader_;
  // The file being read, counted from 1; 0 before the first.
  size_t file_ = 0;
  std::optional<std::string> standard_input_;
};

}  // namespace perceptrond::client
