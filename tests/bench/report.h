// What was measured, and how it is shown.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::bench {

enum class Goal { kAtLeast, kAtMost, kNone };

// One line of the table.
struct Figure {
  std::string name;
  std::string unit;
  // Of the ratio, value / reference.
  Goal direction = Goal::kAtLeast;
  double goal = 1;
  // One for each repetition, taken side by side.
  std::vector<double> values = {};
  // What the goal is about: the floor where there is one (floor.h).
  std::vector<double> references = {};
  // The same of the null server, where it was measured.
  std::vector<double> nulls = {};
  // Processor nanoseconds an example of ours: client and server together, and the server alone.
  std::vector<double> costs = {};
  std::vector<double> server_costs = {};
  // Bytes an example on the wire; 0: not known.
  double bytes = 0;
  // Of learning: the part of ours that were updates.
  std::vector<double> update_shares = {};

  std::vector<double> Ratios() const;
  // The ratio of the worst repetition: the lowest, or the highest if the ratio is to be low.
  double worst() const;
  // Whether the worst repetition meets the goal; true without one.
  bool met() const;
  // As ">= 0.90".
  std::string goal_text() const;
};

std::string Table(const std::vector<Figure>& rows);
// One JSON object a row, one row a line.
std::string Json(const std::vector<Figure>& rows);

}  // namespace perceptrond::bench
