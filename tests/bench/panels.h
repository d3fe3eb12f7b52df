// What pictures of panels one above the other, each with its legend beside it, have in common.
#pragma once

#include "client/draw/plot.h"

namespace perceptrond::bench {

using client::Axes;
using client::Frame;
using client::LegendEntry;
using client::Mark;
using client::Point;
using client::Polyline;
using client::Range;
using client::Scale;
using client::Svg;

inline constexpr double kPictureWidth = 760;
inline constexpr double kPanelsTop = 76;
inline constexpr double kPanelsLeft = 92;
// Between the panels.
inline constexpr double kPanelGap = 66;

}  // namespace perceptrond::bench
