#include "client/ctl/input.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/interrupt.h"

namespace perceptrond::client {
namespace {

constexpr int kFileShift = 40;

absl::StatusOr<FormatKind> ChooseFormat(const InputOptions& options) {
  if (!options.format.empty()) return *FormatByName(options.format);
  const std::optional<FormatKind> guess = FormatByExtension(options.files.front());
  if (guess.has_value()) return *guess;
  return absl::InvalidArgumentError(
      absl::StrCat("the name ", options.files.front(),
                   " does not tell the format: state it with --format svmlight, vw, csv, jsonl or "
                   "text (.svm, .svmlight, .vw, .csv, .jsonl and .tsv are recognized)"));
}

absl::StatusOr<char> Delimiter(const std::string& text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() == 1) return text.front();
  return absl::InvalidArgumentError("--delimiter must be one character, or tab");
}

absl::StatusOr<std::string> ReadAll() {
  absl::StatusOr<std::unique_ptr<ByteSource>> source = OpenFile("-", WaitReadable);
  if (!source.ok()) return source.status();
  std::string content;
  std::vector<char> buffer(1 << 18);
  while (true) {
    absl::StatusOr<size_t> count = (*source)->Read(buffer.data(), buffer.size());
    if (!count.ok()) return count.status();
    if (*count == 0) return content;
    content.append(buffer.data(), *count);
  }
}

}  // namespace

void AddInputOptions(CLI::App* command, InputOptions* options) {
  command
      ->add_option("--format", options->format,
                   "svmlight, vw, csv, jsonl or text; by default from the file's extension")
      ->check(CLI::IsMember({"svmlight", "vw", "csv", "jsonl", "text"}));
  command
      ->add_option("--index-base", options->index_base,
                   "svmlight: what the file calls the first feature, 0 or 1; never guessed")
      ->check(CLI::IsMember({0, 1}));
  command->add_flag("--zero-is-negative", options->zero_is_negative, "Label 0 means -1");
  command->add_option("--label-column", options->label_column,
                      "csv: the label's column, by name or by number from 1");
  command->add_flag("--no-header,!--header", options->no_header,
                    "csv: the first line is data already (default: it names the columns)");
  command->add_option("--delimiter", options->delimiter, "csv: what separates fields; tab works")
      ->capture_default_str();
  command
      ->add_option("--skip-lines", options->skip_lines,
                   "Leave out so many lines at the start of each file")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--skip-bad-lines", options->skip_bad_lines,
                    "Count malformed lines and go on (default: stop at the first)");
}

absl::StatusOr<std::unique_ptr<Input>> Input::Make(const InputOptions& options,
                                                   const perceptron::v1::Model& model,
                                                   bool require_label, bool again) {
  FormatOptions format;
  absl::StatusOr<FormatKind> kind = ChooseFormat(options);
  if (!kind.ok()) return kind.status();
  absl::StatusOr<char> delimiter = Delimiter(options.delimiter);
  if (!delimiter.ok()) return delimiter.status();
  format.kind = *kind;
  format.delimiter = *delimiter;
  format.require_label = require_label;
  format.header = !options.no_header;
  format.label_column = options.label_column;
  format.dense = model.feature_space().has_dense();
  if (options.index_base >= 0) format.index_base = options.index_base;
  format.labels.zero_is_negative = options.zero_is_negative;
  format.labels.names.assign(model.label_names().begin(), model.label_names().end());
  if (*kind == FormatKind::kCsv && require_label && format.label_column.empty()) {
    return absl::InvalidArgumentError(
        "which column holds the label? state it with --label-column NAME, or by its number from 1");
  }
  if (std::count(options.files.begin(), options.files.end(), "-") > 1) {
    return absl::InvalidArgumentError("standard input (-) can be read only once");
  }
  auto input = std::make_unique<Input>();
  absl::StatusOr<std::unique_ptr<Format>> made = MakeFormat(format);
  if (!made.ok()) return made.status();
  input->format_ = *std::move(made);
  input->options_ = options;
  input->space_ = model.feature_space();
  input->again_ = again;
  // Better now than after half of the files were learned.
  for (const std::string& file : options.files) {
    if (file != "-" && access(file.c_str(), R_OK) != 0) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", file));
    }
  }
  return input;
}

absl::Status Input::OpenNext() {
  const std::string& file = options_.files[file_++];
  std::unique_ptr<ByteSource> source;
  if (file == "-" && again_) {
    if (!standard_input_.has_value()) {
      absl::StatusOr<std::string> content = ReadAll();
      if (!content.ok()) return content.status();
      standard_input_ = *std::move(content);
    }
    source = OpenMemory(&*standard_input_);
  } else {
    absl::StatusOr<std::unique_ptr<ByteSource>> opened = OpenFile(file, WaitReadable);
    if (!opened.ok()) return opened.status();
    source = *std::move(opened);
  }
  reader_ = std::make_unique<Reader>(file == "-" ? "standard input" : file, std::move(source),
                                     format_.get(), options_.skip_lines);
  return absl::OkStatus();
}

absl::StatusOr<bool> Input::Next(Row* row) {
  while (!Interrupted()) {
    if (reader_ != nullptr) {
      absl::StatusOr<bool> more = reader_->Next(row);
      if (!more.ok()) return more;
      if (*more) {
        if (absl::Status status = CheckKind(*row); !status.ok()) return status;
        return true;
      }
    }
    if (file_ == options_.files.size()) return false;
    if (absl::Status status = OpenNext(); !status.ok()) return status;
  }
  return false;
}

absl::Status Input::CheckKind(const Row& row) const {
  if (row.feature_count() == 0) return absl::OkStatus();
  if (space_.has_dense() && row.kind == RowKind::kNamed) {
    return AtLine(
        absl::FailedPreconditionError("features have names here, but the model's have numbers only "
                                      "(it is dense); a model created "
                                      "with --named or --hash-bits takes names"));
  }
  if (space_.has_named() && row.kind != RowKind::kNamed) {
    return AtLine(absl::FailedPreconditionError(
        "features have numbers here, but the model's have names; a model created with --dimension "
        "takes numbers"));
  }
  return absl::OkStatus();
}

uint64_t Input::tag() const {
  return static_cast<uint64_t>(file_) << kFileShift | static_cast<uint64_t>(reader_->line());
}

std::string Input::Where(uint64_t tag) const {
  const std::string& file = options_.files[(tag >> kFileShift) - 1];
  return absl::StrCat(file == "-" ? "standard input" : file, ":",
                      tag & ((uint64_t{1} << kFileShift) - 1));
}

void Input::Rewind() {
  reader_.reset();
  file_ = 0;
}

}  // namespace perceptrond::client
