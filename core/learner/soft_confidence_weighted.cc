#include "core/learner/soft_confidence_weighted.h"

#include "core/vector/arithmetic.h"

namespace perceptrond {
namespace {

// The probability that a standard normal variable lies below x, for x from 0 to 6, by the series of
// Marsaglia, Evaluating the Normal Distribution, Journal of Statistical Software 11, 2004.
double NormalProbability(double x) {
  double sum = x;
  double term = x;
  for (int i = 3; term > 1e-17 * sum; i += 2) {
    term *= x * x / i;
    sum += term;
  }
  constexpr double kRootOfTwoPi = 2.5066282746310002;
  return 0.5 + sum * DeterministicExp(-0.5 * x * x) / kRootOfTwoPi;
}

}  // namespace

double NormalQuantile(double probability) {
  double low = 0;
  double high = 6;
  while (high - low > 1e-12) {
    const double middle = 0.5 * (low + high);
    (NormalProbability(middle) < probability ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

Step SoftConfidenceWeighted::MakeStep(const SignedExample& z, double weight) const {
  const double m = z.margin;
  const double v = z.variance;
  // Nothing changes the margin of an example that is all zeros, or whose variances have come to 0.
  if (!(v > 0)) return {};
  const double square = phi_ * phi_;
  const double psi = 1 + square / 2;
  const double zeta = 1 + square;
  const double root = std::sqrt(m * m * square * square / 4 + v * square * zeta);
  const double alpha =
      std::min(weight * aggressiveness_, std::max(0.0, (root - m * psi) / (v * zeta)));
  const double moved = alpha * v * phi_;
  const double root_of_u = 0.5 * (std::sqrt(moved * moved + 4 * v) - moved);
  return {alpha, alpha * phi_ / (root_of_u + moved)};
}

}  // namespace perceptrond
