// Simulated figures and the law as a picture of panels with logarithmic scales.
#pragma once

#include <string>
#include <vector>

#include "client/draw/svg.h"

namespace perceptrond::bench::fleet {

struct Series {
  std::string name;
  client::Polyline simulated;
  // Drawn as a line; empty: the simulated points are joined.
  client::Polyline law;
};

// Series have colours and shapes by their order; six at most.
struct Panel {
  std::string x_title;
  std::string y_title;
  std::vector<Series> series;
  // A bound, and its name; empty: none.
  client::Polyline bound;
  std::string bound_name;
  // Small print under the legend.
  std::vector<std::string> notes;
};

// As SVG. Points that are not positive are left out.
std::string DrawPanels(const std::vector<Panel>& panels, const std::string& subtitle);

}  // namespace perceptrond::bench::fleet
