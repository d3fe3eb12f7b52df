// From a batch's rows to the space that the weights live in: names are resolved by the batch's name
// table, once each, and Phi is applied to each row. Indices pass through without a copy where Phi
// is the identity.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "core/features/document_frequencies.h"
#include "core/features/expansion.h"
#include "core/features/feature_space.h"
#include "core/features/name_table.h"
#include "core/features/names.h"
#include "core/features/text.h"
#include "core/vector/check.h"
#include "core/vector/row.h"

namespace perceptrond {

// One feature of a mapped row, with the name a person knows it by (Mapper::Parts). A plain value.
struct FeaturePart {
  // Set by Mapper::NameParts: the name that was sent, or that Phi derives: "x1*x2", in a dense space "0*1" by the factors'
  // indices.
  // Empty where features have numbers only: dense rows and slots, products of slots, Fourier's.
  std::string name;
  // Where its weight lies. In a named space Dictionary::kUnknown for a name that has none.
  uint32_t index = 0;
  float value = 0;
  // Tells it from the row's others.
  uint64_t id = 0;
};

// Maps the rows of one batch at a time: Begin, Resolve, and for each row Check and Map; or, where
// rows can be scored together, Together. Keeps its memory from row to row and from batch to batch.
// Not thread-safe; holds views of the batch and the dictionary it was given last.
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
  // form the space or Phi does not take, such as names in a dense space. O(new names).
  ValidationError Begin(const Batch& batch);
  // Looks names up, in a space of named weights; to be called whenever the dictionary may have
  // changed, before the next row is mapped. Where Phi makes names of products, the dictionary must
  // outlive the batch. O(1), or O(new names). Texts of a space with inverse document frequencies are
  // scaled by `frequencies` (null: each is 1): O(features) if these are others than before.
  void Resolve(const Dictionary& dictionary,
               const std::shared_ptr<const InverseDocumentFrequencies>& frequencies = nullptr);

  // Whether rows can be scored together: Phi is the identity.
  bool MapsTogether() const { return expansion_ == nullptr; }
  // The batch with row `first` and the `count` - 1 after it in the mapped space, but for those that
  // are apart. Their indices need not ascend if they have names. Holds until another row is mapped,
  // or Resolve is called. MapsTogether() must be true. O(rows mapped).
  const Batch& Together(size_t first, size_t count);
  // Whether a row that Together mapped must be checked and mapped alone: it is not well formed, or
  // has names that share a slot.
  bool IsApart(size_t i) const {
    return by_table_ && states_[i - mapped_begin_] != RowState::kMapped;
  }

  // Whether row i is well formed (CheckRow) and has a place in the mapped space: kTooManyFeatures
  // if Phi would make more of it than max_features, found before they are made;
  // kNonFiniteValue if products or sums of values in one slot leave float32. On success sets
  // *squared_norm to the mapped row's. Needs no dictionary. O(row), or what Phi takes, of which Map
  // has no more to do.
  ValidationCode Check(size_t i, double* squared_norm);
  // Describes the error that Check found in row i.
  ValidationError Describe(size_t i, ValidationCode code);

  // Row i, in which Check found no error, in the mapped space. Indices strictly ascend, except of
  // names that Phi leaves as they are: these keep their order, none is twice, and names without a
  // weight are 0. (Without Check a value may be infinite, and a row with too many features has
  // none.) The view holds until another row is checked or mapped, or Resolve is called.
  Row Map(size_t i);
  // The same, but that in a hashed space indices ascend: the form that updates are stored in.
  Row MapInOrder(size_t i);

  // In a space of named weights: the names of mapped row i that have no weight, in their order. The
  // views hold until another row is checked or mapped.
  void UnknownNames(size_t i, std::vector<absl::string_view>& names);
  // Gives the names that UnknownNames listed for row i numbers in the dictionary; `cap` is the most
  // that it may have. Returns false, and gives none, if there is no room. They resolve from then
  // on; appends each to `added`.
  bool AddUnknownNames(size_t i, uint32_t cap, Dictionary& dictionary,
                       std::vector<std::string>& added);

  // Calls on_part for the features of mapped row i, which have no names yet; `space` is the mapper's.
  // In a hashed space names that share a slot are parts of their own, whose values Map adds up. After
  // Resolve. Asks KeepGoing. O(row, or what Phi makes of it).
  void Parts(size_t i, const FeatureSpace& space, absl::FunctionRef<void(FeaturePart)> on_part);
  // Gives parts of row i their names: those few that are wanted, since the names of all may take
  // hundreds of times the row. After Parts, before another row is checked or mapped.
  void NameParts(size_t i, const FeatureSpace& space, std::span<FeaturePart* const> parts);

 private:
  static constexpr size_t kNoRow = std::numeric_limits<size_t>::max();

  // A row that the name table resolved.
  enum class RowState : uint8_t { kMapped, kSharesSlots, kOutdated, kMalformed };

  ValidationError CheckForm() const;
  // Whether the row's size and numbers, unless they are known to be, are right.
  ValidationCode CheckNumbers(const Row& row) const;
  ValidationError DescribeNumbers(const Row& row, ValidationCode code) const;
  // Resolves rows from `first` on, at least `count`, unless that was done.
  void MapByTable(size_t first, size_t count);
  RowState MapRowByTable(const Row& row, uint32_t* indices);
  RowState StateOf(size_t i);
  // Applies Phi to row i, or sums its slots, unless that was just done: sets row_, fault_ and
  // squared_norm_.
  void Prepare(size_t i);
  ValidationCode Expand(const Row& row);
  // Whether a row has its names under their newest numbers.
  bool IsOutdated(const Row& row);
  // The row by slots, which its names may share.
  Row InSlots(const Row& row);
  // The row with its names in the order of their bytes, as maps take it.
  Source SortByName(const Row& row);
  Row ByProductNumber();
  void PartsOfText(absl::string_view text, const FeatureSpace& space,
                   absl::FunctionRef<void(FeaturePart)> on_part);

  const FeatureSpace::Kind kind_;
  const bool takes_texts_;
  // Texts have inverse document frequencies; the second: and keep their norm.
  const bool has_frequencies_;
  const bool keeps_norm_;
  const FeatureSpace::Kind mapped_kind_;
  const uint32_t size_;
  const size_t max_features_;
  // Null: the identity.
  const std::shared_ptr<const Expansion> expansion_;

  Batch batch_;
  const Dictionary* dictionary_ = nullptr;
  std::shared_ptr<const InverseDocumentFrequencies> frequencies_;
  // The texts' values as they were read, and scaled by frequencies_; the latter are batch_.values.
  std::span<const float> unscaled_;
  std::vector<float> scaled_;
  // Rows have names that the table resolves: Phi is the identity.
  bool by_table_ = false;
  // Rows mapped_begin_ to mapped_end_ - 1 are resolved, in mapped_indices_ where the batch's
  // indices are in its own.
  size_t mapped_begin_ = 0;
  size_t mapped_end_ = 0;
  std::unique_ptr<uint32_t[]> mapped_indices_;
  std::vector<RowState> states_;
  Batch mapped_batch_;

  // The row that Prepare was last called for, and its outcome.
  size_t prepared_ = kNoRow;
  Row row_{kNoIndices, nullptr, 0};
  ValidationCode fault_ = ValidationCode::kNone;
  double squared_norm_ = 0;
  SlotSum slots_;
  Mapped mapped_;
  // Of product names.
  std::vector<uint32_t> numbers_;
  // The text of the last Parts.
  TextReader text_;
  // What SortByName returns views of.
  std::vector<std::pair<absl::string_view, size_t>> by_name_;
  std::vector<absl::string_view> sorted_names_;
  std::vector<uint32_t> sorted_slots_;
  std::vector<uint32_t> sorted_positions_;
  std::vector<float> sorted_values_;
};

}  // namespace perceptrond
