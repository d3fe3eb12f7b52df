#include "core/model/kernel_settings.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr uint32_t kMaxDegree = 16;
constexpr double kMaxGamma = 1e12;

absl::Status Invalid(absl::string_view field, double value, absl::string_view range) {
  return InvalidField("INVALID_FIELD", absl::StrCat("model.learner.kernel.", field),
                      absl::StrCat(value, " is not ", range));
}

absl::StatusOr<KernelSettings> ReadPolynomial(const v1::Kernel::Polynomial& polynomial) {
  if (polynomial.degree() < 1 || polynomial.degree() > kMaxDegree)
    return Invalid("polynomial.degree", polynomial.degree(),
                   absl::StrCat("between 1 and ", kMaxDegree));
  if (!(polynomial.coef0() >= 0) || !std::isfinite(polynomial.coef0()))
    return Invalid("polynomial.coef0", polynomial.coef0(), "at least 0 and finite");
  KernelSettings kernel;
  kernel.kind = KernelSettings::Kind::kPolynomial;
  kernel.degree = polynomial.degree();
  kernel.coef0 = polynomial.coef0();
  return kernel;
}

absl::StatusOr<KernelSettings> ReadRbf(const v1::Kernel::Rbf& rbf) {
  if (!(rbf.gamma() > 0) || rbf.gamma() > kMaxGamma)
    return Invalid("rbf.gamma", rbf.gamma(), absl::StrCat("above 0 and at most ", kMaxGamma));
  KernelSettings kernel;
  kernel.kind = KernelSettings::Kind::kRbf;
  kernel.gamma = rbf.gamma();
  return kernel;
}

}  // namespace

void FillDefaults(v1::Kernel& kernel) {
  if (kernel.kernel_case() == v1::Kernel::KERNEL_NOT_SET) kernel.mutable_rbf();
  if (kernel.has_rbf() && !kernel.rbf().has_gamma())
    kernel.mutable_rbf()->set_gamma(KernelSettings().gamma);
  if (!kernel.has_polynomial()) return;
  v1::Kernel::Polynomial& polynomial = *kernel.mutable_polynomial();
  if (!polynomial.has_degree()) polynomial.set_degree(KernelSettings().degree);
  if (!polynomial.has_coef0()) polynomial.set_coef0(KernelSettings().coef0);
}

absl::StatusOr<KernelSettings> ReadKernel(const v1::Kernel& kernel) {
  if (kernel.has_polynomial()) return ReadPolynomial(kernel.polynomial());
  if (kernel.has_rbf()) return ReadRbf(kernel.rbf());
  KernelSettings linear;
  linear.kind = KernelSettings::Kind::kLinear;
  return linear;
}

}  // namespace perceptrond
