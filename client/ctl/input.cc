#include "client/ctl/input.h"

#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/dimension.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/report.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

// A tag holds the line in the low bits and the file above; predict.cc shifts in 15 bits of label.
constexpr int kFileShift = 36;
constexpr size_t kMostFiles = (1 << 13) - 1;

// Each file has the format that its own name tells.
absl::StatusOr<FormatKind> ChooseFormat(const InputOptions& options, const std::string& file) {
  if (!options.format.empty()) return *FormatByName(options.format);
  const std::optional<FormatKind> guess = FormatByExtension(file);
  if (guess.has_value()) return *guess;
  return absl::InvalidArgumentError(absl::StrCat(
      file == "-" ? "the format of standard input is unknown"
                  : absl::StrCat("the extension of ", file, " does not tell its format"),
      ": give --format svmlight, vw, csv, jsonl or text (known extensions: .svm, .svmlight, .vw, "
      ".csv, .jsonl, .json, .tsv)"));
}

absl::StatusOr<char> Delimiter(const std::string& text) {
  if (text == "\\t" || text == "tab") return '\t';
  if (text.size() == 1) return text.front();
  return absl::InvalidArgumentError("--delimiter must be one character or tab");
}

const char* NameOf(const std::string& file) {
  return file == "-" ? "standard input" : file.c_str();
}

absl::Status CompressedError(const std::string& command, const std::string& file,
                             const Compression& compression) {
  const std::string source = file == "-" ? "..." : absl::StrCat(compression.unpack, " ", file);
  const std::string through = file == "-" ? absl::StrCat(" | ", compression.unpack) : "";
  return absl::FailedPreconditionError(absl::StrCat(
      NameOf(file), " is compressed with ", compression.name, "; decompress it into a pipe: ",
      source, through, " | perceptronctl ", command, " NAME - --format ..."));
}

// Bytes left to read if the file, or standard input, is a regular file.
std::optional<uint64_t> SizeOf(const std::string& file) {
  struct stat status = {};
  const int got = file == "-" ? fstat(STDIN_FILENO, &status) : stat(file.c_str(), &status);
  if (got != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  const off_t begin = file == "-" ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  return static_cast<uint64_t>(std::max<off_t>(0, status.st_size - begin));
}

// The first bytes of a regular file. (Reading a pipe would consume them.)
std::string StartOf(const std::string& file) {
  std::string start(kCompressionMagicBytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(start.data(), static_cast<std::streamsize>(start.size()));
  start.resize(static_cast<size_t>(stream.gcount()));
  return start;
}

// Whether it looks as if a text was given where a file is meant.
bool LooksLikeText(const std::string& file) {
  return file.find_first_of(" \t\n") != std::string::npos ||
         file.find_first_of("./") == std::string::npos;
}

absl::Status UnreadableError(const std::string& command, const std::string& file, int error) {
  std::string message = absl::StrCat("cannot read ", file);
  const bool absent = error == ENOENT || error == ENAMETOOLONG;
  absl::Status status = absl::ErrnoToStatus(error, message);
  if (!absent || !LooksLikeText(file)) return status;
  const char* const line = command == "learn" ? "spam\\tWin a prize now" : "Win a prize now";
  return absl::Status(
      status.code(),
      absl::StrCat(
          std::string(status.message()),
          "\n  hint: FILE is the name of a file; a text itself goes through a pipe: printf '", line,
          "\\n' | perceptronctl ", command, " NAME - --format text"));
}

// Finds unreadable files before the first one is learned.
absl::Status CheckFile(const std::string& command, const std::string& file) {
  std::error_code error;
  if (file == "-") return absl::OkStatus();
  if (std::filesystem::is_directory(file, error)) {
    return absl::FailedPreconditionError(absl::StrCat(file, " is a directory"));
  }
  if (access(file.c_str(), R_OK) != 0) return UnreadableError(command, file, errno);
  if (!std::filesystem::is_regular_file(file, error)) return absl::OkStatus();
  const Compression* const compression = DetectCompression(StartOf(file));
  return compression == nullptr || compression->is_read
             ? absl::OkStatus()
             : CompressedError(command, file, *compression);
}

// The columns that a model needs are given, and the text's only to a model that takes texts.
absl::Status CheckColumns(const InputOptions& options, bool takes_texts, bool require_label) {
  if (require_label && options.label_column.empty()) {
    return absl::InvalidArgumentError(
        "the label's column is unknown: give --label-column with its name, or its number from 1");
  }
  const bool given = !options.text_column.empty();
  if (given == takes_texts) return absl::OkStatus();
  return absl::InvalidArgumentError(
      given ? "--text-column: the model takes features; models created with --text take texts"
            : "the model takes texts: give --text-column with the name of their column, or its "
              "number from 1");
}

}  // namespace

absl::StatusOr<std::string> ReadWhole(const std::string& file, size_t most_bytes) {
  absl::StatusOr<std::unique_ptr<ByteSource>> source =
      OpenFile(file, [](int descriptor) { return WaitReadable(descriptor); });
  if (!source.ok()) return source.status();
  std::string content;
  std::vector<char> buffer(1 << 18);
  while (true) {
    absl::StatusOr<size_t> count = (*source)->Read(buffer.data(), buffer.size());
    if (!count.ok()) return count.status();
    if (Interrupted()) return absl::CancelledError(absl::StrCat(NameOf(file), ": interrupted"));
    if (*count == 0) return content;
    if (*count > most_bytes - content.size())
      return absl::ResourceExhaustedError(
          absl::StrCat(NameOf(file), " has more than ", most_bytes,
                       " bytes, the most that several passes keep in memory; give a file, "
                       "which is read once for each pass"));
    content.append(buffer.data(), *count);
  }
}

void AddInputOptions(CLI::App* command, InputOptions* options) {
  options->command = command->get_name();
  command
      ->add_option("--format", options->format,
                   "Format of all files (default: of each from its extension). Files and "
                   "standard input may be compressed with gzip or zstd")
      ->check(CLI::IsMember({"svmlight", "vw", "csv", "jsonl", "text", "ids"}));
  command
      ->add_option("--index-base", options->index_base,
                   "svmlight: index of the first feature in the file, 0 or 1; required")
      ->check(CLI::IsMember({0, 1}));
  command->add_flag(
      "--zero-is-negative", options->zero_is_negative,
      "Read label 0 as -1 also beside -1. Without -1 in the input 0 is read so anyway, with a "
      "notice");
  command->add_option("--label-column", options->label_column,
                      "csv: column of the label, by name or by number from 1");
  command->add_option("--text-column", options->text_column,
                      "csv: column of the text, likewise, for models created with --text; the "
                      "other columns are not read");
  command
      ->add_option("--ignore-column", options->ignored_columns,
                   "csv: column that is not read, likewise; may be repeated")
      ->allow_extra_args(false);
  command->add_flag(
      "--header,!--no-header", options->header,
      "csv: the first line names the columns, or with --no-header is data (default: it names "
      "them if a column is given by its name, or if predict and explain find a column that the "
      "model has learned and no number or date; else an error)");
  command
      ->add_option("--delimiter", options->delimiter,
                   "csv: separator of the fields, one character or tab")
      ->capture_default_str();
  command
      ->add_option("--skip-lines", options->skip_lines,
                   "Skip this many lines at the start of each file")
      ->check(WholeNumber());
  command->add_flag("--skip-bad-lines", options->skip_bad_lines,
                    "Skip and count malformed lines (default: stop at the first)");
}

absl::StatusOr<std::unique_ptr<Input>> Input::Make(const InputOptions& options,
                                                   const perceptron::v1::Model& model,
                                                   bool require_label, bool reread,
                                                   const Client* client) {
  if (options.files.size() > kMostFiles)
    return absl::InvalidArgumentError(absl::StrCat(
        options.files.size(), " files are too many; give at most ", kMostFiles, " at a time"));
  for (const std::string& file : options.files) {
    if (absl::Status status = CheckFile(options.command, file); !status.ok()) return status;
  }
  if (std::count(options.files.begin(), options.files.end(), "-") > 1) {
    return absl::InvalidArgumentError("standard input (-) can be read only once");
  }
  auto input = std::make_unique<Input>();
  input->options_ = options;
  input->targets_.push_back({"", ExampleSpace(model.feature_space())});
  input->reread_ = reread;
  for (const std::string& file : options.files) {
    const absl::StatusOr<FormatKind> kind = ChooseFormat(options, file);
    if (!kind.ok()) return kind.status();
    if (absl::Status status = input->AddFormat(*kind, model, require_label, client); !status.ok())
      return status;
    input->kinds_.push_back(*kind);
    input->sizes_.push_back(SizeOf(file));
  }
  // In other formats a column that is to be left out would be learned.
  const std::pair<const char*, bool> csv_flags[] = {
      {"--label-column", !options.label_column.empty()},
      {"--text-column", !options.text_column.empty()},
      {"--ignore-column", !options.ignored_columns.empty()},
      {"--header and --no-header", options.header != 0}};
  for (const auto& [flag, given] : csv_flags) {
    if (given && !input->Has(FormatKind::kCsv))
      return absl::InvalidArgumentError(absl::StrCat(flag, ": no file has the format csv"));
  }
  return input;
}

absl::Status Input::AddFormat(FormatKind kind, const perceptron::v1::Model& model,
                              bool require_label, const Client* client) {
  if (Has(kind)) return absl::OkStatus();
  const perceptron::v1::FeatureSpace& space = targets_.front().space;
  if (kind == FormatKind::kCsv) {
    if (absl::Status status = CheckColumns(options_, space.has_text(), require_label); !status.ok())
      return status;
  }
  const absl::StatusOr<char> delimiter = Delimiter(options_.delimiter);
  if (!delimiter.ok()) return delimiter.status();
  FormatOptions format;
  format.kind = kind;
  format.delimiter = *delimiter;
  format.require_label = require_label;
  if (options_.header != 0) format.header = options_.header > 0;
  format.label_column = options_.label_column;
  format.text_column = options_.text_column;
  format.ignored_columns = options_.ignored_columns;
  if (client != nullptr) {
    format.has_weight_of = [client, model](const std::vector<std::string>& columns) {
      return HasWeightOf(*client, model, columns);
    };
  }
  format.dense = space.has_dense();
  if (options_.index_base >= 0) format.index_base = options_.index_base;
  format.labels = LabelRuleOf(model);
  format.labels.zero_is_negative = options_.zero_is_negative;
  format.labels.keep_zero = options_.keep_zero_labels;
  format.labels.seen = &labels_;
  absl::StatusOr<std::unique_ptr<Format>> made = MakeFormat(format);
  if (!made.ok()) return made.status();
  formats_[kind] = *std::move(made);
  return absl::OkStatus();
}

Input::Input() : stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Input::~Input() { close(stop_); }

absl::Status Input::AddModel(const perceptron::v1::Model& first,
                             const perceptron::v1::Model& other) {
  targets_.front().prefix = absl::StrCat(first.name(), ": ");
  targets_.push_back({absl::StrCat(other.name(), ": "), ExampleSpace(other.feature_space())});
  return CheckSameLabels(first, other);
}

void Input::Stop() {
  stopped_ = true;
  [[maybe_unused]] const int result = eventfd_write(stop_, 1);
}

bool Input::Wait(int descriptor) const {
  if (on_wait_ && !ReadableNow(descriptor)) on_wait_();
  return WaitReadable(descriptor, stop_);
}

absl::Status Input::OpenNext() {
  const std::string& file = options_.files[file_++];
  std::unique_ptr<ByteSource> source;
  const bool is_pipe = file == "-" || !sizes_[file_ - 1].has_value();
  if (reread_ && is_pipe && !contents_.contains(file_)) {
    absl::StatusOr<std::string> content = ReadWhole(file);
    if (!content.ok()) return content.status();
    sizes_[file_ - 1] = content->size();
    contents_.emplace(file_, *std::move(content));
  }
  if (const auto kept = contents_.find(file_); kept != contents_.end()) {
    source = OpenMemory(&kept->second);
  } else {
    absl::StatusOr<std::unique_ptr<ByteSource>> opened =
        OpenFile(file, [this](int descriptor) { return Wait(descriptor); });
    if (!opened.ok()) return opened.status();
    source = *std::move(opened);
  }
  std::unique_ptr<MaybeCompressedSource> plain = Decompress(NameOf(file), std::move(source));
  source_ = plain.get();
  reader_ = std::make_unique<Reader>(NameOf(file), std::move(plain), format(), options_.skip_lines);
  return absl::OkStatus();
}

absl::StatusOr<bool> Input::Next(Row* row) {
  while (!Interrupted() && !stopped_) {
    if (reader_ != nullptr) {
      absl::StatusOr<bool> more = reader_->Next(row);
      NoticeLabels();
      // A source that was interrupted may look truncated.
      if (!more.ok() && (Interrupted() || stopped_)) return false;
      if (!more.ok() && reader_->compression() != nullptr) {
        return CompressedError(options_.command, options_.files[file_ - 1],
                               *reader_->compression());
      }
      if (!more.ok()) return WithTitleHint(more.status());
      if (*more) {
        if (absl::Status status = CheckRow(*row); !status.ok()) return status;
        return true;
      }
    }
    if (file_ == options_.files.size()) return false;
    if (absl::Status status = OpenNext(); !status.ok()) return status;
  }
  return false;
}

absl::Status Input::WithTitleHint(const absl::Status& status) const {
  if (reader_->line() != 1 || !absl::IsInvalidArgument(status) ||
      kinds_[file_ - 1] != FormatKind::kText)
    return status;
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(status.message()),
                   "; if this line has the titles of the columns, --skip-lines 1 skips it"));
}

void Input::NoticeLabels() {
  const auto notice = [&](const std::atomic<bool>& seen, bool* noticed, absl::string_view what) {
    if (*noticed || !seen) return;
    *noticed = true;
    PrintNotice(absl::StrCat(NameOf(options_.files[file_ - 1]), ":", reader_->line(), ": ", what,
                             ", here and from now on"));
  };
  notice(labels_.zero, &noticed_zero_, "label 0 is read as -1");
  notice(labels_.none_before_tab, &noticed_text_,
         "what is before the tab is no label of the model and is read as part of the text");
}

absl::Status Input::CheckRow(const Row& row) const {
  for (const RowTarget& target : targets_) {
    absl::Status status = CheckKind(row, target);
    if (status.ok() && options_.check_dimension)
      status = CheckDimension(row, target, std::max(options_.index_base, 0));
    if (!status.ok()) return AtLine(status);
  }
  return absl::OkStatus();
}

std::optional<double> Input::fraction() const {
  uint64_t total = 0;
  uint64_t done =
      reader_ != nullptr ? source_->compressed_bytes().value_or(reader_->consumed()) : 0;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (!sizes_[i].has_value()) return std::nullopt;
    total += *sizes_[i];
    if (i + 1 < file_) done += *sizes_[i];
  }
  if (total == 0) return std::nullopt;
  // A file may have grown since its size was read.
  return std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
}

uint64_t Input::tag() const {
  return static_cast<uint64_t>(file_) << kFileShift | static_cast<uint64_t>(reader_->line());
}

std::string Input::Where(uint64_t tag) const {
  const std::string& file = options_.files[(tag >> kFileShift) - 1];
  return absl::StrCat(NameOf(file), ":", tag & ((uint64_t{1} << kFileShift) - 1));
}

absl::Status Input::AtTag(uint64_t tag, const absl::Status& status) const {
  return absl::Status(status.code(), absl::StrCat(Where(tag), ": ", std::string(status.message())));
}

void Input::Rewind() {
  reader_.reset();
  file_ = 0;
}

namespace {

constexpr uint64_t kShownErrors = 5;

}  // namespace

Outcome RowErrors::AddBadLine(const absl::Status& status) {
  const std::string message(status.message());
  if (!absl::IsInvalidArgument(status)) return UsageError(message);
  if (!skip_bad_lines_) {
    return UsageError(absl::StrCat(message, "; --skip-bad-lines skips such lines"));
  }
  if (++skipped_ <= kShownErrors) PrintStderr(absl::StrCat("skipped ", message));
  return {};
}

void RowErrors::AddValidationError(const Input& input, uint64_t tag, const absl::Status& status,
                                   const std::string& prefix) {
  if (++validation_errors_ > kShownErrors) return;
  // The server names a position in its message, such as "columns.indices[513]: ", which is none in
  // the file.
  std::string message(status.message());
  const size_t end = message.starts_with("columns.") ? message.find(": ") : std::string::npos;
  const bool zero_based = input.index_base() == 1 && message.starts_with("columns.indices");
  if (end != std::string::npos) message.erase(0, end + 2);
  if (zero_based) absl::StrAppend(&message, "; the file's count from 1");
  PrintStderr(absl::StrCat(prefix, "validation error: ", input.Where(tag), ": ",
                           PrintableInLine(message), " (", ErrorReason(status), ")"));
}

void RowErrors::PrintCounts() const {
  if (validation_errors_ > kShownErrors) {
    PrintStderr(
        absl::StrCat(Counted(validation_errors_.load(), "examples"), " had validation errors"));
  }
  if (skipped_ > 0)
    PrintStderr(
        absl::StrCat(skipped_.load(), " malformed ", skipped_ == 1 ? "line" : "lines", " skipped"));
}

}  // namespace perceptrond::client
