#include "client/ctl/kernel_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_format.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

}  // namespace

void KernelFlags::AddTo(CLI::App* command) {
  command
      ->add_option(
          "--kernel", kernel_,
          "Of kernel-perceptron: exp(-gamma |x - z|^2) (default), (coef0 + x z)^degree, or "
          "x z")
      ->check(CLI::IsMember({"rbf", "polynomial", "linear"}));
  command->add_option("--kernel-gamma", gamma_, "Of --kernel rbf: gamma, > 0 (default 1)");
  command->add_option("--kernel-degree", degree_,
                      "Of --kernel polynomial: degree, 1 to 16 (default 2)");
  command->add_option("--kernel-coef0", coef0_, "Of --kernel polynomial: coef0, >= 0 (default 1)");
}

std::string KernelFlags::Apply(v1::Learner* learner) const {
  const bool polynomial = kernel_ == "polynomial";
  if ((degree_ || coef0_) && !polynomial)
    return "--kernel-degree and --kernel-coef0 go with --kernel polynomial";
  if (gamma_ && (polynomial || kernel_ == "linear")) return "--kernel-gamma goes with --kernel rbf";
  if (kernel_.empty() && !gamma_) return "";
  v1::Kernel& kernel = *learner->mutable_kernel();
  if (kernel_ == "linear") {
    kernel.mutable_linear();
  } else if (polynomial) {
    kernel.mutable_polynomial();
    if (degree_) kernel.mutable_polynomial()->set_degree(*degree_);
    if (coef0_) kernel.mutable_polynomial()->set_coef0(*coef0_);
  } else {
    kernel.mutable_rbf();
    if (gamma_) kernel.mutable_rbf()->set_gamma(*gamma_);
  }
  return "";
}

std::string DescribeKernel(const v1::Kernel& kernel) {
  switch (kernel.kernel_case()) {
    case v1::Kernel::kPolynomial:
      return absl::StrFormat("kernel (%g + x z)^%d", kernel.polynomial().coef0(),
                             kernel.polynomial().degree());
    case v1::Kernel::kRbf:
      return absl::StrFormat("kernel exp(-%g |x - z|^2)", kernel.rbf().gamma());
    case v1::Kernel::kLinear:
      return "kernel x z";
    case v1::Kernel::KERNEL_NOT_SET:
      break;
  }
  return "a kernel this program does not know";
}

}  // namespace perceptrond::client
