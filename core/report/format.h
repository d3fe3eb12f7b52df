// Reports as text, made from the definitions of their figures. A figure that is not valid is left
// out.
#pragma once

#include <google/protobuf/message.h>

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/report/figures.h"
#include "perceptron/v1/report.pb.h"

namespace perceptrond {

// "12.34 %" of a ratio; of less than 0.005 % its first two digits.
std::string Percent(double ratio);
// "54,000".
std::string Grouped(uint64_t count);
// "2 mistakes" of "mistakes"; of exactly 1 the first word loses its final s: "1 mistake".
std::string Counted(uint64_t count, absl::string_view things);

// "learning", "converged", "refuted", "not separable" or "drifting"; "" if the state is
// unspecified.
std::string StateName(::perceptron::v1::ConvergenceState state);

// The text of a report, one line for each label: "examples: 35,672 seen, 366 mistakes".
std::vector<std::string> FormatReport(const google::protobuf::Message& report);

// All figures of a message in one line, without a label: of a PassSummary
// "pass 2: 150 examples, 3 mistakes (2.00 %), 3 updates, mean risk 0.0133".
std::string FormatFigures(const google::protobuf::Message& message);

// "57 updates", and how many of them were made on right examples, as margin learners do.
std::string DescribeUpdates(uint64_t updates, uint64_t mistakes);

// A figure as the status page shows it.
struct FigureView {
  // The field's path: "last_pass.mistakes".
  std::string name;
  std::string title;
  std::string help;
  // "35,672", "1.03 %", "yes".
  std::string value;
  bool headline = false;
};

// The figures that are valid in the report, in the order of declaration.
std::vector<FigureView> ViewFigures(const google::protobuf::Message& report);

}  // namespace perceptrond
