#include <algorithm>
#include <cstdio>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/input.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/predict_stream.h"

namespace perceptrond::client {
namespace {

constexpr uint64_t kShownComplaints = 5;

struct Options {
  std::string name;
  InputOptions input;
  bool summary_only = false;
  int64_t min_revision = 0;
  size_t batch = 512;
};

// Predicted against actual; only of rows that have a label.
struct Confusion {
  uint64_t right_positive = 0;
  uint64_t right_negative = 0;
  uint64_t false_positive = 0;
  uint64_t false_negative = 0;

  void Add(int actual, int predicted) {
    if (actual > 0) {
      ++(predicted > 0 ? right_positive : false_negative);
    } else {
      ++(predicted > 0 ? false_positive : right_negative);
    }
  }
  uint64_t total() const {
    return right_positive + right_negative + false_positive + false_negative;
  }
  uint64_t errors() const { return false_positive + false_negative; }
  double error() const { return static_cast<double>(errors()) / static_cast<double>(total()); }
  // What always predicting the more frequent label would get wrong.
  double majority_error() const {
    const uint64_t positive = right_positive + false_negative;
    return static_cast<double>(std::min(positive, total() - positive)) /
           static_cast<double>(total());
  }
};

// One run of `predict`. Answers come on the stream's thread, and only there is anything counted or
// printed.
class Exam {
 public:
  Exam(const Globals& globals, const Options& options) : globals_(globals), options_(options) {}

  int Run() {
    CatchInterrupts();
    const Client client = globals_.Connect();
    const absl::StatusOr<v1::Model> model = client.GetModel(options_.name);
    if (!model.ok()) return PrintError(Doing(), model.status());
    names_.assign(model->label_names().begin(), model->label_names().end());
    absl::StatusOr<std::unique_ptr<Input>> input =
        Input::Make(options_.input, *model, false, false);
    if (!input.ok()) {
      return PrintUsageError(absl::StrCat(Doing(), ": ", std::string(input.status().message())));
    }
    input_ = *std::move(input);
    PredictOptions stream_options;
    stream_options.rows_per_message = options_.batch;
    stream_options.min_revision = options_.min_revision;
    stream_options.on_answer = [this](const PredictAnswer& answer) { TakeAnswer(answer); };
    PredictStream stream(client.connection(), options_.name, std::move(stream_options));
    int code = Ask(&stream);
    if (code != kExitFailed) {
      if (absl::Status status = stream.Finish(); !status.ok()) {
        code = PrintError(Doing(), status);
      }
    }
    PrintSummary();
    if (code == kExitOk && refused_ > 0) return kExitRefused;
    return code;
  }

 private:
  std::string Doing() const { return absl::StrCat("predict ", options_.name); }

  int Ask(PredictStream* stream) {
    Row row;
    while (true) {
      absl::StatusOr<bool> more = input_->Next(&row);
      absl::Status status = more.ok() ? absl::OkStatus() : more.status();
      if (status.ok()) {
        if (!*more) break;
        // The row's label comes back with its answer, in the tag's lowest bits.
        const uint64_t tag = input_->tag() << 2 | static_cast<uint64_t>(row.label + 1);
        row.label = 0;
        status = stream->Push(row, tag);
        if (status.ok()) continue;
        if (!absl::IsInvalidArgument(status)) return PrintError(Doing(), status);
        status = input_->AtLine(status);
      }
      if (!absl::IsInvalidArgument(status) || !options_.input.skip_bad_lines) {
        return PrintUsageError(std::string(status.message()));
      }
      if (++bad_lines_ <= kShownComplaints) {
        std::fprintf(stderr, "perceptronctl: skipped %s\n", std::string(status.message()).c_str());
      }
    }
    return Interrupted() ? kExitInterrupted : kExitOk;
  }

  void TakeAnswer(const PredictAnswer& answer) {
    const v1::PredictResponse& response = answer.response;
    revision_ = std::max(revision_, response.revision());
    int next_error = 0;
    for (int i = 0; i < static_cast<int>(answer.tags.size()); ++i) {
      const uint64_t tag = answer.tags[static_cast<size_t>(i)];
      ++examples_;
      if (next_error < response.errors_size() &&
          response.errors(next_error).row() == static_cast<uint32_t>(i)) {
        TakeRefusal(tag >> 2, ToAbslStatus(response.errors(next_error++).status()));
        continue;
      }
      const int actual = static_cast<int>(tag & 3) - 1;
      if (actual != 0) confusion_.Add(actual, response.labels(i));
      if (!options_.summary_only) PrintRow(response, i, actual);
    }
  }

  void TakeRefusal(uint64_t tag, const absl::Status& status) {
    const std::string message(status.message());
    if (++refused_ <= kShownComplaints) {
      std::fprintf(stderr, "perceptronctl: refused: %s: %s (%s)\n", input_->Where(tag).c_str(),
                   message.c_str(), ErrorReason(status).c_str());
    }
    // A line all the same, so that lines go on matching the input's.
    if (options_.summary_only) return;
    std::printf("%s\n", globals_.json() ? JsonObject().Text("error", message).str().c_str() : "?");
  }

  std::string LabelName(int label) const {
    if (names_.size() == 2) return names_[label > 0 ? 1 : 0];
    return label > 0 ? "+1" : "-1";
  }

  void PrintRow(const v1::PredictResponse& response, int i, int actual) const {
    const int label = response.labels(i);
    const bool has_distance = i < response.distances_size();
    if (!globals_.json()) {
      std::printf("%s\t%s\t%s\n", LabelName(label).c_str(), Shortest(response.scores(i)).c_str(),
                  has_distance ? Shortest(response.distances(i)).c_str() : "-");
      return;
    }
    JsonObject json;
    json.Integer("label", label);
    if (names_.size() == 2) json.Text("labelName", LabelName(label));
    json.Number("score", response.scores(i));
    if (has_distance) json.Number("distance", response.distances(i));
    if (actual != 0) json.Integer("actual", actual);
    std::printf("%s\n", json.str().c_str());
  }

  void PrintSummary() const {
    std::fflush(stdout);
    if (bad_lines_ > 0) {
      std::fprintf(stderr, "perceptronctl: %llu malformed lines were skipped\n",
                   static_cast<unsigned long long>(bad_lines_));
    }
    if (options_.summary_only && globals_.json()) {
      std::printf("%s\n", SummaryJson().c_str());
    } else {
      std::fputs(SummaryText().c_str(), options_.summary_only ? stdout : stderr);
    }
  }

  std::string SummaryJson() const {
    JsonObject json;
    json.Integer("examples", static_cast<int64_t>(examples_))
        .Integer("labelled", static_cast<int64_t>(confusion_.total()))
        .Integer("refused", static_cast<int64_t>(refused_))
        .Integer("badLines", static_cast<int64_t>(bad_lines_))
        .Integer("revision", revision_);
    if (confusion_.total() > 0) {
      json.Integer("errors", static_cast<int64_t>(confusion_.errors()))
          .Number("errorRate", confusion_.error())
          .Number("majorityErrorRate", confusion_.majority_error())
          .Integer("truePositives", static_cast<int64_t>(confusion_.right_positive))
          .Integer("trueNegatives", static_cast<int64_t>(confusion_.right_negative))
          .Integer("falsePositives", static_cast<int64_t>(confusion_.false_positive))
          .Integer("falseNegatives", static_cast<int64_t>(confusion_.false_negative));
    }
    return json.str();
  }

  std::string SummaryText() const {
    std::string text = absl::StrCat(examples_, " predicted at revision ", revision_);
    if (refused_ > 0) absl::StrAppend(&text, ", ", refused_, " of them refused");
    absl::StrAppend(&text, "\n");
    if (confusion_.total() == 0) return text;
    const std::string negative = LabelName(-1);
    const std::string positive = LabelName(1);
    absl::StrAppend(&text, "wrong: ", confusion_.errors(), " of ", confusion_.total(), " (",
                    Percent(confusion_.error()), "); always saying the more frequent label: ",
                    Percent(confusion_.majority_error()), "\n");
    absl::StrAppend(&text, "  ", negative, ": ", confusion_.right_negative, " right, ",
                    confusion_.false_positive, " taken for ", positive, "\n");
    absl::StrAppend(&text, "  ", positive, ": ", confusion_.right_positive, " right, ",
                    confusion_.false_negative, " taken for ", negative, "\n");
    return text;
  }

  const Globals& globals_;
  const Options& options_;
  std::vector<std::string> names_;
  std::unique_ptr<Input> input_;
  uint64_t bad_lines_ = 0;
  uint64_t examples_ = 0;
  uint64_t refused_ = 0;
  int64_t revision_ = 0;
  Confusion confusion_;
};

}  // namespace

void AddPredict(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app->add_subcommand("predict", "Predict the examples of files");
  command->add_option("NAME", options->name, "spam, or models/spam")->required();
  command->add_option("FILE", options->input.files, "Files to predict; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  command->add_flag("--summary", options->summary_only, "The summary only, on standard output");
  command->add_option("--min-revision", options->min_revision,
                      "Refuse answers from an older state of the model");
  command->add_option("--batch", options->batch, "Examples in a message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->footer(
      "Prints a line for each example: label, score and distance from the boundary, or with -o "
      "json\n"
      "{\"label\":1,\"labelName\":\"spam\",\"score\":2.5,\"distance\":0.7,\"actual\":1}. Labels "
      "are not needed;\n"
      "where the input has them, a summary on standard error tells how many were predicted wrong.\n"
      "Formats are those of 'perceptronctl learn --help'.\n"
      "\n"
      "Examples:\n"
      "  perceptronctl predict iris iris.test --format svmlight --index-base 1 -o json\n"
      "  perceptronctl predict spam sms.tsv --skip-lines 1 --summary\n"
      "  echo 'Win a prize now' | perceptronctl predict spam - --format text");
  command->callback([=] { *action = [=] { return Exam(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
