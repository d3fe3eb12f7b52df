// Figures, and how they are shown.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::bench {

enum class Goal { kAtLeast, kAtMost };

// One line of the table.
struct Figure {
  std::string name;
  std::string unit;
  // The goal of the ratio, value / reference, in the worst repetition.
  Goal direction = Goal::kAtLeast;
  double goal = 1;
  // One for each repetition, taken side by side.
  std::vector<double> values = {};
  // The goal is about these: the floor where there is one (floor.h).
  std::vector<double> references = {};
  // The null server's, where it was measured.
  std::vector<double> nulls = {};
  // Processor nanoseconds an example of ours: client and server together, and the server alone.
  std::vector<double> costs = {};
  std::vector<double> server_costs = {};
  // Bytes an example on the wire; 0: not known.
  double bytes = 0;
};

std::string Table(const std::vector<Figure>& rows);

}  // namespace perceptrond::bench
