// Where things lie in a picture of a plane: the plot at the left, the legend at its right.
#pragma once

#include "client/draw/plot.h"

namespace perceptrond::client {

inline constexpr double kPictureWidth = 760;
inline constexpr double kPictureHeight = 520;
inline constexpr Frame kPlaneFrame{84, 72, 440, 388};
inline constexpr Point kLegendCorner{546, 84};
inline constexpr double kLegendWidth = kPictureWidth - kLegendCorner.x - 12;

// What is closer than this cannot be told apart, in pixels.
inline constexpr double kTolerance = 0.1;

}  // namespace perceptrond::client
