// The perceptron's float32 weights, written again from the journal's records: each update rounds once from float64.
#pragma once

#include <bit>
#include <vector>

#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond::testing {

class ReplayedWeights {
 public:
  explicit ReplayedWeights(size_t dimension) : weights_(dimension) {}

  // Expects each row to be a mistake on the state that it is applied to.
  void Apply(const storage::UpdateRecord& record) {
    EXPECT_EQ(record.first_revision(), revision_ + 1);
    int at = 0;
    for (int row = 0; row < record.labels_size(); ++row) {
      double score = bias_;
      const int begin = at;
      for (; at < static_cast<int>(record.row_ends(row)); ++at)
        score += static_cast<double>(weights_[record.indices(at)]) * record.values(at);
      // The product's sum may have another order.
      EXPECT_LE(record.labels(row) * score, 1e-9);
      for (int i = begin; i < at; ++i) {
        float& weight = weights_[record.indices(i)];
        weight = static_cast<float>(weight + static_cast<double>(record.labels(row)) *
                                                 static_cast<double>(record.values(i)));
      }
      bias_ += record.labels(row);
      ++revision_;
    }
  }
  void ExpectEqual(const Model& model) const {
    EXPECT_EQ(model.revision(), revision_);
    const WeightList list = ListWeights(model)[0];
    std::vector<float> weights(weights_.size());
    for (size_t i = 0; i < list.indices.size(); ++i) weights[list.indices[i]] = list.values[i];
    for (size_t i = 0; i < weights.size(); ++i)
      EXPECT_EQ(std::bit_cast<uint32_t>(weights[i]), std::bit_cast<uint32_t>(weights_[i])) << i;
    EXPECT_EQ(list.bias, bias_);
  }

 private:
  std::vector<float> weights_;
  double bias_ = 0;
  uint64_t revision_ = 0;
};

}  // namespace perceptrond::testing
