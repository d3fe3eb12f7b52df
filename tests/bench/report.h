// What was measured, and how it is shown.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::bench {

enum class Goal { kAtLeast, kAtMost };

// One line of the table.
struct Figure {
  std::string name;
  std::string unit;
  // Of the ratio, value / reference.
  Goal direction = Goal::kAtLeast;
  double goal = 1;
  // One a repetition, taken side by side.
  std::vector<double> values;
  std::vector<double> references;

  // Medians.
  double value() const;
  double reference() const;
  // The median of the repetitions' ratios, and how far they lie apart: (largest - smallest) /
  // median.
  double ratio() const;
  double spread() const;
  bool met() const;
  // As ">= 0.90".
  std::string goal_text() const;
};

std::string Table(const std::vector<Figure>& rows);
// One JSON object a row, one row a line.
std::string Json(const std::vector<Figure>& rows);

double Median(std::vector<double> values);

}  // namespace perceptrond::bench
