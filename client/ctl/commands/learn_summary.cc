#include "client/ctl/commands/learn_summary.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/commands/analyze.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"

namespace perceptrond::client {

std::string LearnSummary::Text() const {
  std::string text = absl::StrFormat(
      "%s: %s examples in %.1f s (%s), %s mistakes, %s", PrintableInLine(model),
      Grouped(totals.examples), absl::ToDoubleSeconds(elapsed), Rate(totals.examples, elapsed),
      Grouped(totals.mistakes), DescribeUpdates(totals.updates, totals.mistakes));
  if (totals.duplicates > 0) absl::StrAppend(&text, ", ", totals.duplicates, " duplicates");
  if (totals.lost_answers > 0) {
    absl::StrAppend(&text, ", ", totals.lost_answers, " examples whose answers were lost");
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
  for (const perceptron::v1::PassSummary& pass : passes) marked.push_back(ToJson(pass, false));
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
    progress->figures.push_back(
        absl::StrCat("at most ", Grouped(report.updates_left()), " more updates"));
}

}  // namespace

Progress LearnProgress(const LearnPosition& position, const LearnTotals& totals,
                       absl::Duration elapsed,
                       const std::optional<perceptron::v1::ConvergenceReport>& report) {
  Progress progress;
  SetFraction(position, &progress);
  progress.figures.push_back(absl::StrCat(Grouped(totals.examples), " examples"));
  progress.figures.push_back(absl::StrCat(Grouped(totals.mistakes), " mistakes"));
  progress.figures.push_back(Rate(totals.examples + totals.duplicates, elapsed));
  if (totals.duplicates > 0) {
    progress.figures.push_back(absl::StrCat(Grouped(totals.duplicates), " duplicates"));
  }
  if (report.has_value()) AddState(*report, &progress);
  return progress;
}

}  // namespace perceptrond::client
