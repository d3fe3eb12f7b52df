// The flags of `create` for the kernel perceptron's kernel.
#pragma once

#include <optional>
#include <string>

#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// Must outlive the parsing of `command`.
class KernelFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets what was given; says what is wrong with it, or nothing.
  std::string Apply(perceptron::v1::Learner* learner) const;

 private:
  // Empty: not given.
  std::string kernel_;
  std::optional<uint32_t> degree_;
  std::optional<double> coef0_;
  std::optional<double> gamma_;
};

// "kernel exp(-0.5 |x - z|^2)".
std::string DescribeKernel(const perceptron::v1::Kernel& kernel);

}  // namespace perceptrond::client
