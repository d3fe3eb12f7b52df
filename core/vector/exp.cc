#include "core/vector/exp.h"

#include <cmath>
#include <limits>

namespace perceptrond {
namespace {

// ln 2 in two parts, the first with so few bits that its product with an exponent is exact (Cody
// and Waite, Software Manual for the Elementary Functions, 1980).
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kLog2E = 1.44269504088896338700;

// Taylor's series to degree 13: for |r| <= ln(2) / 2 what is left out is below 1e-17.
double ExpOfSmall(double r) {
  double sum = 1;
  for (int n = 13; n > 0; --n) sum = 1 + r * sum / n;
  return sum;
}

}  // namespace

double DeterministicExp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.8) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  const double n = std::floor(x * kLog2E + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;
  return std::ldexp(ExpOfSmall(r), static_cast<int>(n));
}

double DeterministicSigmoid(double x) { return 1 / (1 + DeterministicExp(-x)); }

}  // namespace perceptrond
