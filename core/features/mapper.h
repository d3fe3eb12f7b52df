// From a batch's rows to the space that the weights live in: names are looked up once a batch,
// hashed or in the model's dictionary, and Phi is applied to each row. Indices pass through without
// a copy where Phi is the identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/features/expansion.h"
#include "core/features/feature_space.h"
#include "core/features/names.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

// One feature of a mapped row, with the name a person knows it by (Mapper::Parts). A plain value.
struct FeaturePart {
  // The name that was sent, or that Phi derives: "x1*x2", in a dense space "0*1" by the factors'
  // indices.
  // Empty where features have numbers only: dense rows and slots, products of slots, Fourier's.
  std::string name;
  // Where its weight lies. In a named space Dictionary::kUnknown for a name that has none.
  uint32_t index = 0;
  float value = 0;
};

// Maps the rows of one batch at a time: Begin, Resolve, and for each row Check and Map. Keeps its
// memory from row to row and from batch to batch. Not thread-safe; holds views of the batch and the
// dictionary it was given last.
class Mapper {
 public:
  // `expansion` is MakeExpansion(space), made once a model and shared. A row may have max_features
  // before Phi, and after it.
  Mapper(const FeatureSpace& space, std::shared_ptr<const Expansion> expansion,
         size_t max_features);
  // Makes the expansion for itself.
  explicit Mapper(const FeatureSpace& space, size_t max_features = FeatureSpace::kMaxFeatures)
      : Mapper(space, MakeExpansion(space), max_features) {}

  // Begins a batch, whose columns fit together (CheckColumns). Returns an error for a batch whose
  // form the space or Phi does not take, such as names in a dense space. O(names).
  ValidationError Begin(const Batch& batch);
  // Looks the batch's names up, in a space of named weights; to be called again whenever the
  // dictionary has grown. Where Phi makes names of products, the dictionary must outlive the batch.
  // O(names).
  void Resolve(const Dictionary& dictionary);
  // How many names the dictionary had at Resolve.
  uint32_t resolved_size() const { return resolved_size_; }

  // What indices of the batch's rows must stay below. Those of mapped rows stay below
  // space.mapped().size, or in a named space below the dictionary's size + 1.
  uint32_t index_limit() const;

  // Whether the batch's rows are those of the mapped space as they stand.
  bool PassesThrough() const {
    return expansion_ == nullptr && kind_ != FeatureSpace::Kind::kNamed && batch_.names.empty();
  }

  // Whether row i is well formed (CheckRow) and has a place in the mapped space: kTooManyFeatures
  // if Phi would make more of it than max_features, found before they are made; kNonFiniteValue if
  // products or sums of values in one slot leave float32. On success sets *squared_norm to the
  // mapped row's. Needs no dictionary. O(row), or what Phi takes, of which Map has no more to do.
  ValidationCode Check(size_t i, double* squared_norm);
  // Describes the error that Check found in row i.
  ValidationError Describe(size_t i, ValidationCode code);

  // Row i, in which Check found no error, in the mapped space: its order depends only on its
  // features. Indices strictly ascend, except in a named space: there names keep their order, and
  // names without a weight are 0. (Without Check a value may be infinite, and a row with too many
  // features has none.) The view holds until another row is checked or mapped, or Resolve is
  // called.
  Row Map(size_t i);

  // In a space of named weights: the names of mapped row i that have no weight, in their order. The
  // views hold until another row is checked or mapped.
  void UnknownNames(size_t i, std::vector<absl::string_view>& names);

  // The features of mapped row i, one by one with their names; `space` is the mapper's. In a hashed
  // space names that share a slot are parts of their own, whose values Map adds up. After Resolve.
  // O(row, or what Phi makes of it).
  void Parts(size_t i, const FeatureSpace& space, std::vector<FeaturePart>& parts);

 private:
  static constexpr size_t kNoRow = std::numeric_limits<size_t>::max();

  ValidationError CheckForm() const;
  ValidationError CheckNames() const;
  // Applies Phi to row i, unless that was just done: sets row_, fault_ and squared_norm_.
  void Prepare(size_t i);
  ValidationCode Expand(const Row& row);
  // The row by slots, which its names share.
  Row InSlots(const Row& row);
  Row ByNumber(const Row& row);
  Row ByProductNumber();
  void PartsAsSent(const Row& row, std::vector<FeaturePart>& parts) const;

  const FeatureSpace::Kind kind_;
  const FeatureSpace::Kind mapped_kind_;
  const uint32_t size_;
  const size_t max_features_;
  // Null: the identity.
  const std::shared_ptr<const Expansion> expansion_;

  Batch batch_;
  const Dictionary* dictionary_ = nullptr;
  uint32_t resolved_size_ = static_cast<uint32_t>(-1);
  // By name of the batch: its slot or number.
  std::vector<uint32_t> name_indices_;

  // The row that Prepare was last called for, and its outcome.
  size_t prepared_ = kNoRow;
  Row row_{kNoIndices, nullptr, 0};
  ValidationCode fault_ = ValidationCode::kNone;
  double squared_norm_ = 0;
  SlotSum slots_;
  Mapped mapped_;
  std::vector<uint32_t> numbers_;
};

}  // namespace perceptrond
