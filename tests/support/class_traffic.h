// Examples of several classes to learn from, and models to learn them.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond::testing {

// A model's classes are fixed, or come up with their examples; they go by number or by name.
enum class ClassKind { kFixed, kFixedNamed, kNumbered, kNamed };

inline std::string ClassKindName(ClassKind kind) {
  constexpr const char* kNames[] = {"Fixed", "FixedNamed", "Numbered", "Named"};
  return kNames[static_cast<int>(kind)];
}

inline bool ByName(ClassKind kind) {
  return kind == ClassKind::kFixedNamed || kind == ClassKind::kNamed;
}

// The name of class k; the names are in no order.
inline std::string ClassCalled(int k) { return absl::StrCat("class ", (7 * k + 3) % 10); }

inline void SetClasses(ClassKind kind, uint32_t max_classes, v1::Model& settings) {
  v1::Classes& classes = *settings.mutable_learner()->mutable_classes();
  classes.set_max_classes(max_classes);
  if (kind == ClassKind::kNumbered) classes.set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
  if (kind == ClassKind::kNamed) classes.set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  if (kind != ClassKind::kFixedNamed) return;
  for (uint32_t k = 0; k < max_classes; ++k)
    settings.add_label_names(ClassCalled(static_cast<int>(k)));
}

// Examples as a batch whose labels are names, in order of their first appearance.
class ClassBatch {
 public:
  ClassBatch(ClassKind kind, Space space, std::vector<SvmExample> examples) {
    if (ByName(kind)) {
      for (SvmExample& example : examples) example.label = IndexOf(ClassCalled(example.label));
    }
    batch_ = std::make_unique<SpaceBatch>(space, examples);
    views_.assign(names_.begin(), names_.end());
  }
  Batch batch() const {
    Batch batch = batch_->batch();
    batch.label_names = views_;
    return batch;
  }

 private:
  int IndexOf(const std::string& name) {
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return static_cast<int>(i);
    }
    names_.push_back(name);
    return static_cast<int>(names_.size()) - 1;
  }
  std::vector<std::string> names_;
  std::vector<absl::string_view> views_;
  std::unique_ptr<SpaceBatch> batch_;
};

// Messages with examples of `classes` classes around a centre each; the later classes only come in
// later messages.
inline std::vector<std::vector<SvmExample>> ClassMessages(uint32_t seed, int classes,
                                                          uint32_t dimension, size_t messages) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> centres(classes, std::vector<float>(dimension));
  for (auto& centre : centres) {
    for (float& value : centre) value = normal(random);
  }
  std::vector<std::vector<SvmExample>> all(messages);
  for (size_t n = 0; n < messages; ++n) {
    const auto present = static_cast<uint32_t>(1 + n * classes / messages);
    all[n].resize(1 + random() % 8);
    for (SvmExample& example : all[n]) {
      // Not in the order of their numbers.
      example.label = static_cast<int>((random() % present * 5 + 1) % classes);
      for (uint32_t i = 0; i < dimension; ++i) {
        if (random() % 3 == 0) continue;
        example.indices.push_back(i);
        example.values.push_back(centres[example.label][i] + normal(random));
      }
    }
  }
  return all;
}

}  // namespace perceptrond::testing
