// One example on its way to a server: the form that file readers fill and batch builders take.
//
// A Row owns all it holds and keeps its memory from one example to the next: Clear() it and fill it
// again. Names lie end to end in one buffer, so that a row of any number of names costs no
// allocation once it has seen a longer one.
//
// Threads: a plain value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace perceptrond::client {

enum class RowKind {
  // indices and values.
  kSparse,
  // names and values.
  kNamed,
  // values alone, one for every dimension.
  kDense,
};

class Row {
 public:
  RowKind kind = RowKind::kSparse;
  // kSparse: each at most once, in any order (ascending costs least).
  std::vector<uint32_t> indices;
  // As many as features; or none at all for kSparse and kNamed, which means that every value is 1.
  std::vector<float> values;
  static constexpr int kNoLabel = std::numeric_limits<int32_t>::min();
  // -1 or +1, or of several classes the class's number; kNoLabel: the example has none, or a name.
  int label = kNoLabel;
  // Not empty: the label goes by name, one of the model's or of a class that is new to it.
  std::string label_name;
  // How much the example counts when it is learned, > 0.
  float weight = 1;

  void Clear() {
    kind = RowKind::kSparse;
    indices.clear();
    values.clear();
    label = kNoLabel;
    label_name.clear();
    weight = 1;
    names_.clear();
    ends_.clear();
  }

  bool has_label() const { return label != kNoLabel || !label_name.empty(); }

  // Appends a feature's name, in one piece or as prefix + separator + name.
  void AddName(std::string_view name) {
    names_.append(name);
    ends_.push_back(names_.size());
  }
  void AddName(std::string_view prefix, char separator, std::string_view name) {
    names_.append(prefix);
    names_.push_back(separator);
    AddName(name);
  }
  size_t name_count() const { return ends_.size(); }
  // Valid until the next change.
  std::string_view name(size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return std::string_view(names_).substr(begin, ends_[i] - begin);
  }

  size_t feature_count() const {
    switch (kind) {
      case RowKind::kSparse:
        return indices.size();
      case RowKind::kNamed:
        return ends_.size();
      case RowKind::kDense:
        return values.size();
    }
    return 0;
  }

 private:
  std::string names_;
  std::vector<size_t> ends_;
};

}  // namespace perceptrond::client
