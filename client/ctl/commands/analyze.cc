#include "client/ctl/commands/analyze.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"

namespace perceptrond::client {

Outcome RunAnalysis(const Client& client, const v1::AnalyzeRequest& request,
                    v1::AnalysisResult* result) {
  const std::string doing = absl::StrCat("analyze ", request.model());
  grpc::ClientContext context;
  absl::StatusOr<v1::AnalysisResult> analyzed;
  {
    const InterruptWatch watch([&context] {
      context.TryCancel();
      return false;
    });
    analyzed = client.Analyze(
        request,
        [](const v1::AnalysisProgress& progress) {
          if (const std::optional<size_t> columns = ProgressColumns(); columns.has_value())
            ShowProgress(ProgressLine(MakeProgress(progress), *columns));
          return !Interrupted();
        },
        &context);
  }
  WipeProgress();
  // A result that arrived before the cancellation stands.
  if (Interrupted() && absl::IsCancelled(analyzed.status())) {
    return {kExitInterrupted,
            absl::StrCat(doing, ": interrupted; the analysis was cancelled",
                         request.replace_weights()
                             ? "; check with 'perceptronctl get' whether the revision changed, "
                               "else the weights were not replaced"
                             : "")};
  }
  if (!analyzed.ok()) return Failed(doing, analyzed.status());
  *result = *std::move(analyzed);
  return {};
}

namespace {

namespace v1 = ::perceptron::v1;

const char* StageText(v1::AnalysisStage stage) {
  switch (stage) {
    case v1::ANALYSIS_STAGE_WAITING:
      return "waiting for another analysis";
    case v1::ANALYSIS_STAGE_READING:
      return "reading";
    case v1::ANALYSIS_STAGE_SEARCHING:
      return "searching for support vectors";
    case v1::ANALYSIS_STAGE_REFINING:
      return "tightening the bounds";
    case v1::ANALYSIS_STAGE_CERTIFYING:
      return "searching for a proof";
    default:
      return "analyzing";
  }
}

double Seconds(const google::protobuf::Duration& duration) {
  return static_cast<double>(duration.seconds()) + 1e-9 * duration.nanos();
}

void Bound(const v1::AnalysisResult& result, uint64_t updates, std::string* out) {
  if (!result.has_update_bound() || result.support_vectors().empty()) return;
  // Several classes: an update moves two weight vectors, each by up to R.
  absl::StrAppendFormat(
      out,
      "  updates: at most %s(R/margin)^2 = %.4f for any perceptron on these examples that "
      "starts from zero, with weight 1 for every example\n",
      result.support_vectors(0).has_rival() ? "2 " : "", result.update_bound());
  if (!result.analysis().complete() || result.has_new_revision()) return;
  absl::StrAppendFormat(
      out, "  the model made %s, %s\n", Counted(updates, "updates"),
      static_cast<double>(updates) <= result.update_bound()
          ? "which is within the bound"
          : "more than the bound, which does not apply to its rule, starting weights or "
            "example weights");
}

}  // namespace

std::string DescribeResult(const v1::AnalysisResult& result, uint64_t updates) {
  std::string text = absl::StrCat("analysis: ", FormatFigures(result.analysis()), "\n");
  absl::StrAppendFormat(&text, "  ended after %.2f s: %s\n", Seconds(result.run_duration()),
                        PrintableInLine(result.end_reason()));
  Bound(result, updates, &text);
  if (result.support_vectors_size() > 0) {
    absl::StrAppend(&text, "  ",
                    result.support_vectors_size() == 1
                        ? "1 support vector"
                        : absl::StrCat(Grouped(result.support_vectors_size()), " support vectors"),
                    "\n");
  }
  if (result.certificate_size() > 0) {
    absl::StrAppend(&text, "  the combination has ", Counted(result.certificate_size(), "examples"),
                    ", each with a positive whole multiplier\n");
  }
  if (result.has_separator_margin()) {
    int weights = 0;
    for (const v1::WeightVector& vector : result.separator().vectors())
      weights += vector.values_size();
    absl::StrAppendFormat(&text, "  separator in float32: %d weights, margin %.9g\n", weights,
                          result.separator_margin());
  }
  if (result.has_new_revision()) {
    absl::StrAppend(&text, "  weights replaced: the separator is revision ", result.new_revision(),
                    "\n");
  }
  return text;
}

Progress MakeProgress(const v1::AnalysisProgress& progress) {
  Progress shown;
  shown.figures.push_back(StageText(progress.stage()));
  if (progress.queue_position() > 0)
    shown.figures.push_back(absl::StrCat(progress.queue_position(), " analyses ahead"));
  if (progress.examples() > 0) shown.figures.push_back(Counted(progress.examples(), "examples"));
  if (progress.working_examples() > 0)
    shown.figures.push_back(
        absl::StrCat(Grouped(progress.working_examples()), " in the working set"));
  if (progress.has_margin_lower() || progress.has_margin_upper()) {
    shown.figures.push_back(absl::StrFormat(
        "margin %s to %s",
        progress.has_margin_lower() ? absl::StrFormat("%.6g", progress.margin_lower()) : "?",
        progress.has_margin_upper() ? absl::StrFormat("%.6g", progress.margin_upper()) : "?"));
  }
  return shown;
}

namespace {

struct AnalyzeOptions {
  std::string name;
  bool replace_weights = false;
  int64_t expected_revision = 0;
  double gap = 1e-6;
  uint32_t max_rounds = 1000;
  uint32_t max_support_vectors = 4000;
  uint32_t max_certificate_examples = 500;
  // Seconds; 0: as long as the server allows.
  double time_limit = 0;
};

void AddLimits(CLI::App* command, AnalyzeOptions* options) {
  const auto add = [&](const char* flag, auto& value, const CLI::Validator& range,
                       const char* help) {
    command->add_option(flag, value, help)->check(range)->capture_default_str();
  };
  add("--gap", options->gap, Between(1e-12, 0.999),
      "Stop when the bounds of the margin are this close, relative to the upper one");
  add("--max-rounds", options->max_rounds, CLI::Range(1U, 1'000'000U),
      "Most scans of all examples");
  add("--max-support-vectors", options->max_support_vectors, CLI::Range(1U, 20'000U),
      "Most examples that the bounds are refined with; if more are needed they may not meet. "
      "Memory grows with the square: 4000 take 64 MB");
  add("--max-certificate-examples", options->max_certificate_examples, CLI::Range(1U, 2'000U),
      "Most examples in a proof of inseparability; if more are needed the result is undecided. "
      "Time grows at least with the cube: 500 take seconds");
  add("--time-limit", options->time_limit, Between(1e-3, 1e7),
      "Stop after this many seconds with what is proven by then; without it, after the server's "
      "--max-analysis-time");
}

void SetLimits(const AnalyzeOptions& options, v1::AnalyzeRequest* request) {
  request->set_relative_gap(options.gap);
  request->set_max_rounds(options.max_rounds);
  request->set_max_support_vectors(options.max_support_vectors);
  request->set_max_certificate_examples(options.max_certificate_examples);
  if (options.time_limit <= 0) return;
  const auto seconds = static_cast<int64_t>(options.time_limit);
  request->mutable_time_limit()->set_seconds(seconds);
  request->mutable_time_limit()->set_nanos(
      static_cast<int32_t>((options.time_limit - static_cast<double>(seconds)) * 1e9));
}

int Run(const Globals& globals, const CLI::App& command, const AnalyzeOptions& options) {
  v1::AnalyzeRequest request;
  request.set_model(options.name);
  request.set_replace_weights(options.replace_weights);
  if (command.count("--if-revision") > 0) request.set_expected_revision(options.expected_revision);
  SetLimits(options, &request);
  CatchInterrupts();
  const Client client = globals.Connect();
  v1::AnalysisResult result;
  if (const Outcome outcome = RunAnalysis(client, request, &result); !outcome.ok())
    return outcome.Report();
  if (globals.json()) {
    Print(ToJson(result, true) + "\n");
    return kExitOk;
  }
  const absl::StatusOr<v1::Model> model = client.GetModel(options.name);
  if (!model.ok()) return PrintError(absl::StrCat("analyze ", options.name), model.status());
  Print(DescribeResult(result, model->report().updates()));
  return kExitOk;
}

}  // namespace

void AddAnalyze(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<AnalyzeOptions>();
  CLI::App* command = app->add_subcommand(
      "analyze",
      "Find the best margin of a model's stored examples, or prove that they are not separable");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  auto* replace = command->add_flag("--replace-weights", options->replace_weights,
                                    "Replace the model's weights by the best separator, as a new "
                                    "revision");
  command
      ->add_option("--if-revision", options->expected_revision,
                   "With --replace-weights: only if the model is still at this revision")
      ->check(WholeNumber())
      ->needs(replace);
  AddLimits(command, options.get());
  command->footer(
      R"(Analyzes the examples that the model stores: those that caused updates, and the sample
of 'create --store-sample'. If the sample holds all the model has seen, the result holds for all
its data. With several classes the margin is that of Kesler's construction. Ctrl-C cancels the
analysis.

Examples:
  perceptronctl analyze spam
  perceptronctl analyze spam --replace-weights -o json)");
  command->callback([=] { *action = [=] { return Run(*globals, *command, *options); }; });
}

}  // namespace perceptrond::client
