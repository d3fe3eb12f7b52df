// What a difference between a rule and its paper is worth: how much its error varies by itself.
#pragma once

#include <string>

namespace perceptrond {

// From the directory of the data sets; throw std::runtime_error.
//
// How much the held-out error of the last weights wanders from pass to pass, where float32 and
// float64 part ways.
void PrintPasses(const std::string& directory);
// Mean and standard deviation over random orders of the examples.
void PrintOrders(const std::string& directory);

}  // namespace perceptrond
