// Convergence reports in words. Figures that the report leaves out because they do not hold are
// left out.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/model.pb.h"

namespace perceptrond {

// "learning", "converged", "refuted", "not separable" or "drifting"; "" of a server that does not
// say.
std::string ConvergenceWord(::perceptron::v1::ConvergenceState state);
// The report, a line a statement, its state first. Counts by reason name the reasons as they are.
std::vector<std::string> ReportInWords(const ::perceptron::v1::Model& model);
// "pass 2: 150 examples, 3 mistakes (2.00%), 3 updates, risk 0.013 an example", of a model with
// that learner.
std::string DescribePass(const ::perceptron::v1::PassSummary& pass,
                         ::perceptron::v1::LearnerKind kind);
// "57 updates", and how many of them were learned from right answers, as margin learners do.
std::string DescribeUpdates(uint64_t updates, uint64_t mistakes);

}  // namespace perceptrond
