// The flags of `create` that say how the model learns. Names and settings come from the API's own
// messages, so that a learner the API knows needs no line here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

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

// "averaged-perceptron" for LEARNER_KIND_AVERAGED_PERCEPTRON.
std::string LearnerName(perceptron::v1::LearnerKind kind);

// Must outlive the parsing of `command`.
class LearnerFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets what was given; says what is wrong with it, or nothing.
  std::string Apply(perceptron::v1::Learner* learner) const;

 private:
  std::string learner_ = "perceptron";
  std::string tie_;
  double offset_ = 1;
  bool no_offset_ = false;
  // Field of perceptron.v1.Learner to value.
  std::map<std::string, double> settings_;
  std::map<std::string, uint32_t> counts_;
  KernelFlags kernel_;
  std::vector<double> class_weights_;
  uint32_t classes_ = 0;
  std::string new_classes_;
};

}  // namespace perceptrond::client
