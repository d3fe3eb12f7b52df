// The flags of `create` for the space of the examples and its feature map.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/ctl/commands/dimension_from.h"
#include "perceptron/v1/model.pb.h"

namespace CLI {
class App;
}  // namespace CLI

namespace perceptrond::client {

// The flags for the space of the examples. Must outlive the parsing of `command`.
class SpaceFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(perceptron::v1::FeatureSpace* space) const;

 private:
  void AddTextFlags(CLI::App* command);
  std::string ApplyText(perceptron::v1::FeatureSpace::Text* text) const;

  std::optional<uint32_t> dimension_;
  DimensionFrom dimension_from_;
  std::optional<uint32_t> hash_bits_;
  bool named_ = false;
  uint32_t max_features_ = 0;
  bool text_ = false;
  std::string text_value_ = "presence";
  std::optional<uint32_t> words_;
  std::string characters_;
  bool keep_norm_ = false;
  bool idf_ = false;
  std::vector<std::string> components_;
};

// The flags for the feature map. Must outlive the parsing of `command`.
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

}  // namespace perceptrond::client
