// Random messages to learn from, in the form each feature space takes.
#pragma once

#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/models.h"

namespace perceptrond::testing {

enum class Space { kDense, kHashed, kNamed };

inline std::string SpaceName(Space space) {
  return space == Space::kDense ? "Dense" : space == Space::kHashed ? "Hashed" : "Named";
}

inline v1::Model SpaceSettings(Space space, const std::string& name, uint32_t dimension) {
  switch (space) {
    case Space::kDense:
      return DenseSettings(name, dimension);
    case Space::kHashed:
      return HashedSettings(name, 4);
    case Space::kNamed:
      return NamedSettings(name, dimension);
  }
  return {};
}

// Some examples as a batch: indices in a dense space, names in the others.
class SpaceBatch {
 public:
  SpaceBatch(Space space, const std::vector<SvmExample>& examples) {
    if (space == Space::kDense) {
      columns_ = std::make_unique<Columns>(examples);
      return;
    }
    std::vector<NamedExample> named;
    for (const SvmExample& example : examples) {
      NamedExample& one = named.emplace_back();
      one.label = example.label;
      for (size_t i = 0; i < example.indices.size(); ++i)
        one.features.emplace_back(absl::StrCat("f", example.indices[i]), example.values[i]);
    }
    named_ = std::make_unique<NamedColumns>(named, std::vector<std::string>{"never seen"});
  }
  Batch batch() const { return columns_ != nullptr ? columns_->batch() : named_->batch(); }

 private:
  std::unique_ptr<Columns> columns_;
  std::unique_ptr<NamedColumns> named_;
};

struct Message {
  std::string producer;
  int64_t first_offset = 0;
  std::vector<SvmExample> examples;
  // 0: none.
  int64_t completed_pass = 0;
};

struct TrafficOptions {
  Space space = Space::kDense;
  size_t messages = 100;
  uint32_t dimension = 24;
  int producers = 1;
  // Rows that are refused, among the others.
  bool bad_rows = true;
};

// Labels are mostly those of one hyperplane, so that there are mistakes but streaks too. Some
// examples have no features; some messages end a pass.
inline std::vector<Message> MakeTraffic(uint32_t seed, const TrafficOptions& options) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> plane(options.dimension);
  for (float& p : plane) p = normal(random);
  std::vector<int64_t> offsets(options.producers);
  std::vector<int64_t> passes(options.producers);
  std::vector<Message> messages(options.messages);
  for (Message& message : messages) {
    const size_t producer = random() % options.producers;
    message.producer = absl::StrCat("producer-", producer);
    message.first_offset = offsets[producer];
    message.examples.resize(random() % 12);
    for (SvmExample& example : message.examples) {
      double score = 0.3;
      const unsigned density = random() % 4;  // 0: no features at all
      for (uint32_t i = 0; i < options.dimension; ++i) {
        if (random() % 4 >= density) continue;
        example.indices.push_back(i);
        example.values.push_back(normal(random));
        score += example.values.back() * plane[i];
      }
      example.label = (score > 0) != (random() % 20 == 0) ? 1 : -1;
      if (!options.bad_rows) continue;
      if (random() % 15 == 0) example.label = 0;
      if (random() % 15 == 0 && !example.values.empty())
        example.values[0] = std::numeric_limits<float>::quiet_NaN();
    }
    offsets[producer] += static_cast<int64_t>(message.examples.size());
    if (random() % 8 == 0) message.completed_pass = ++passes[producer];
  }
  return messages;
}

inline Sent SendMessage(Store& store, const std::string& name, Space space,
                        const Message& message) {
  return Send(store, name, message.producer, SpaceBatch(space, message.examples).batch(),
              message.first_offset, message.completed_pass);
}

}  // namespace perceptrond::testing
