#include "core/features/mapper.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/features/hashing.h"

namespace perceptrond {
namespace {

constexpr size_t kMaxNameBytes = 1024;

}  // namespace

Finding Mapper::Begin(const Batch& batch) {
  batch_ = batch;
  const bool named_batch = !batch.names.empty();
  if (space_.kind == FeatureSpace::Kind::kDense && named_batch) {
    return {Fault::kMalformedColumns, "feature_names", "a dense model takes indices, not names"};
  }
  if (space_.kind == FeatureSpace::Kind::kNamed && !named_batch &&
      !(batch.indices.empty() && batch.dense_width == 0)) {
    return {Fault::kMalformedColumns, batch.dense_width > 0 ? "dense_width" : "feature_names",
            "a model with named features takes names, not indices"};
  }
  for (size_t i = 0; i < batch.names.size(); ++i) {
    if (batch.names[i].empty() || batch.names[i].size() > kMaxNameBytes) {
      return {Fault::kBadName, absl::StrCat("feature_names[", i, "]"),
              absl::StrCat("a name has 1 to ", kMaxNameBytes, " bytes, this has ",
                           batch.names[i].size())};
    }
  }
  if (space_.kind == FeatureSpace::Kind::kHashed) {
    places_.clear();
    for (const absl::string_view name : batch.names) places_.push_back(NameSlot(name, space_.size));
  }
  return {};
}

void Mapper::Resolve(const Dictionary& dictionary) {
  resolved_size_ = dictionary.size();
  if (space_.kind != FeatureSpace::Kind::kNamed) return;
  places_.clear();
  for (const absl::string_view name : batch_.names) places_.push_back(dictionary.Find(name));
}

uint32_t Mapper::index_limit() const {
  return batch_.names.empty() ? space_.size : static_cast<uint32_t>(batch_.names.size());
}

Row Mapper::Map(size_t i) {
  const Row row = batch_.row(i);
  if (batch_.names.empty()) return row;
  return space_.kind == FeatureSpace::Kind::kHashed ? MapHashed(row) : MapNamed(row);
}

Row Mapper::MapHashed(const Row& row) {
  features_.clear();
  for (size_t i = 0; i < row.size; ++i) features_.push_back({places_[row.index(i)], row.value(i)});
  // Stable: names that share a slot add up in the order of their bytes, whoever sent them.
  std::stable_sort(features_.begin(), features_.end(),
                   [](const Feature& a, const Feature& b) { return a.index < b.index; });
  indices_.clear();
  values_.clear();
  for (const Feature& feature : features_) {
    if (!indices_.empty() && indices_.back() == feature.index) {
      values_.back() += feature.value;
    } else {
      indices_.push_back(feature.index);
      values_.push_back(feature.value);
    }
  }
  return Row{indices_.data(), values_.data(), indices_.size()};
}

Row Mapper::MapNamed(const Row& row) {
  indices_.clear();
  for (size_t i = 0; i < row.size; ++i) indices_.push_back(places_[row.index(i)]);
  return Row{indices_.data(), row.values, row.size};
}

void Mapper::UnknownNames(size_t i, std::vector<absl::string_view>& names) const {
  names.clear();
  const Row row = batch_.row(i);
  for (size_t j = 0; j < row.size; ++j) {
    if (places_[row.index(j)] == Dictionary::kUnknown) names.push_back(batch_.names[row.index(j)]);
  }
}

}  // namespace perceptrond
