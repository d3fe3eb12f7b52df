// The tables of several classes in docs/learners.md: each rule on handwritten digits, and on a
// drifting stream of two classes, beside the rule as its paper prints it, in float64
// (tests/support/multiclass_papers.h).
#pragma once

#include <string>

namespace perceptrond {

// `directory`: of the data sets. Throw std::runtime_error.
void PrintClasses(const std::string& directory);
// For the digits in twenty random orders, the same for each rule, means and standard deviations:
// how much of a difference the order alone makes.
void PrintClassOrders(const std::string& directory);

}  // namespace perceptrond
