// The marks of examples in the pictures of a plane: their size, and the rings of misclassified
// ones.
#pragma once

#include <cstddef>
#include <vector>

#include "client/draw/plot.h"

namespace perceptrond::client {

// Radius of the marks of this many examples: fewer are drawn larger.
double MarkRadius(size_t examples);

// The style of the rings among this many examples: thinner if there are many.
const char* RingStyle(size_t examples);

// Draws the rings of the misclassified ones of `examples` examples. Rings of many are translucent
// where they overlap, so that they do not hide what is below.
void DrawRings(const std::vector<Point>& misclassified, size_t examples, Svg* svg);

// The lines of a plane in pixels, simplified.
std::vector<Polyline> Drawn(const std::vector<Polyline>& lines, const Axes& axes);

}  // namespace perceptrond::client
