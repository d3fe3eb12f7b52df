// The flags of `create` that define a model's features: the space of its examples and the feature map.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// Must outlive the parsing of `command`.
class SpaceFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets what was given; says what is wrong with it, or nothing.
  std::string Apply(perceptron::v1::FeatureSpace* space) const;

 private:
  std::optional<uint32_t> dimension_;
  std::optional<uint32_t> hash_bits_;
  bool named_ = false;
  uint32_t max_features_ = 0;
  std::vector<std::string> components_;
};

// "vectors of dimension 4"; "the answers of or, nand (score)".
std::string DescribeInput(const perceptron::v1::FeatureSpace& space);

// Where the examples live that a model of this space is sent.
const perceptron::v1::FeatureSpace& ExampleSpace(const perceptron::v1::FeatureSpace& space);

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
