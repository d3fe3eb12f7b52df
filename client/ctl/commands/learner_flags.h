// The flags of `create` for the learner. Names of learners come from the API's messages, so a
// new learner needs no change here, unless it has a new setting.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// The kernel of a kernel-perceptron. Must outlive the parsing of `command`.
class KernelFlags {
 public:
  void AddTo(CLI::App* command);
  // One that was given; empty: none was.
  std::string given_flag() const;
  // Sets the fields given by flags of a kernel-perceptron. Returns what is wrong with them; empty:
  // nothing.
  std::string Apply(perceptron::v1::Learner* learner) const;

 private:
  // Empty: the flag was not given.
  std::string kernel_;
  std::optional<uint32_t> degree_;
  std::optional<double> coef0_;
  std::optional<double> gamma_;
};

// The learner and its settings. Must outlive the parsing of `command`.
class LearnerFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(perceptron::v1::Learner* learner) const;

 private:
  std::string learner_ = "perceptron";
  std::string tie_;
  double bias_ = 1;
  bool no_bias_ = false;
  // Values by field name of the rule's and wrapper's messages.
  std::map<std::string, std::variant<double, uint32_t>> settings_;
  // Of logistic regression. Empty: the flag was not given.
  std::string steps_;
  KernelFlags kernel_;
  std::vector<double> class_weights_;
  uint32_t classes_ = 0;
  std::string new_classes_;
};

}  // namespace perceptrond::client
