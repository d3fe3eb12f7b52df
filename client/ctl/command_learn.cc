#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/ctl/command.h"
#include "client/ctl/input.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/producer_lease.h"
#include "client/ctl/report.h"
#include "client/learn_stream.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

// How many single complaints are shown before they are only counted.
constexpr uint64_t kShownComplaints = 5;
constexpr int64_t kMostPasses = 1000;

struct Options {
  std::string name;
  InputOptions input;
  int64_t passes = 1;
  bool until_converged = false;
  size_t batch = 512;
  size_t window = 64;
  std::string producer;
  int64_t start_offset = 0;
  int64_t passes_before = 0;
};

// One run of `learn`.
class Lesson {
 public:
  Lesson(const Globals& globals, const CLI::App& command, const Options& options)
      : globals_(globals), command_(command), options_(options) {}

  int Run() {
    CatchInterrupts();
    const Client client = globals_.Connect();
    const absl::StatusOr<v1::Model> model = client.GetModel(options_.name);
    if (!model.ok()) return PrintError(Doing(), model.status());
    const int64_t most = MostPasses();
    absl::StatusOr<std::unique_ptr<Input>> input =
        Input::Make(options_.input, *model, true, most > 1);
    if (!input.ok()) {
      return PrintUsageError(absl::StrCat(Doing(), ": ", std::string(input.status().message())));
    }
    input_ = *std::move(input);
    if (options_.producer.empty()) lease_ = std::make_unique<ProducerLease>();
    absl::StatusOr<std::unique_ptr<LearnStream>> stream =
        LearnStream::Open(client.connection(), options_.name, StreamOptions());
    if (!stream.ok()) return PrintError(Doing(), stream.status());
    stream_ = *std::move(stream);
    started_ = absl::Now();
    const InterruptWatch watch([this] {
      // What is under way is finished; but not with a server that is gone.
      if (reconnecting_) stream_->Cancel();
      return !reconnecting_;
    });

    int code = kExitOk;
    for (int64_t pass = 1; pass <= most && code == kExitOk; ++pass) {
      if (pass > 1) input_->Rewind();
      code = LearnPass(pass);
      if (options_.until_converged && !passes_.empty() && passes_.back().converged()) break;
    }
    return Finish(client, code);
  }

 private:
  std::string Doing() const { return absl::StrCat("learn ", options_.name); }

  int64_t MostPasses() const {
    const bool stated = command_.count("--passes") > 0;
    return options_.until_converged && !stated ? kMostPasses : options_.passes;
  }

  LearnOptions StreamOptions() {
    LearnOptions options;
    options.producer_id = lease_ != nullptr ? lease_->id() : options_.producer;
    if (command_.count("--start-offset") > 0) options.start_offset = options_.start_offset;
    if (command_.count("--passes-before") > 0) options.passes_before = options_.passes_before;
    options.rows_per_message = options_.batch;
    options.window_messages = options_.window;
    options.on_result = [this](const LearnAnswer& answer) {
      reconnecting_ = false;
      ReportRefused(answer);
    };
    options.on_reconnect = [this](const absl::Status& status) {
      if (reconnecting_.exchange(true)) return;
      ClearProgress();
      std::fprintf(stderr, "perceptronctl: connection lost (%s); reconnecting\n",
                   std::string(status.message()).c_str());
    };
    return options;
  }

  // kExitOk: a whole pass; anything else ends the run.
  int LearnPass(int64_t pass) {
    Row row;
    while (true) {
      absl::StatusOr<bool> more = input_->Next(&row);
      absl::Status status = more.ok() ? absl::OkStatus() : more.status();
      if (status.ok()) {
        if (!*more) break;
        status = stream_->Push(row, input_->tag());
        if (status.ok()) {
          if ((++rows_ & 1023) == 0) DrawProgress(pass);
          continue;
        }
        if (!stream_->status().ok()) return Failed(status);
        status = input_->AtLine(status);
      }
      if (!absl::IsInvalidArgument(status) || !options_.input.skip_bad_lines) {
        ClearProgress();
        return PrintUsageError(
            absl::StrCat(std::string(status.message()),
                         absl::IsInvalidArgument(status) ? " (--skip-bad-lines would go on)" : ""));
      }
      if (++bad_lines_ <= kShownComplaints) {
        ClearProgress();
        std::fprintf(stderr, "perceptronctl: skipped %s\n", std::string(status.message()).c_str());
      }
    }
    if (Interrupted()) return kExitInterrupted;
    if (rows_ == 0) {
      return PrintUsageError(absl::StrCat(Doing(), ": there are no examples in the input"));
    }
    absl::StatusOr<v1::PassSummary> summary = stream_->MarkPass();
    if (!summary.ok()) return Failed(summary.status());
    ClearProgress();
    // A producer of this machine's own has marked other runs' passes; nobody counts those.
    if (lease_ != nullptr) summary->set_number(pass);
    passes_.push_back(*summary);
    if (!globals_.json()) {
      std::printf("%s\n", DescribePass(passes_.back()).c_str());
      std::fflush(stdout);
    }
    return kExitOk;
  }

  int Failed(const absl::Status& status) {
    ClearProgress();
    if (Interrupted() && absl::IsCancelled(status)) {
      std::fprintf(
          stderr,
          "perceptronctl: %s: interrupted while the server was away; what was not answered "
          "is learned when you learn the file again\n",
          Doing().c_str());
      return kExitInterrupted;
    }
    return PrintError(Doing(), status);
  }

  int Finish(const Client& client, int code) {
    if (code != kExitFailed) {
      absl::StatusOr<LearnTotals> totals = stream_->Finish();
      if (!totals.ok()) {
        code = Failed(totals.status());
      } else if (code == kExitOk && lease_ != nullptr) {
        lease_->Return();
      }
    }
    ClearProgress();
    const LearnTotals totals = stream_->totals();
    if (refused_ > kShownComplaints) {
      std::fprintf(stderr, "perceptronctl: the server refused %llu examples in all\n",
                   static_cast<unsigned long long>(refused_));
    }
    if (bad_lines_ > 0) {
      std::fprintf(stderr, "perceptronctl: %llu malformed lines were skipped\n",
                   static_cast<unsigned long long>(bad_lines_));
    }
    // Where nothing was learned the error said it all.
    if (totals.examples + totals.duplicates == 0 && (code == kExitFailed || code == kExitUsage)) {
      return code;
    }
    const absl::StatusOr<v1::Model> model = client.GetModel(options_.name);
    if (globals_.json()) {
      PrintJson(totals, model);
    } else {
      PrintText(totals, model);
    }
    if (code == kExitOk && refused_ > 0) return kExitRefused;
    return code;
  }

  void PrintText(const LearnTotals& totals, const absl::StatusOr<v1::Model>& model) const {
    const double seconds = absl::ToDoubleSeconds(absl::Now() - started_);
    std::printf("%s: %llu examples learned from in %.1f s (%.0f/s), %llu mistakes, %llu updates",
                ModelName(options_.name).c_str(), static_cast<unsigned long long>(totals.examples),
                seconds, static_cast<double>(totals.examples) / seconds,
                static_cast<unsigned long long>(totals.mistakes),
                static_cast<unsigned long long>(totals.updates));
    if (totals.duplicates > 0) {
      std::printf(", %llu known already", static_cast<unsigned long long>(totals.duplicates));
    }
    if (totals.lost_answers > 0) {
      std::printf(", %llu more whose answers got lost",
                  static_cast<unsigned long long>(totals.lost_answers));
    }
    std::printf("; revision %lld\n", static_cast<long long>(totals.revision));
    if (model.ok()) std::fputs(DescribeReport(*model).c_str(), stdout);
  }

  void PrintJson(const LearnTotals& totals, const absl::StatusOr<v1::Model>& model) const {
    std::vector<std::string> passes;
    for (const v1::PassSummary& pass : passes_) passes.push_back(ToJson(pass, false));
    JsonObject json;
    json.Text("model", ModelName(options_.name))
        .Integer("rows", static_cast<int64_t>(rows_))
        .Integer("examples", static_cast<int64_t>(totals.examples))
        .Integer("mistakes", static_cast<int64_t>(totals.mistakes))
        .Integer("updates", static_cast<int64_t>(totals.updates))
        .Integer("duplicates", static_cast<int64_t>(totals.duplicates))
        .Integer("refused", static_cast<int64_t>(totals.refused))
        .Integer("lostAnswers", static_cast<int64_t>(totals.lost_answers))
        .Integer("badLines", static_cast<int64_t>(bad_lines_))
        .Integer("revision", totals.revision)
        .Text("producer", stream_->producer_id())
        .Integer("acknowledgedThrough", totals.acknowledged_through)
        .Number("seconds", absl::ToDoubleSeconds(absl::Now() - started_))
        .Bool("converged", !passes_.empty() && passes_.back().converged())
        .Raw("passes", JsonArray(passes));
    if (model.ok()) json.Raw("report", ToJson(model->report(), false));
    std::printf("%s\n", json.str().c_str());
  }

  void ReportRefused(const LearnAnswer& answer) {
    for (const v1::RowError& error : answer.result.errors()) {
      if (++refused_ > kShownComplaints || error.row() >= answer.tags.size()) continue;
      ClearProgress();
      const absl::Status status = ToAbslStatus(error.status());
      std::fprintf(stderr, "perceptronctl: refused: %s: %s (%s)\n",
                   input_->Where(answer.tags[error.row()]).c_str(),
                   std::string(status.message()).c_str(), ErrorReason(status).c_str());
    }
  }

  void DrawProgress(int64_t pass) {
    const absl::Time now = absl::Now();
    if (!terminal_ || now - drawn_ < absl::Milliseconds(100)) return;
    drawn_ = now;
    const LearnTotals totals = stream_->totals();
    const double answered = static_cast<double>(totals.examples + totals.duplicates);
    const std::lock_guard<std::mutex> lock(terminal_mutex_);
    std::fprintf(stderr, "\r\033[Kpass %lld  %llu examples  %.0f/s  %llu mistakes",
                 static_cast<long long>(pass), static_cast<unsigned long long>(totals.examples),
                 answered / absl::ToDoubleSeconds(now - started_),
                 static_cast<unsigned long long>(totals.mistakes));
    shown_ = true;
  }

  void ClearProgress() {
    const std::lock_guard<std::mutex> lock(terminal_mutex_);
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

  const Globals& globals_;
  const CLI::App& command_;
  const Options& options_;
  std::unique_ptr<Input> input_;
  std::unique_ptr<ProducerLease> lease_;
  absl::Time started_;
  std::vector<v1::PassSummary> passes_;
  uint64_t rows_ = 0;
  // The server is away.
  std::atomic<bool> reconnecting_{false};
  uint64_t bad_lines_ = 0;
  // Written on the stream's thread.
  std::atomic<uint64_t> refused_ = 0;

  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  absl::Time drawn_;
  std::mutex terminal_mutex_;
  bool shown_ = false;
  // Last: its thread calls back into all of the above.
  std::unique_ptr<LearnStream> stream_;
};

}  // namespace

void AddLearn(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app->add_subcommand("learn", "Teach a model from files, exactly once");
  command->add_option("NAME", options->name, "spam, or models/spam")->required();
  command
      ->add_option("FILE", options->input.files,
                   "Files to learn in this order; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  command->add_option("--passes", options->passes, "How often to go over the files")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000'000}))
      ->capture_default_str();
  command->add_flag("--until-converged", options->until_converged,
                    "Stop after the first pass that changes nothing; --passes is then the most "
                    "passes (default 1000)");
  command->add_option("--batch", options->batch, "Examples in a message")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--window", options->window, "Messages that may be unanswered")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command->add_option("--producer", options->producer,
                      "Number the examples in this producer's name, to be able to run again after "
                      "a crash (default: one of this machine's own)");
  command
      ->add_option("--start-offset", options->start_offset,
                   "With --producer: the number of the first example. 0 runs a file again from its "
                   "start: what was learned already is skipped (default: append)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--producer");
  command
      ->add_option("--passes-before", options->passes_before,
                   "With --start-offset: passes marked before that example (default 0 with "
                   "--start-offset 0)")
      ->check(CLI::NonNegativeNumber)
      ->needs("--start-offset");
  command->footer(
      "Examples:\n"
      "  perceptronctl learn iris iris.train --format svmlight --index-base 1 --passes 3\n"
      "  perceptronctl learn spam sms.tsv --skip-lines 1 --until-converged\n"
      "  zcat log.vw.gz | perceptronctl learn clicks - --format vw --producer web1 --start-offset "
      "0\n"
      "\n"
      "Formats, one example a line:\n"
      "  svmlight  -1 3:0.5 7:2 # comment\n"
      "  vw        1 |words free win |info length:23      (feature words^free, info^length)\n"
      "  csv       columns but --label-column are features, named by the header\n"
      "  jsonl     {\"named\": {\"names\": [\"free\", \"win\"]}, \"label\": 1}\n"
      "  text      spam<TAB>Free entry! Win ...           (words in lower case, valued by count)\n"
      "Labels are -1, +1, 1, or the model's label names. Ctrl-C ends cleanly with a summary.");
  command->callback([=] { *action = [=] { return Lesson(*globals, *command, *options).Run(); }; });
}

}  // namespace perceptrond::client
