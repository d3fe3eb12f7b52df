// Phi: from a batch's rows to the model's feature space. Indices pass through without a copy; names
// are looked up once a batch, hashed or in the model's dictionary.
#pragma once

#include <cstdint>
#include <vector>

#include "core/features/dictionary.h"
#include "core/features/feature_space.h"
#include "core/vector/batch.h"
#include "core/vector/check.h"

namespace perceptrond {

// Maps the rows of one batch at a time. Keeps its memory from one batch to the next. Not
// thread-safe; holds views of the batch it was given last.
class Mapper {
 public:
  // The indices of a row without features are not null: see Row.
  explicit Mapper(const FeatureSpace& space) : space_(space) { indices_.reserve(1); }

  // Begins a batch, whose columns fit together (CheckColumns). Finds fault with a batch whose form
  // the space does not take, as names in a dense space. O(names).
  Finding Begin(const Batch& batch);
  // Looks the batch's names up, in a named space; to be called again whenever the dictionary has
  // grown. O(names).
  void Resolve(const Dictionary& dictionary);
  // How many names the dictionary had at Resolve.
  uint32_t resolved_size() const { return resolved_size_; }

  // What indices of the batch's rows must stay below.
  uint32_t index_limit() const;
  // Row i, checked by CheckRow, in the model's space: its order depends only on its features, and
  // its values, once mapped, may be infinite only if names that share a slot overflow there. The
  // view holds until the next call.
  Row Map(size_t i);

  // In a named space: the names of row i that had no weight at Resolve, in their order.
  void UnknownNames(size_t i, std::vector<absl::string_view>& names) const;

 private:
  Row MapHashed(const Row& row);
  Row MapNamed(const Row& row);

  const FeatureSpace space_;
  Batch batch_;
  uint32_t resolved_size_ = 0;
  // By name of the batch: its slot or number.
  std::vector<uint32_t> places_;
  struct Feature {
    uint32_t index;
    float value;
  };
  std::vector<Feature> features_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
};

}  // namespace perceptrond
