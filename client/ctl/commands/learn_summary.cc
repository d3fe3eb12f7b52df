#include "client/ctl/commands/learn_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/commands/analyze.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "core/report/format.h"

namespace perceptrond::client {

const char kLearnFooter[] =
    R"(Prints a line per pass and a summary: examples, mistakes, updates, and the convergence
report.

Examples:
  perceptronctl learn iris iris.train --format svmlight --index-base 1 --passes 3
  perceptronctl learn spam sms.tsv --skip-lines 1 --until-converged
  perceptronctl learn spam sms.tsv --passes 10 --shuffle 1
  perceptronctl learn clicks log.vw.gz --producer web1 --start-offset 0
  perceptronctl learn arow sms.tsv --also pa --also perceptron

Formats, one example per line, which ends with LF, CR LF or CR; each file has its own:
  svmlight  -1 3:0.5 7:2 # comment
  vw        1 |words free win |info length:23      (features words^free, info^length)
  csv       all columns but --label-column and --ignore-column are features, named by the header:
            price with its numbers, colour=red of words
  jsonl     {"named": {"names": ["free", "win"]}, "label": "spam"}, or {"price": 2, "label": "spam"}
  text      spam<TAB>Free entry! Win ...           (for models created with --text)
  ids       0.2.64f0c1a2b3.9c1f,spam               (the label of a prediction of 'predict --ids')
Labels are -1 and 1, 0 and 1, or the label names of the model. Equal numbers are one name: 2.0 is 2.
A csv column has numbers or words, as the file's first row with a value there; a field without a
value is empty, and NA, N/A, NaN, null, None or ? is an error unless the column has words. For a
dense model the columns are the dimensions in order, with --no-header (--skip-lines 1 leaves out a
header). In text without required labels, as for predict, a line without a tab, or with an unknown
label before its first tab, is all text; if the model adds classes by name, the text before the
first tab is a label.

With -o json the summary is one object: model, producer, converged, seconds; the counts rows,
examples, mistakes, updates, duplicates, rowErrors, lostAnswers, badLines, revision and
acknowledgedThrough (as strings, like all 64-bit numbers in protobuf's JSON); passes (each a
perceptron.v1.PassSummary; of those that an earlier run learned only the last), report
(perceptron.v1.ConvergenceReport), and with --analyze analysis (perceptron.v1.AnalysisResult).
With --also it is {"models": [...]} with one of these for each model.

An example beyond a model's dimension or slots ends the run with exit code 2; those before it are
learned. Ctrl-C ends the run cleanly with a summary. If the server does not answer for --timeout
seconds (default 60), reconnecting included, learn gives up with exit code 4.)";

namespace {

// Of passes that an earlier run completed the server returns the latest alone.
bool IsKnown(const perceptron::v1::PassSummary& pass) {
  return pass.examples() > 0 || pass.row_errors() > 0;
}

}  // namespace

std::string DescribePass(const perceptron::v1::PassSummary& pass) {
  if (!IsKnown(pass)) return absl::StrCat("pass ", pass.number(), ": learned by an earlier run");
  const bool partly = pass.converged() && pass.row_errors() > 0;
  return absl::StrCat(FormatFigures(pass), partly ? "; rows with errors are left out" : "");
}

std::string LearnSummary::Text() const {
  std::string text = absl::StrFormat(
      "%s: %s in %.1f s (%s), %s, %s", PrintableInLine(model), Counted(totals.examples, "examples"),
      absl::ToDoubleSeconds(elapsed), Rate(totals.examples, elapsed),
      Counted(totals.mistakes, "mistakes"), DescribeUpdates(totals.updates, totals.mistakes));
  if (totals.duplicates > 0) absl::StrAppend(&text, ", ", Counted(totals.duplicates, "duplicates"));
  if (totals.lost_answers > 0) {
    absl::StrAppend(&text, ", ", Counted(totals.lost_answers, "examples whose answers were lost"));
  }
  absl::StrAppend(&text, "; revision ", totals.revision, "\n");
  if (!now.has_value()) return text;
  perceptron::v1::ConvergenceReport report = now->report();
  // The run has printed its passes, and the analysis has more to say below.
  if (!passes.empty()) report.clear_last_pass();
  if (analysis.has_value()) report.clear_analysis();
  absl::StrAppend(&text, DescribeReport(report));
  if (analysis.has_value()) absl::StrAppend(&text, DescribeResult(*analysis, report.updates()));
  return text;
}

std::string LearnSummary::Json() const {
  std::vector<std::string> marked;
  for (const perceptron::v1::PassSummary& pass : passes) {
    if (IsKnown(pass)) marked.push_back(ToJson(pass, false));
  }
  JsonObject json;
  json.Text("model", model)
      .Integer("rows", static_cast<int64_t>(rows))
      .Integer("examples", static_cast<int64_t>(totals.examples))
      .Integer("mistakes", static_cast<int64_t>(totals.mistakes))
      .Integer("updates", static_cast<int64_t>(totals.updates))
      .Integer("duplicates", static_cast<int64_t>(totals.duplicates))
      .Integer("rowErrors", static_cast<int64_t>(totals.row_errors))
      .Integer("lostAnswers", static_cast<int64_t>(totals.lost_answers))
      .Integer("badLines", static_cast<int64_t>(bad_lines))
      .Integer("revision", totals.revision)
      .Text("producer", producer)
      .Integer("acknowledgedThrough", totals.acknowledged_offset)
      .Number("seconds", absl::ToDoubleSeconds(elapsed))
      .Bool("converged", converged())
      .Raw("passes", JsonArray(marked));
  if (now.has_value()) json.Raw("report", ToJson(now->report(), false));
  if (analysis.has_value()) json.Raw("analysis", ToJson(*analysis, false));
  return json.str();
}

namespace {

void SetFraction(const LearnPosition& position, Progress* progress) {
  const std::string pass = absl::StrCat("pass ", position.pass);
  if (!position.passes.has_value()) {
    progress->fraction = position.read;
    if (position.read.has_value()) progress->of = absl::StrCat("of ", pass);
    if (!position.read.has_value()) progress->figures.push_back(pass);
    return;
  }
  if (position.read.has_value()) {
    const double done = static_cast<double>(position.pass - 1) + *position.read;
    progress->fraction = done / static_cast<double>(*position.passes);
  }
  if (*position.passes > 1) progress->figures.push_back(absl::StrCat(pass, "/", *position.passes));
}

void AddState(const perceptron::v1::ConvergenceReport& report, Progress* progress) {
  const std::string state = StateName(report.state());
  if (!state.empty()) progress->figures.push_back(state);
  if (report.has_updates_left())
    progress->figures.push_back(absl::StrCat("at most ", Grouped(report.updates_left()), " more ",
                                             report.updates_left() == 1 ? "update" : "updates"));
}

}  // namespace

Progress LearnProgress(const LearnPosition& position, const LearnTotals& totals,
                       absl::Duration elapsed,
                       const std::optional<perceptron::v1::ConvergenceReport>& report) {
  Progress progress;
  SetFraction(position, &progress);
  progress.figures.push_back(Counted(totals.examples, "examples"));
  progress.figures.push_back(Counted(totals.mistakes, "mistakes"));
  progress.figures.push_back(Rate(totals.examples + totals.duplicates, elapsed));
  if (totals.duplicates > 0) {
    progress.figures.push_back(Counted(totals.duplicates, "duplicates"));
  }
  if (report.has_value()) AddState(*report, &progress);
  return progress;
}

}  // namespace perceptrond::client
