#include "core/learner/kernel.h"

#include <algorithm>

#include "core/vector/arithmetic.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

constexpr double kMost = 1e150;

double Power(double base, uint32_t exponent) {
  double power = 1;
  // Clamped at each step: there is no infinity times 0.
  for (uint32_t i = 0; i < exponent; ++i) power = std::clamp(power * base, -kMost, kMost);
  return power;
}

}  // namespace

Kernel::Example::Example(const Row& given)
    : row(given), squared_norm(perceptrond::SquaredNorm(given)) {}

Kernel::Kernel(const LearnerSettings& settings)
    : settings_(settings.kernel), bias_input_(settings.bias_input) {}

double Kernel::Of(double dot, double squared_distance) const {
  double value = dot;
  if (settings_.kind == KernelSettings::Kind::kPolynomial)
    value = Power(settings_.coef0 + dot, settings_.degree);
  if (settings_.kind == KernelSettings::Kind::kRbf)
    value = DeterministicExp(-settings_.gamma * squared_distance);
  return std::clamp(value + bias_input_ * bias_input_, -kMost, kMost);
}

double Kernel::operator()(const Example& x, const Row& z, double squared_norm) const {
  const double dot = Dot(x.row, z);
  // Rounding may take the distance of a row to itself below 0.
  return Of(dot, std::max(0.0, x.squared_norm + squared_norm - 2 * dot));
}

double Kernel::OfItself(double squared_norm) const { return Of(squared_norm, 0); }

}  // namespace perceptrond
