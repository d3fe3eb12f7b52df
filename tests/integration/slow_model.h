// A model whose predictions take a while: some 50 ms a row.
#pragma once

#include <string>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::testing {

// A map that makes a prediction of many rows take a while.
inline ::perceptron::v1::Model SlowSettings() {
  ::perceptron::v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
  ::perceptron::v1::FeatureMap::Fourier& fourier =
      *settings.mutable_feature_space()->mutable_map()->mutable_fourier();
  fourier.set_dimension(1'000'000);
  fourier.set_gamma(1);
  return settings;
}

// Of a second or two.
inline ::perceptron::v1::PredictRequest SlowPrediction(const std::string& model) {
  ::perceptron::v1::PredictRequest request;
  request.set_model(model);
  request.mutable_columns()->set_dense_width(1);
  for (int i = 0; i < 40; ++i) request.mutable_columns()->add_values(static_cast<float>(i));
  return request;
}

}  // namespace perceptrond::testing
