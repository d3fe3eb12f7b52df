#include "core/features/mapper.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/features/names.h"
#include "core/features/polynomial.h"
#include "core/vector/kernels.h"
#include "core/vector/name.h"

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
      mapped_kind_(space.mapped().kind),
      size_(space.size),
      max_features_(max_features),
      expansion_(std::move(expansion)) {}

ValidationError Mapper::Begin(const Batch& batch) {
  batch_ = batch;
  prepared_ = kNoRow;
  if (ValidationError error = CheckForm()) return error;
  if (ValidationError error = CheckNames()) return error;
  if (kind_ == Kind::kHashed) {
    name_indices_.clear();
    for (const absl::string_view name : batch.names) name_indices_.push_back(NameSlot(name, size_));
  }
  return {};
}

ValidationError Mapper::CheckForm() const {
  const bool named_batch = !batch_.names.empty();
  if (kind_ == Kind::kDense && named_batch) {
    return {ValidationCode::kMalformedColumns, "feature_names",
            "a dense model takes indices, not names"};
  }
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

ValidationError Mapper::CheckNames() const {
  for (size_t i = 0; i < batch_.names.size(); ++i) {
    if (batch_.names[i].empty() || batch_.names[i].size() > kMaxNameBytes) {
      return {ValidationCode::kBadName, absl::StrCat("feature_names[", i, "]"),
              absl::StrCat("a name has 1 to ", kMaxNameBytes, " bytes, this has ",
                           batch_.names[i].size())};
    }
  }
  return {};
}

void Mapper::Resolve(const Dictionary& dictionary) {
  dictionary_ = &dictionary;
  resolved_size_ = dictionary.size();
  // Names of products are looked up row by row.
  if (mapped_kind_ != Kind::kNamed || expansion_ != nullptr) return;
  name_indices_.clear();
  for (const absl::string_view name : batch_.names) name_indices_.push_back(dictionary.Find(name));
}

uint32_t Mapper::index_limit() const {
  return batch_.names.empty() ? size_ : static_cast<uint32_t>(batch_.names.size());
}

ValidationCode Mapper::Check(size_t i, double* squared_norm) {
  const ValidationCode code = CheckRow(batch_.row(i), index_limit(), max_features_, squared_norm);
  if (code != ValidationCode::kNone) return code;
  const bool passes_through =
      expansion_ == nullptr && (kind_ != Kind::kHashed || batch_.names.empty());
  if (passes_through) return ValidationCode::kNone;
  Prepare(i);
  *squared_norm = squared_norm_;
  return fault_;
}

ValidationError Mapper::Describe(size_t i, ValidationCode code) {
  const Row row = batch_.row(i);
  double squared_norm = 0;
  const ValidationCode before = CheckRow(row, index_limit(), max_features_, &squared_norm);
  if (before != ValidationCode::kNone)
    return DescribeRow(row, index_limit(), max_features_, before);
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
  if (expansion_ == nullptr) {
    if (batch_.names.empty()) return batch_.row(i);
    if (kind_ == Kind::kNamed) return ByNumber(batch_.row(i));
  }
  Prepare(i);
  return mapped_kind_ == Kind::kNamed ? ByProductNumber() : row_;
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
  Source source{row, batch_.names, {}};
  if (kind_ == Kind::kHashed) {
    if (expansion_->by_name()) {
      source.slots = name_indices_;
    } else {
      source = {InSlots(row), {}, {}};
    }
  }
  const ValidationCode code = expansion_->Expand(source, max_features_, mapped_);
  row_ = code == ValidationCode::kNone ? mapped_.row : Row{kNoIndices, nullptr, 0};
  return code;
}

Row Mapper::InSlots(const Row& row) {
  const bool dense = row.indices == nullptr;
  if (!dense && batch_.names.empty()) return row;
  slots_.Clear();
  for (size_t i = 0; i < row.size; ++i) {
    // The zeros of a dense row are no features.
    if (dense && row.value(i) == 0) continue;
    slots_.Add(dense ? row.index(i) : name_indices_[row.index(i)], row.value(i));
  }
  return slots_.Sum();
}

Row Mapper::ByNumber(const Row& row) {
  numbers_.clear();
  for (size_t i = 0; i < row.size; ++i) numbers_.push_back(name_indices_[row.index(i)]);
  return Row{row.size == 0 ? kNoIndices : numbers_.data(), row.values, row.size};
}

Row Mapper::ByProductNumber() {
  numbers_.clear();
  for (size_t i = 0; i < row_.size; ++i) numbers_.push_back(dictionary_->Find(mapped_.names[i]));
  return Row{row_.size == 0 ? kNoIndices : numbers_.data(), row_.values, row_.size};
}

void Mapper::UnknownNames(size_t i, std::vector<absl::string_view>& names) {
  names.clear();
  if (mapped_kind_ != Kind::kNamed) return;
  if (expansion_ != nullptr) {
    Prepare(i);
    for (size_t j = 0; j < row_.size; ++j) {
      if (dictionary_->Find(mapped_.names[j]) == Dictionary::kUnknown)
        names.push_back(mapped_.names[j]);
    }
    return;
  }
  const Row row = batch_.row(i);
  for (size_t j = 0; j < row.size; ++j) {
    if (name_indices_[row.index(j)] == Dictionary::kUnknown)
      names.push_back(batch_.names[row.index(j)]);
  }
}

// For explanations, so not on the path of learning.
void Mapper::Parts(size_t i, const FeatureSpace& space, std::vector<FeaturePart>& parts) {
  parts.clear();
  if (expansion_ == nullptr) return PartsAsSent(batch_.row(i), parts);
  const bool products = kind_ == Kind::kDense && space.map.kind == FeatureMap::Kind::kPolynomial;
  const Row row = Map(i);
  for (size_t j = 0; j < row.size; ++j) {
    FeaturePart& part = parts.emplace_back();
    part.index = row.index(j);
    part.value = row.value(j);
    if (mapped_kind_ == Kind::kNamed) part.name = std::string(mapped_.names[j]);
    if (products) part.name = ProductName(part.index, space);
  }
}

void Mapper::PartsAsSent(const Row& row, std::vector<FeaturePart>& parts) const {
  const bool named = !batch_.names.empty();
  for (size_t j = 0; j < row.size; ++j) {
    FeaturePart& part = parts.emplace_back();
    part.index = named ? name_indices_[row.index(j)] : row.index(j);
    part.value = row.value(j);
    if (named) part.name = std::string(batch_.names[row.index(j)]);
  }
}

}  // namespace perceptrond
