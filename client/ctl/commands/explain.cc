// `perceptronctl explain`: the contributions of features and of support examples to scores.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/batch_builder.h"
#include "client/ctl/command.h"
#include "client/ctl/input.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/terminal.h"
#include "client/error.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {
namespace {

struct ExplainRunOptions {
  std::string name;
  InputOptions input;
  int32_t top = 20;
  std::string label;
};

// Threads: one.
class ExplainRun {
 public:
  // Both must outlive the run.
  ExplainRun(const Globals& globals, const ExplainRunOptions& options)
      : globals_(globals), options_(options), client_(globals.Connect()) {}

  // Returns the exit code.
  int Run();

 private:
  std::string ErrorPrefix() const;
  Outcome Open();
  Outcome ReadLabel(const perceptron::v1::Model& model);
  Outcome ExplainAll();
  // A row with a validation error is counted and does not end the run.
  Outcome ExplainRow(const Row& row);
  void Show(const perceptron::v1::ExplainResponse& response) const;

  const Globals& globals_;
  const ExplainRunOptions& options_;
  const Client client_;
  std::unique_ptr<Input> input_;
  std::vector<std::string> label_names_;
  bool multiclass_ = false;
  // The class whose score is explained; absent: the predicted one.
  std::optional<int32_t> label_;
  RowErrors row_errors_{options_.input.skip_bad_lines};
};

// A heading and a line for each contribution, with bars of '+' or '-' in proportion to their size.
using LabelText = absl::FunctionRef<std::string(int32_t label)>;

// `where` names the example, `label_text` names a label.
std::string DescribeExplanation(const std::string& where,
                                const perceptron::v1::Explanation& explanation, int64_t revision,
                                const LabelText& label_text);

namespace v1 = ::perceptron::v1;

constexpr char kExplainFooter[] =
    R"(A score is the bias plus the sum of value times weight over the features. Prints these
terms for each example, the largest first, with bars: + supports the label +1, - the label -1. With
a feature map the features are those of the map, such as "x1*x2". If the weights are a sum of
support examples, their contributions follow; a kernel perceptron has only these. For several
classes the explained score is that of the predicted class, or of --label; a support example counts
for its own class and against one other. Voted models have no such sums (error NOT_LINEAR). With
-o json each line is a perceptron.v1.ExplainResponse for one example. 'perceptronctl learn --help'
describes the formats.

Examples:
  echo 'Win a prize now' | perceptronctl explain spam - --format text
  perceptronctl explain iris iris.test --format svmlight --index-base 1 --top 2 -o json)";

constexpr double kBarColumns = 20;

std::string Bar(double contribution, double largest) {
  if (contribution == 0 || !(largest > 0)) return "";
  const double columns = std::round(kBarColumns * std::abs(contribution) / largest);
  // Non-zero contributions have a bar of at least one character.
  return std::string(static_cast<size_t>(std::max(1.0, columns)), contribution > 0 ? '+' : '-');
}

double Largest(const v1::Explanation& explanation) {
  double largest =
      std::max(std::abs(explanation.bias()), std::abs(explanation.other_contributions()));
  for (const v1::FeatureContribution& one : explanation.contributions())
    largest = std::max(largest, std::abs(one.contribution()));
  return largest;
}

std::string Line(double contribution, double largest, const std::string& value,
                 const std::string& weight, const std::string& feature) {
  return absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", absl::StrFormat("%+.6g", contribution),
                         Bar(contribution, largest), value, weight, feature);
}

double LargestSupport(const v1::Explanation& explanation) {
  double largest =
      std::max(std::abs(explanation.other_supports()), std::abs(explanation.start_contribution()));
  for (const v1::SupportContribution& one : explanation.supports())
    largest = std::max(largest, std::abs(one.contribution()));
  return largest;
}

std::string DescribeStart(const v1::Explanation& explanation, double largest) {
  if (!explanation.has_start_contribution()) return "";
  return Line(explanation.start_contribution(), largest, "", "",
              explanation.start_revision() == 0 ? std::string("(the starting weights)")
                                                : absl::StrCat("(the weights set at revision ",
                                                               explanation.start_revision(), ")"));
}

// The part of the score that no stored example explains.
std::string DescribeMissing(const v1::Explanation& explanation, double largest, double sum) {
  if (explanation.supports_complete()) return "";
  const bool replaced = explanation.start_revision() > 0;
  return Line(explanation.score() - sum, largest, "", "",
              absl::StrCat("(", replaced ? "replaced weights and " : "",
                           "examples no longer stored: see create --store-updates)"));
}

std::string DescribeSupports(const v1::Explanation& explanation, const LabelText& label_text) {
  if (!explanation.supports_absent().empty())
    return absl::StrCat("  (no contributions of support examples: ", explanation.supports_absent(),
                        ")\n");
  if (explanation.supports().empty() && explanation.supports_complete() &&
      !explanation.has_start_contribution())
    return "";
  const double largest = LargestSupport(explanation);
  std::string text = absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", "contribution", "", "label",
                                     "kernel", "support example");
  double sum = explanation.other_supports() + explanation.start_contribution();
  for (const v1::SupportContribution& one : explanation.supports()) {
    sum += one.contribution();
    text += Line(one.contribution(), largest, PrintableInLine(label_text(one.label())),
                 absl::StrFormat("%.6g", one.kernel()), absl::StrCat("revision ", one.revision()));
  }
  if (explanation.other_supports_count() > 0) {
    text += Line(explanation.other_supports(), largest, "", "",
                 absl::StrCat("(", explanation.other_supports_count(), " more: see --top)"));
  }
  text += DescribeStart(explanation, largest);
  return text + DescribeMissing(explanation, largest, sum);
}

std::string DescribeFeatures(const v1::Explanation& explanation) {
  if (!explanation.contributions_absent().empty())
    return absl::StrCat("  (no contributions of features: ", explanation.contributions_absent(),
                        ")\n");
  const double largest = Largest(explanation);
  std::string text = absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", "contribution", "",
                                     "= value", "x weight", "feature");
  for (const v1::FeatureContribution& one : explanation.contributions()) {
    const std::string name = one.name().empty() ? absl::StrCat(one.index()) : one.name();
    text += Line(one.contribution(), largest, Shortest(one.value()),
                 absl::StrFormat("%.6g", one.weight()), PrintableInLine(name));
  }
  if (explanation.other_features() > 0) {
    text += Line(explanation.other_contributions(), largest, "", "",
                 absl::StrCat("(", explanation.other_features(), " more: see --top)"));
  }
  return text + Line(explanation.bias(), largest, "", "", "(bias)");
}

std::string DescribeExplanation(const std::string& where, const v1::Explanation& explanation,
                                int64_t revision, const LabelText& label_text) {
  return absl::StrCat(absl::StrFormat("%s: %s, score %g at revision %d\n", PrintableInLine(where),
                                      PrintableInLine(label_text(explanation.label())),
                                      explanation.score(), revision),
                      DescribeFeatures(explanation), DescribeSupports(explanation, label_text));
}

int ExplainRun::Run() {
  Outcome outcome = Open();
  if (outcome.ok()) outcome = ExplainAll();
  row_errors_.PrintCounts();
  if (outcome.ok() && row_errors_.validation_errors() > 0) outcome.code = kExitRowErrors;
  return outcome.Report();
}

std::string ExplainRun::ErrorPrefix() const { return absl::StrCat("explain ", options_.name); }

Outcome ExplainRun::Open() {
  const absl::StatusOr<v1::Model> model = client_.GetModel(options_.name);
  if (!model.ok()) return Failed(ErrorPrefix(), model.status());
  label_names_.assign(model->label_names().begin(), model->label_names().end());
  multiclass_ = model->learner().has_classes();
  if (Outcome outcome = ReadLabel(*model); !outcome.ok()) return outcome;
  absl::StatusOr<std::unique_ptr<Input>> input =
      Input::Make(options_.input, *model, false, false, &client_);
  if (!input.ok()) {
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(input.status().message())));
  }
  input_ = *std::move(input);
  CatchInterrupts();
  return {};
}

Outcome ExplainRun::ExplainAll() {
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = input_->Next(&row);
    if (more.ok() && !*more) break;
    Outcome outcome = more.ok() ? ExplainRow(row) : row_errors_.AddBadLine(more.status());
    if (!outcome.ok()) return outcome;
  }
  if (Interrupted()) return {kExitInterrupted, absl::StrCat(ErrorPrefix(), ": interrupted")};
  return {};
}

Outcome ExplainRun::ReadLabel(const v1::Model& model) {
  if (options_.label.empty()) return {};
  if (!multiclass_)
    return UsageError(absl::StrCat(ErrorPrefix(),
                                   ": --label chooses a class, and the model has "
                                   "two labels with one score"));
  const absl::StatusOr<int32_t> number = FindClass(options_.label, model);
  if (!number.ok())
    return UsageError(absl::StrCat(ErrorPrefix(), ": ", std::string(number.status().message())));
  label_ = *number;
  return {};
}

Outcome ExplainRun::ExplainRow(const Row& row) {
  BatchBuilder batch;
  if (absl::Status status = batch.Add(row); !status.ok())
    return row_errors_.AddBadLine(input_->AtLine(status));
  v1::ExampleColumns columns;
  batch.Build(&columns);
  const absl::StatusOr<v1::ExplainResponse> response =
      client_.Explain(options_.name, std::move(columns), options_.top, label_);
  const std::string reason = ErrorReason(response.status());
  if (absl::IsInvalidArgument(response.status()) || reason == "TOO_MANY_FEATURES" ||
      reason == "ROW_TOO_COSTLY" || reason == "MESSAGE_TOO_COSTLY") {
    row_errors_.AddValidationError(*input_, input_->tag(), response.status());
    return {};
  }
  if (!response.ok()) return Failed(ErrorPrefix(), response.status());
  Show(*response);
  return {};
}

void ExplainRun::Show(const v1::ExplainResponse& response) const {
  Print(globals_.json()
            ? ToJson(response, false) + "\n"
            : DescribeExplanation(input_->Where(input_->tag()), response.explanations(0),
                                  response.revision(), [this](int32_t label) {
                                    return multiclass_ ? ClassName(label, label_names_)
                                                       : LabelName(label, label_names_);
                                  }));
  // Interactive users need each answer at once. After a failed write the rest is not requested.
  if (FlushOutput() != 0) input_->Stop();
}

}  // namespace

void AddExplain(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<ExplainRunOptions>();
  CLI::App* command = app->add_subcommand(
      "explain", "Show the contributions of features to the scores of examples");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  command->add_option("FILE", options->input.files, "Files of examples; - is standard input")
      ->required();
  AddInputOptions(command, &options->input);
  command->add_option("--top", options->top, "Most contributions listed per example")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command->add_option("--label", options->label,
                      "Class whose score is explained (default: the predicted class)");
  command->footer(kExplainFooter);
  command->callback([=] { *action = [=] { return ExplainRun(*globals, *options).Run(); }; });
}

}  // namespace perceptrond::client
