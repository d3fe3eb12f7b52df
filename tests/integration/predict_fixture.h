// What the tests of unary calls share: a server with the textbook's plane, and three points in it.
#pragma once

#include <utility>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class PredictTest : public ServerTest {
 protected:
  PredictTest() {
    // theta = (1, -1), theta_0 = 1.
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::WeightVector& start =
        *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
    start.add_indices(0);
    start.add_values(1);
    start.add_indices(1);
    start.add_values(-1);
    start.set_bias(1);
    Create("plane", settings);
  }
  static v1::PredictRequest ThreePoints() {
    v1::PredictRequest request;
    request.set_model("models/plane");
    for (const auto& [x, y] : {std::pair{1.0F, 3.0F}, {2.5F, 1.5F}, {-1.5F, 1.5F}}) {
      v1::DenseFeatures& dense = *request.add_examples()->mutable_dense();
      dense.add_values(x);
      dense.add_values(y);
    }
    return request;
  }
};

}  // namespace perceptrond::testing
