#include "core/words/convergence.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/words/analysis.h"
#include "core/words/figures.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

using Lines = std::vector<std::string>;

// These answer with other weights than those that they learn with.
bool AnswersOtherwise(v1::LearnerKind kind) {
  return kind == v1::LEARNER_KIND_AVERAGED_PERCEPTRON || kind == v1::LEARNER_KIND_POCKET ||
         kind == v1::LEARNER_KIND_VOTED_PERCEPTRON;
}

// What the state means, behind its word.
const char* Meaning(v1::ConvergenceState state, v1::LearnerKind kind) {
  switch (state) {
    case v1::CONVERGENCE_STATE_LEARNING:
      return "";
    case v1::CONVERGENCE_STATE_CONVERGED:
      return AnswersOtherwise(kind)
                 ? ": a whole pass changed nothing, and no update came since; it "
                   "answers with other weights than it learns with, which may "
                   "still err"
                 : ": a whole pass changed nothing, and no update came since";
    case v1::CONVERGENCE_STATE_REFUTED:
      return ": no separator has the margin of interest";
    case v1::CONVERGENCE_STATE_NOT_SEPARABLE:
      return ", proven: no separator exists, whatever its margin";
    case v1::CONVERGENCE_STATE_DRIFTING:
      return ": the error has risen within the last 1000 examples";
    default:
      return "";
  }
}

void State(const v1::Model& model, Lines& lines) {
  const v1::ConvergenceState state = model.report().state();
  const std::string word = ConvergenceWord(state);
  if (!word.empty()) lines.push_back(absl::StrCat(word, Meaning(state, model.learner().kind())));
}

void Counts(const v1::ConvergenceReport& report, Lines& lines) {
  lines.push_back(absl::StrCat(report.examples(), " examples seen, ", report.mistakes(),
                               " mistakes, ", DescribeUpdates(report.updates(), report.mistakes()),
                               "; ", report.streak(), " right in a row"));
  // Protobuf's maps have no order of their own.
  for (const auto& [reason, count] :
       std::map<std::string, uint64_t>(report.rejected().begin(), report.rejected().end())) {
    lines.push_back(absl::StrCat("refused: ", count, " ", reason));
  }
  if (report.duplicates() > 0) {
    lines.push_back(absl::StrCat("sent again and not learned again: ", report.duplicates()));
  }
}

void Errors(const v1::ConvergenceReport& report, Lines& lines) {
  if (report.has_progressive_error()) {
    lines.push_back(absl::StrCat("error so far ", Percent(report.progressive_error())));
    if (report.has_window_error()) {
      absl::StrAppend(&lines.back(), ", over the last ", report.window_examples(), " examples ",
                      Percent(report.window_error()));
    }
  }
  if (report.has_mean_loss()) {
    lines.push_back(absl::StrFormat("mean loss %g an example", report.mean_loss()));
  }
  if (report.has_window_risk()) {
    lines.push_back(absl::StrFormat("perceptron risk over the last %d examples %g an example",
                                    report.window_examples(), report.window_risk()));
  }
  if (report.has_error_ceiling()) {
    lines.push_back(absl::StrCat("with 95 % confidence errs on at most ",
                                 Percent(report.error_ceiling()), " of examples like the latest"));
  }
}

void Drift(const v1::DriftReport& drift, Lines& lines) {
  if (drift.detected() == 0) return;
  lines.push_back(
      absl::StrCat("drift found ", drift.detected(), drift.detected() == 1 ? " time" : " times",
                   ", last at example ", drift.last_example(), ": the error rose from ",
                   Percent(drift.error_before()), " to ", Percent(drift.error_after())));
}

void Margins(const v1::Model& model, Lines& lines) {
  const v1::ConvergenceReport& report = model.report();
  if (report.has_margin_ceiling()) {
    lines.push_back(absl::StrFormat("no separator of the data seen has a margin above %g",
                                    report.margin_ceiling()));
  }
  if (report.has_bound_in_use()) {
    lines.push_back(absl::StrCat(Percent(report.bound_in_use()),
                                 " of the convergence theorem's room is in use"));
  }
  if (report.has_margin_floor()) {
    const bool analyzed =
        report.analysis().current() && report.margin_floor() == report.analysis().margin_lower();
    lines.push_back(absl::StrFormat(
        "%s margin %g",
        analyzed ? "some weights are right on all data seen, with" : "the last right pass had",
        report.margin_floor()));
  }
  if (report.has_update_bound()) {
    lines.push_back(absl::StrFormat("so no run over that data needs more than %.0f updates",
                                    report.update_bound()));
  }
  if (report.has_updates_left()) {
    lines.push_back(absl::StrCat("at most ", report.updates_left(),
                                 " more updates until it has converged on the data seen"));
  }
  if (report.has_margin_refuted()) {
    lines.push_back(
        absl::StrFormat("separable with margin %g: %s", model.margin_of_interest(),
                        report.margin_refuted() ? "proven not to be" : "not refuted so far"));
  }
}

}  // namespace

std::string ConvergenceWord(v1::ConvergenceState state) {
  switch (state) {
    case v1::CONVERGENCE_STATE_LEARNING:
      return "learning";
    case v1::CONVERGENCE_STATE_CONVERGED:
      return "converged";
    case v1::CONVERGENCE_STATE_REFUTED:
      return "refuted";
    case v1::CONVERGENCE_STATE_NOT_SEPARABLE:
      return "not separable";
    case v1::CONVERGENCE_STATE_DRIFTING:
      return "drifting";
    default:
      return "";
  }
}

std::string DescribeUpdates(uint64_t updates, uint64_t mistakes) {
  std::string text = absl::StrCat(updates, " updates");
  if (updates > mistakes) {
    absl::StrAppend(&text, " (", updates - mistakes, " of them without a mistake)");
  }
  return text;
}

std::string DescribePass(const v1::PassSummary& pass, v1::LearnerKind kind) {
  const double examples = static_cast<double>(pass.examples());
  std::string text = absl::StrFormat("pass %d: %d examples, %d mistakes", pass.number(),
                                     pass.examples(), pass.mistakes());
  if (pass.examples() > 0) {
    absl::StrAppend(&text, " (", Percent(static_cast<double>(pass.mistakes()) / examples), ")");
  }
  absl::StrAppend(&text, ", ", DescribeUpdates(pass.updates(), pass.mistakes()));
  if (pass.rejected() > 0) absl::StrAppendFormat(&text, ", %d refused", pass.rejected());
  // Nothing is wrong where there is none.
  if (pass.risk() > 0 && pass.examples() > 0)
    absl::StrAppendFormat(&text, ", risk %g an example", pass.risk() / examples);
  if (!pass.converged()) return text;
  const bool otherwise = AnswersOtherwise(kind);
  absl::StrAppend(
      &text, ", converged: ",
      otherwise ? "the weights it learns with have every example right" : "every example is right");
  if (pass.has_margin()) absl::StrAppendFormat(&text, " with margin %g", pass.margin());
  if (otherwise) absl::StrAppend(&text, "; its answers may still err");
  return text;
}

std::vector<std::string> ReportInWords(const v1::Model& model) {
  const v1::ConvergenceReport& report = model.report();
  Lines lines;
  State(model, lines);
  Counts(report, lines);
  Errors(report, lines);
  Drift(report.drift(), lines);
  Margins(model, lines);
  if (report.has_analysis()) {
    lines.push_back(DescribeAnalysis(report.analysis(), model.feature_space().has_composition()));
  }
  if (report.has_last_pass()) {
    const bool over =
        report.last_pass().converged() && report.state() == v1::CONVERGENCE_STATE_LEARNING;
    lines.push_back(absl::StrCat(DescribePass(report.last_pass(), model.learner().kind()),
                                 over ? "; it is learning again" : ""));
  }
  return lines;
}

}  // namespace perceptrond
