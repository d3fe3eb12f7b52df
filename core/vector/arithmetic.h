// Arithmetic whose last bit counts: sums that keep what float64 would round away, and e^x and ln x
// with the same bits on every machine, for what replay and replicas must repeat to the bit.
#pragma once

#include <cmath>
#include <limits>

namespace perceptrond {

// A running sum by Neumaier (Rundungsfehleranalyse einiger Verfahren zur Summation endlicher
// Summen, 1974): large terms that cancel leave the small ones they had swallowed. A plain value;
// not thread-safe.
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

// e^x: within 1e-15 of it, relatively; 0 below -745 and infinity above 709.7, as in <cmath>; NaN
// for NaN. A C library may choose the last digit, this does not.
inline double DeterministicExp(double x) {
  // ln 2 in two parts, the first with so few bits that its product with an exponent is exact (Cody
  // and Waite, Software Manual for the Elementary Functions, 1980).
  constexpr double kLn2High = 6.93147180369123816490e-01;
  constexpr double kLn2Low = 1.90821492927058770002e-10;
  constexpr double kLog2E = 1.44269504088896338700;
  if (std::isnan(x)) return x;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double n = std::floor(x * kLog2E + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  // Taylor's series to degree 13: for |r| <= ln(2) / 2 what is left out is below 1e-17.
  double sum = 1;
  for (int degree = 13; degree > 0; --degree) sum = 1 + r * sum / degree;
  return std::ldexp(sum, static_cast<int>(n));
}

// ln x of a finite x above 0, within 1e-15 of it, relatively or where it is near 0 absolutely.
inline double DeterministicLog(double x) {
  constexpr double kLn2 = 6.93147180559945309417e-01;
  constexpr double kSqrtHalf = 7.07106781186547524401e-01;
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < kSqrtHalf) {
    m *= 2;
    --exponent;
  }
  // ln m = 2 artanh s; with |s| < 0.172 what the series leaves out after s^23 is below 1e-20.
  const double s = (m - 1) / (m + 1);
  const double square = s * s;
  double sum = 0;
  for (int degree = 23; degree > 0; degree -= 2) sum = 1.0 / degree + square * sum;
  return exponent * kLn2 + 2 * s * sum;
}

// 1 / (1 + e^-x), by the same means.
inline double DeterministicSigmoid(double x) { return 1 / (1 + DeterministicExp(-x)); }

}  // namespace perceptrond
