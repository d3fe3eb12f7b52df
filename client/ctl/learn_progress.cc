#include "client/ctl/learn_progress.h"

#include "absl/strings/str_cat.h"
#include "core/report/format.h"

namespace perceptrond::client {
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
    progress.figures.push_back(absl::StrCat(Grouped(totals.duplicates), " known already"));
  }
  if (report.has_value()) AddState(*report, &progress);
  return progress;
}

}  // namespace perceptrond::client
