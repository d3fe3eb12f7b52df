// An independent reader of ExampleColumns with names, for tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "perceptron/v1/example.pb.h"
#include "tests/support/names.h"

namespace perceptrond::client {

using NamedFeatures = std::map<std::string, float>;

inline std::vector<std::string> NamesIn(const perceptron::v1::NameColumn& column) {
  std::vector<std::string> names = name_columns::NamesOf(column);
  EXPECT_EQ(absl::StrJoin(names, ""), column.text());
  return names;
}

inline float FromHalf(uint16_t half) {
  const float sign = (half & 0x8000) != 0 ? -1.0f : 1.0f;
  const int exponent = half >> 10 & 31;
  const float fraction = static_cast<float>(half & 1023) / 1024;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

// The server's side of a stream: its table of names, and what messages say by it. Expects messages
// that are valid.
class NameTableReader {
 public:
  explicit NameTableReader(size_t size) : size_(size) {}

  std::vector<NamedFeatures> Read(const perceptron::v1::ExampleColumns& columns) {
    const std::vector<std::string> added = NamesIn(columns.stream_names());
    EXPECT_LE(added.size(), size_);
    names_.insert(names_.end(), added.begin(), added.end());
    const std::vector<std::string> own = NamesIn(columns.feature_names());
    EXPECT_FALSE(columns.has_feature_names() && columns.has_stream_names());
    std::vector<std::string> distinct = own;
    std::sort(distinct.begin(), distinct.end());
    EXPECT_EQ(std::adjacent_find(distinct.begin(), distinct.end()), distinct.end());
    std::vector<NamedFeatures> rows;
    size_t i = 0;
    for (const uint32_t end : columns.row_ends()) {
      NamedFeatures features;
      int64_t before = -1;
      for (; i < end; ++i) {
        const int64_t index = IndexAt(columns, i, before);
        EXPECT_LT(before, index) << "indices ascend strictly";
        before = index;
        if (columns.has_feature_names()) {
          features[own.at(static_cast<size_t>(index))] = ValueAt(columns, i);
          continue;
        }
        EXPECT_LT(index, static_cast<int64_t>(names_.size()));
        EXPECT_GE(index + static_cast<int64_t>(size_), static_cast<int64_t>(names_.size()));
        features[names_.at(static_cast<size_t>(index))] = ValueAt(columns, i);
      }
      rows.push_back(features);
    }
    return rows;
  }

  // All names that were ever appended.
  const std::vector<std::string>& names() const { return names_; }

 private:
  static int64_t IndexAt(const perceptron::v1::ExampleColumns& columns, size_t i, int64_t before) {
    const auto at = static_cast<int>(i);
    return columns.index_deltas_size() > 0 ? before + 1 + columns.index_deltas(at)
                                           : columns.indices(at);
  }
  static float ValueAt(const perceptron::v1::ExampleColumns& columns, size_t i) {
    if (columns.values_size() > 0) return columns.values(static_cast<int>(i));
    if (columns.half_values().empty()) return 1;
    const auto byte = [&](size_t at) {
      return static_cast<unsigned>(static_cast<unsigned char>(columns.half_values().at(at)));
    };
    return FromHalf(static_cast<uint16_t>(byte(2 * i) | byte(2 * i + 1) << 8));
  }

  size_t size_;
  std::vector<std::string> names_;
};

}  // namespace perceptrond::client
