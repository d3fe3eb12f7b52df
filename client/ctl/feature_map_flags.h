// The flags of `create` that say what becomes of an example's features before they are weighed.
#pragma once

#include <string>
#include <vector>

#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// Must outlive the parsing of `command`.
class FeatureMapFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets what was given; says what is wrong with it, or nothing.
  std::string Apply(perceptron::v1::FeatureSpace* space) const;

 private:
  uint32_t degree_ = 0;
  bool interactions_only_ = false;
  std::vector<std::string> products_;
  uint32_t fourier_ = 0;
  double gamma_ = 0;
  uint64_t seed_ = 0;
};

// "polynomial of degree 2"; empty for the identity.
std::string DescribeMap(const perceptron::v1::FeatureMap& map);

}  // namespace perceptrond::client
