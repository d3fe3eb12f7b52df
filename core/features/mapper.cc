#include "core/features/mapper.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/features/names.h"
#include "core/features/polynomial.h"
#include "core/features/text.h"
#include "core/sync/cancellation.h"
#include "core/vector/kernels.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

using Kind = FeatureSpace::Kind;

ValidationError FormError(const Batch& batch, absl::string_view why) {
  return {ValidationCode::kMalformedColumns,
          batch.dense_width > 0 ? "dense_width" : "feature_names", std::string(why)};
}

std::string ProductName(uint32_t index, const FeatureSpace& space) {
  return absl::StrJoin(MonomialFactors(index, space.size, space.map), std::string(1, kTimes));
}

}  // namespace

Mapper::Mapper(const FeatureSpace& space, std::shared_ptr<const Expansion> expansion,
               size_t max_features)
    : kind_(space.kind),
      takes_texts_(space.text.has_value()),
      has_frequencies_(takes_texts_ && space.text->inverse_document_frequency),
      keeps_norm_(takes_texts_ && space.text->keep_norm),
      mapped_kind_(space.mapped().kind),
      size_(space.size),
      max_features_(max_features),
      expansion_(std::move(expansion)) {}

ValidationError Mapper::Begin(const Batch& batch) {
  batch_ = batch;
  unscaled_ = batch.values;
  scaled_.clear();
  prepared_ = kNoRow;
  mapped_begin_ = mapped_end_ = 0;
  by_table_ = batch.names != nullptr && expansion_ == nullptr;
  if (ValidationError error = CheckForm()) return error;
  if (batch.names != nullptr && kind_ == Kind::kHashed) batch.names->BindToSlots(size_);
  if (by_table_) {
    mapped_indices_ = std::make_unique_for_overwrite<uint32_t[]>(batch.indices.size());
    mapped_batch_ = batch;
    mapped_batch_.names = nullptr;
    mapped_batch_.indices_are_checked = true;
  }
  return {};
}

ValidationError Mapper::CheckForm() const {
  const bool named_batch = batch_.names != nullptr;
  if (!batch_.texts.empty() && !takes_texts_) {
    return {ValidationCode::kMalformedColumns, "texts",
            "the model takes features, not texts; models created with a text space take texts"};
  }
  if (kind_ == Kind::kDense && named_batch) {
    return {ValidationCode::kMalformedColumns, "feature_names",
            "a dense model takes indices, not names"};
  }
  const bool has_features = !batch_.indices.empty() || batch_.dense_width > 0;
  if (takes_texts_ && batch_.texts.empty() && has_features)
    return FormError(batch_, "a model with a text space takes texts");
  // Rows without features have no form.
  if (named_batch || (batch_.indices.empty() && batch_.dense_width == 0)) return {};
  if (kind_ == Kind::kNamed) {
    return FormError(batch_, "a model with named features takes names, not indices");
  }
  if (expansion_ != nullptr && expansion_->by_name()) {
    return FormError(batch_, "a model with products of groups takes names, not indices");
  }
  return {};
}

void Mapper::Resolve(const Dictionary& dictionary,
                     const std::shared_ptr<const InverseDocumentFrequencies>& frequencies) {
  dictionary_ = &dictionary;
  if (has_frequencies_ && (scaled_.size() != unscaled_.size() || frequencies_ != frequencies)) {
    frequencies_ = frequencies;
    batch_.values = unscaled_;
    ScaleTexts(batch_, frequencies_.get(), keeps_norm_, scaled_);
    batch_.values = scaled_;
    prepared_ = kNoRow;
  }
  // Products' names are looked up row by row.
  if (kind_ != Kind::kNamed || batch_.names == nullptr) return;
  if (batch_.names->BindTo(dictionary)) mapped_end_ = mapped_begin_;
}

const Batch& Mapper::Together(size_t first, size_t count) {
  if (!by_table_) return batch_;
  MapByTable(first, count);
  return mapped_batch_;
}

void Mapper::MapByTable(size_t first, size_t count) {
  // Slots stay as they are; names may get numbers with the next update.
  const size_t end =
      kind_ == Kind::kHashed ? batch_.rows() : std::min(first + count, batch_.rows());
  if (first >= mapped_begin_ && end <= mapped_end_) return;
  states_.resize(end - first);
  for (size_t i = first; i < end; ++i)
    states_[i - first] = MapRowByTable(batch_.row(i), mapped_indices_.get() + batch_.row_begin(i));
  mapped_begin_ = first;
  mapped_end_ = end;
  // What is not mapped has no indices that could be read ahead.
  mapped_batch_.indices = {mapped_indices_.get(), end == 0 ? 0 : batch_.row_ends[end - 1]};
}

Mapper::RowState Mapper::MapRowByTable(const Row& row, uint32_t* indices) {
  if (row.size == 0) return RowState::kMapped;
  if (CheckNumbers(row) != ValidationCode::kNone) {
    std::fill_n(indices, row.size, 0U);
    return RowState::kMalformed;
  }
  switch (batch_.names->Map({row.indices, row.size}, indices)) {
    case NameTable::Mapping::kShared:
      return RowState::kSharesSlots;
    case NameTable::Mapping::kOutdated:
      return RowState::kOutdated;
    case NameTable::Mapping::kDistinct:
      break;
  }
  return RowState::kMapped;
}

Mapper::RowState Mapper::StateOf(size_t i) {
  MapByTable(i, 1);
  return states_[i - mapped_begin_];
}

ValidationCode Mapper::CheckNumbers(const Row& row) const {
  if (row.size > max_features_) return ValidationCode::kTooManyFeatures;
  if (row.size == 0) return ValidationCode::kNone;
  if (!batch_.indices_are_checked && !simd::Best().ascends(row.indices, row.size))
    return ValidationCode::kUnsortedIndices;
  if (batch_.indices_are_checked) return ValidationCode::kNone;
  return row.indices[0] >= batch_.names->begin() && row.indices[row.size - 1] < batch_.names->end()
             ? ValidationCode::kNone
             : ValidationCode::kIndexOutOfRange;
}

ValidationCode Mapper::Check(size_t i, double* squared_norm) {
  const Row row = batch_.row(i);
  if (batch_.names == nullptr) {
    const ValidationCode code = CheckRow(row, size_, max_features_, squared_norm);
    if (code != ValidationCode::kNone || expansion_ == nullptr) return code;
  } else if (const ValidationCode code = CheckNumbers(row); code != ValidationCode::kNone) {
    return code;
  }
  if (by_table_ && StateOf(i) == RowState::kOutdated) return ValidationCode::kIndexOutOfRange;
  if (by_table_ && StateOf(i) == RowState::kMapped) {
    *squared_norm = SquaredNorm(row);
    return std::isfinite(*squared_norm) ? ValidationCode::kNone : ValidationCode::kNonFiniteValue;
  }
  Prepare(i);
  *squared_norm = squared_norm_;
  return fault_;
}

ValidationError Mapper::DescribeNumbers(const Row& row, ValidationCode code) const {
  if (code != ValidationCode::kIndexOutOfRange)
    return DescribeRow(row, batch_.names->end(), max_features_, code);
  const bool old = row.indices[0] < batch_.names->begin();
  ValidationError error{code, "indices", ""};
  error.position = old ? 0 : row.size - 1;
  error.description =
      old ? absl::StrCat("the name of number ", row.indices[0],
                         " is no longer in the stream's table, whose oldest name is number ",
                         batch_.names->begin(), "; send the name again")
          : absl::StrCat(row.indices[row.size - 1], " is the number of no name; there are ",
                         batch_.names->end());
  return error;
}

ValidationError Mapper::Describe(size_t i, ValidationCode code) {
  const Row row = batch_.row(i);
  if (batch_.names != nullptr) {
    if (const ValidationCode numbers = CheckNumbers(row); numbers != ValidationCode::kNone)
      return DescribeNumbers(row, numbers);
    if (code == ValidationCode::kIndexOutOfRange)
      return {code, "indices", "one of the names was sent again since; use its new number"};
  }
  double squared_norm = 0;
  const ValidationCode before = batch_.names == nullptr
                                    ? CheckRow(row, size_, max_features_, &squared_norm)
                                : std::isfinite(SquaredNorm(row)) ? ValidationCode::kNone
                                                                  : ValidationCode::kNonFiniteValue;
  if (before != ValidationCode::kNone) return DescribeRow(row, size_, max_features_, before);
  if (code == ValidationCode::kNonFiniteValue) {
    return {code, "values",
            expansion_ == nullptr ? "names that share a slot add up to no finite number"
                                  : "the feature map takes these values out of float32's range"};
  }
  Prepare(i);
  const Extent& extent = mapped_.extent;
  const char* const field = row.indices == nullptr ? "values" : "indices";
  if (extent.features > max_features_) {
    return {code, field,
            absl::StrCat(row.size, " features, which the feature map makes more than ",
                         max_features_, " of; at most that many are taken")};
  }
  return {code, field,
          absl::StrCat("the names of ", extent.features, " products would take ", extent.name_bytes,
                       " bytes; at most ", kMaxRowNameBytes, " are taken")};
}

Row Mapper::Map(size_t i) {
  if (by_table_ && StateOf(i) != RowState::kSharesSlots) {
    const Row row = batch_.row(i);
    const uint32_t* const indices = mapped_indices_.get() + batch_.row_begin(i);
    return Row{row.size == 0 ? kNoIndices : indices, row.values, row.size};
  }
  if (batch_.names == nullptr && expansion_ == nullptr) return batch_.row(i);
  Prepare(i);
  return mapped_kind_ == Kind::kNamed ? ByProductNumber() : row_;
}

Row Mapper::MapInOrder(size_t i) {
  if (!by_table_ || kind_ != Kind::kHashed) return Map(i);
  Prepare(i);
  return row_;
}

void Mapper::Prepare(size_t i) {
  if (prepared_ == i) return;
  prepared_ = i;
  fault_ = ValidationCode::kNone;
  if (expansion_ == nullptr) {
    row_ = InSlots(batch_.row(i));
  } else {
    fault_ = Expand(batch_.row(i));
  }
  squared_norm_ = SquaredNorm(row_);
  if (!std::isfinite(squared_norm_)) fault_ = ValidationCode::kNonFiniteValue;
}

ValidationCode Mapper::Expand(const Row& row) {
  Source source{row, {}, {}};
  row_ = Row{kNoIndices, nullptr, 0};
  if (IsOutdated(row)) return ValidationCode::kIndexOutOfRange;
  if (kind_ == Kind::kHashed && !expansion_->by_name()) {
    source.row = InSlots(row);
  } else if (batch_.names != nullptr) {
    source = SortByName(row);
  }
  const ValidationCode code = expansion_->Expand(source, max_features_, mapped_);
  if (code == ValidationCode::kNone) row_ = mapped_.row;
  return code;
}

bool Mapper::IsOutdated(const Row& row) {
  if (batch_.names == nullptr || row.size == 0) return false;
  numbers_.resize(row.size);
  return batch_.names->Map({row.indices, row.size}, numbers_.data()) ==
         NameTable::Mapping::kOutdated;
}

Source Mapper::SortByName(const Row& row) {
  NameTable& names = *batch_.names;
  by_name_.clear();
  for (size_t i = 0; i < row.size; ++i) by_name_.emplace_back(names.name(row.index(i)), i);
  std::sort(by_name_.begin(), by_name_.end());
  sorted_names_.clear();
  sorted_slots_.clear();
  sorted_positions_.clear();
  sorted_values_.clear();
  for (const auto& [name, i] : by_name_) {
    sorted_positions_.push_back(static_cast<uint32_t>(sorted_names_.size()));
    sorted_names_.push_back(name);
    sorted_values_.push_back(row.value(i));
    if (kind_ == Kind::kHashed) sorted_slots_.push_back(names.Index(row.index(i)));
  }
  const uint32_t* const positions = row.size == 0 ? kNoIndices : sorted_positions_.data();
  return {Row{positions, sorted_values_.data(), row.size}, sorted_names_, sorted_slots_};
}

Row Mapper::InSlots(const Row& row) {
  const bool dense = row.indices == nullptr;
  if (!dense && batch_.names == nullptr) return row;
  slots_.Clear();
  for (size_t i = 0; i < row.size; ++i) {
    // The zeros of a dense row are no features.
    if (dense && row.value(i) == 0) continue;
    slots_.Add(dense ? row.index(i) : batch_.names->Index(row.index(i)), row.value(i));
  }
  return slots_.Sum();
}

Row Mapper::ByProductNumber() {
  constexpr size_t kFindWork = 100;
  numbers_.clear();
  for (size_t i = 0; i < row_.size; ++i) {
    // Unknown names have the weight 0 in every model.
    numbers_.push_back(KeepGoing(kFindWork) ? dictionary_->Find(mapped_.names[i])
                                            : Dictionary::kUnknown);
  }
  return Row{row_.size == 0 ? kNoIndices : numbers_.data(), row_.values, row_.size};
}

void Mapper::UnknownNames(size_t i, std::vector<absl::string_view>& names) {
  names.clear();
  if (mapped_kind_ != Kind::kNamed) return;
  if (expansion_ != nullptr) {
    Prepare(i);
    for (size_t j = 0; j < row_.size; ++j) {
      if (!KeepGoing(1)) return;
      if (dictionary_->Find(mapped_.names[j]) == Dictionary::kUnknown)
        names.push_back(mapped_.names[j]);
    }
    return;
  }
  const Row row = batch_.row(i);
  const Row mapped = Map(i);
  for (size_t j = 0; j < row.size; ++j) {
    if (mapped.index(j) == Dictionary::kUnknown) names.push_back(batch_.names->name(row.index(j)));
  }
}

bool Mapper::AddUnknownNames(size_t i, uint32_t cap, Dictionary& dictionary,
                             std::vector<std::string>& added) {
  std::vector<absl::string_view> names;
  UnknownNames(i, names);
  if (dictionary.size() + names.size() > cap) return false;
  for (const absl::string_view name : names) {
    dictionary.Add(name);
    added.emplace_back(name);
  }
  if (names.empty() || expansion_ != nullptr) return true;
  const Row row = batch_.row(i);
  const Row mapped = Map(i);
  uint32_t number = dictionary.size() - static_cast<uint32_t>(names.size());
  for (size_t j = 0; j < row.size; ++j) {
    if (mapped.index(j) == Dictionary::kUnknown) batch_.names->SetNumber(row.index(j), ++number);
  }
  mapped_end_ = mapped_begin_;
  return true;
}

// For explanations, so not on the path of learning.
constexpr size_t kPartWork = 100;
void Mapper::Parts(size_t i, const FeatureSpace& space,
                   absl::FunctionRef<void(FeaturePart)> on_part) {
  if (expansion_ == nullptr && !batch_.texts.empty())
    return PartsOfText(batch_.texts[i], space, on_part);
  const bool as_sent = expansion_ == nullptr;
  const Row row = as_sent ? batch_.row(i) : Map(i);
  for (size_t j = 0; j < row.size; ++j) {
    if (!KeepGoing(kPartWork)) return;
    const bool by_name = as_sent && batch_.names != nullptr;
    on_part({"", by_name ? batch_.names->Index(row.index(j)) : row.index(j), row.value(j), j});
  }
}

void Mapper::PartsOfText(absl::string_view text, const FeatureSpace& space,
                         absl::FunctionRef<void(FeaturePart)> on_part) {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  // The row was made from it: it has no error.
  (void)text_.Read(text, *space.text, space.size, kMaxBatchGrams, indices, values);
  if (Stopped()) return;
  const Row row{indices.data(), values.data(), indices.size()};
  const bool keep = keeps_norm_ || !has_frequencies_;
  const double norm = ScaleText(row, frequencies_.get(), keep, values.data());
  text_.ForEachFeature(*space.text, space.size, [&](const TextFeature& feature) {
    const float frequency = frequencies_ == nullptr ? 1.0F : frequencies_->of(feature.slot);
    const auto value = static_cast<float>(static_cast<double>(feature.value * frequency) / norm);
    on_part({"", feature.slot, value, feature.key});
  });
}

void Mapper::NameParts(size_t i, const FeatureSpace& space, std::span<FeaturePart* const> parts) {
  if (expansion_ == nullptr && !batch_.texts.empty()) {
    absl::flat_hash_map<uint64_t, std::string> names;
    for (const FeaturePart* const part : parts) names.try_emplace(part->id);
    text_.FindNames(*space.text, space.size, names);
    for (FeaturePart* const part : parts) part->name = std::move(names[part->id]);
    return;
  }
  if (expansion_ != nullptr) Prepare(i);
  const bool products = kind_ == Kind::kDense && space.map.kind == FeatureMap::Kind::kPolynomial;
  const Row sent = batch_.row(i);
  for (FeaturePart* const part : parts) {
    if (expansion_ == nullptr) {
      if (batch_.names != nullptr)
        part->name = std::string(batch_.names->name(sent.index(part->id)));
    } else if (mapped_kind_ == Kind::kNamed) {
      part->name = std::string(mapped_.names[part->id]);
    } else if (products) {
      part->name = ProductName(part->index, space);
    }
  }
}

}  // namespace perceptrond
