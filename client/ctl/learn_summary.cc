#include "client/ctl/learn_summary.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/analysis_words.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"
#include "client/ctl/report.h"

namespace perceptrond::client {
namespace {

double PerSecond(uint64_t count, absl::Duration elapsed) {
  const double rate = static_cast<double>(count) / absl::ToDoubleSeconds(elapsed);
  return std::isfinite(rate) ? rate : 0;
}

}  // namespace

std::string LearnSummary::Text() const {
  std::string text = absl::StrFormat(
      "%s: %d examples learned from in %.1f s (%.0f/s), %d mistakes, %s", PrintableInLine(model),
      totals.examples, absl::ToDoubleSeconds(elapsed), PerSecond(totals.examples, elapsed),
      totals.mistakes, DescribeUpdates(totals.updates, totals.mistakes));
  if (totals.duplicates > 0) absl::StrAppend(&text, ", ", totals.duplicates, " known already");
  if (totals.lost_answers > 0) {
    absl::StrAppend(&text, ", ", totals.lost_answers, " more whose answers got lost");
  }
  absl::StrAppend(&text, "; revision ", totals.revision, "\n");
  if (now.has_value()) absl::StrAppend(&text, DescribeReport(now->report()));
  if (now.has_value() && analysis.has_value())
    absl::StrAppend(&text, DescribeResult(*analysis, now->report().updates()));
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
      .Integer("refused", static_cast<int64_t>(totals.refused))
      .Integer("lostAnswers", static_cast<int64_t>(totals.lost_answers))
      .Integer("badLines", static_cast<int64_t>(bad_lines))
      .Integer("revision", totals.revision)
      .Text("producer", producer)
      .Integer("acknowledgedThrough", totals.acknowledged_through)
      .Number("seconds", absl::ToDoubleSeconds(elapsed))
      .Bool("converged", converged())
      .Raw("passes", JsonArray(marked));
  if (now.has_value()) json.Raw("report", ToJson(now->report(), false));
  if (analysis.has_value()) json.Raw("analysis", ToJson(*analysis, false));
  return json.str();
}

}  // namespace perceptrond::client
