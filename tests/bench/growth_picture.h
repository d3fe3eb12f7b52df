// Rates beside what they grow with, as a picture of panels with logarithmic scales.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::bench {

struct GrowthPoint {
  double x = 0;
  // Examples a second.
  double ours = 0;
  double null = 0;
};

struct GrowthCurve {
  // What is on the axis.
  std::string x_title;
  // The law that ours should follow, in words, and what it makes of each point; empty: none drawn.
  std::string law;
  std::vector<double> law_rates;
  std::vector<GrowthPoint> points;
};

// As SVG. Every curve has points.
std::string DrawGrowth(const std::vector<GrowthCurve>& curves, const std::string& subtitle);

}  // namespace perceptrond::bench
