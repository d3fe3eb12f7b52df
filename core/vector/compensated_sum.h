// A running sum that keeps what float64 would round away.
#pragma once

#include <cmath>

namespace perceptrond {

// Neumaier's summation (Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen,
// 1974): large terms that cancel leave the small ones they had swallowed. A plain value; not
// thread-safe.
struct CompensatedSum {
  double sum = 0;
  double carry = 0;

  void Add(double term) {
    const double next = sum + term;
    carry += std::abs(sum) >= std::abs(term) ? (sum - next) + term : (term - next) + sum;
    sum = next;
  }
  double value() const { return sum + carry; }
};

}  // namespace perceptrond
