#include "client/ctl/report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

std::string DescribeTie(v1::TieRule rule) {
  switch (rule) {
    case v1::TIE_RULE_POSITIVE:
      return "a score of 0 is predicted as +1";
    case v1::TIE_RULE_CORRECT:
      return "a score of 0 is never a mistake";
    default:
      return "a score of 0 is a mistake";
  }
}

std::string DescribeLearner(const v1::Learner& learner) {
  const double step = learner.has_step_size() ? learner.step_size() : 1;
  const double offset = learner.has_offset_value() ? learner.offset_value() : 1;
  return absl::StrFormat("perceptron, step size %g, %s, %s%s", step,
                         offset == 0 ? "no offset" : absl::StrFormat("offset value %g", offset),
                         DescribeTie(learner.tie_rule()),
                         learner.has_starting_weights() ? ", started from given weights" : "");
}

void Weights(const v1::Weights& weights, std::string* out) {
  absl::StrAppendFormat(out, "weights:      %d non-zero, offset %g\n", weights.values_size(),
                        weights.offset());
  for (int i = 0; i < weights.values_size(); ++i) {
    const std::string feature = i < weights.names_size()     ? weights.names(i)
                                : i < weights.indices_size() ? absl::StrCat(weights.indices(i))
                                                             : "?";
    absl::StrAppendFormat(out, "  %s\t%s\n", feature, Shortest(weights.values(i)));
  }
}

}  // namespace

std::string DescribeSpace(const v1::FeatureSpace& space) {
  if (space.has_dense()) return absl::StrCat("dense, ", space.dense().dimension(), " dimensions");
  if (space.has_hashed()) return absl::StrCat("hashed, 2^", space.hashed().bits(), " slots");
  if (!space.has_named()) return "not stated";
  const uint32_t cap = space.named().max_features();
  return absl::StrCat("named, at most ", cap == 0 ? 1'048'576u : cap, " features");
}

std::string DescribeState(v1::ModelState state) {
  return state == v1::MODEL_STATE_FROZEN ? "frozen (predicts, does not learn)" : "active";
}

std::string DescribePass(const v1::PassSummary& pass) {
  const double examples = static_cast<double>(pass.examples());
  std::string text = absl::StrFormat("pass %d: %d examples, %d mistakes", pass.number(),
                                     pass.examples(), pass.mistakes());
  if (pass.examples() > 0) {
    absl::StrAppend(&text, " (", Percent(static_cast<double>(pass.mistakes()) / examples), ")");
  }
  absl::StrAppendFormat(&text, ", %d updates", pass.updates());
  if (pass.rejected() > 0) absl::StrAppendFormat(&text, ", %d refused", pass.rejected());
  if (pass.converged()) absl::StrAppend(&text, ", converged: every example is right");
  if (pass.has_margin()) absl::StrAppendFormat(&text, " with margin %g", pass.margin());
  return text;
}

std::string DescribeReport(const v1::Model& model) {
  const v1::ConvergenceReport& report = model.report();
  std::string text;
  absl::StrAppendFormat(&text, "  %d examples seen, %d mistakes, %d updates; %d right in a row\n",
                        report.examples(), report.mistakes(), report.updates(), report.streak());
  if (report.has_progressive_error()) {
    absl::StrAppend(&text, "  error so far ", Percent(report.progressive_error()));
    if (report.has_window_error()) {
      absl::StrAppend(&text, ", over the last ", report.window_examples(), " examples ",
                      Percent(report.window_error()));
    }
    absl::StrAppend(&text, "\n");
  }
  for (const auto& [reason, count] : report.rejected()) {
    absl::StrAppend(&text, "  refused: ", count, " ", reason, "\n");
  }
  if (report.duplicates() > 0) {
    absl::StrAppend(&text, "  sent again and not learned again: ", report.duplicates(), "\n");
  }
  if (report.has_margin_ceiling()) {
    absl::StrAppendFormat(&text, "  no separator of the data seen has a margin above %g\n",
                          report.margin_ceiling());
  }
  if (report.has_bound_in_use()) {
    absl::StrAppend(&text, "  ", Percent(report.bound_in_use()),
                    " of the convergence theorem's room is in use\n");
  }
  if (report.has_margin_floor()) {
    absl::StrAppendFormat(&text, "  a whole pass was right, with margin %g\n",
                          report.margin_floor());
  }
  if (report.has_update_bound()) {
    absl::StrAppendFormat(&text, "  so no run over that data needs more than %.0f updates\n",
                          report.update_bound());
  }
  if (report.has_margin_refuted()) {
    absl::StrAppendFormat(&text, "  separable with margin %g: %s\n", model.margin_of_interest(),
                          report.margin_refuted() ? "proven not to be" : "not refuted so far");
  }
  if (report.has_last_pass()) absl::StrAppend(&text, "  ", DescribePass(report.last_pass()), "\n");
  return text;
}

std::string DescribeModel(const v1::Model& model) {
  std::string text = absl::StrCat(model.name(), "\n");
  if (!model.description().empty()) absl::StrAppend(&text, model.description(), "\n");
  absl::StrAppend(&text, "state:        ", DescribeState(model.state()), "\n");
  absl::StrAppend(&text, "features:     ", DescribeSpace(model.feature_space()), "\n");
  absl::StrAppend(&text, "learner:      ", DescribeLearner(model.learner()), "\n");
  if (model.label_names_size() == 2) {
    absl::StrAppend(&text, "labels:       -1 ", model.label_names(0), ", +1 ", model.label_names(1),
                    "\n");
  }
  if (model.margin_of_interest() > 0) {
    absl::StrAppendFormat(&text, "margin:       of interest from %g\n", model.margin_of_interest());
  }
  absl::StrAppend(&text, "revision:     ", model.revision(), "\n");
  absl::StrAppend(&text, "etag:         ", model.etag(), "\n");
  absl::StrAppend(&text, "convergence:\n", DescribeReport(model));
  if (model.has_weights()) Weights(model.weights(), &text);
  return text;
}

}  // namespace perceptrond::client
