// The flags of `create` for the features: the space of the examples and the feature map.
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

// The space of the examples. Must outlive the parsing of `command`.
class SpaceFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(perceptron::v1::FeatureSpace* space) const;

 private:
  std::optional<uint32_t> dimension_;
  std::optional<uint32_t> hash_bits_;
  bool named_ = false;
  uint32_t max_features_ = 0;
  std::vector<std::string> components_;
};

// The space as text: "dense, 4 dimensions", "the outputs of or (step), nand (score)".
std::string DescribeInput(const perceptron::v1::FeatureSpace& space);

// The space of the examples that clients send: for a composition that of its component models.
const perceptron::v1::FeatureSpace& ExampleSpace(const perceptron::v1::FeatureSpace& space);

// The feature map. Must outlive the parsing of `command`.
class FeatureMapFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(perceptron::v1::FeatureSpace* space) const;

 private:
  uint32_t degree_ = 0;
  bool interactions_only_ = false;
  std::vector<std::string> products_;
  uint32_t fourier_ = 0;
  double gamma_ = 0;
  uint64_t seed_ = 0;
};

// The map as text: "polynomial of degree 2"; empty for the identity.
std::string DescribeMap(const perceptron::v1::FeatureMap& map);

}  // namespace perceptrond::client
