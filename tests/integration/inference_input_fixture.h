// What the tests of the Open Inference Protocol's input tensors share: three models, and raw
// contents.
#pragma once

#include <string>
#include <vector>

#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {

class InferenceInputTest : public InferenceTest {
 protected:
  InferenceInputTest() {
    // Its score is its feature.
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
    v1::WeightVector& start =
        *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
    start.add_indices(0);
    start.add_values(1);
    Create("same", settings);
    CreateDense("plane", 2);
    v1::Model words;
    words.mutable_feature_space()->mutable_named();
    Create("words", words);
  }
  // The features of raw rows of one.
  std::vector<float> Echo(const std::string& datatype, const std::string& raw, int64_t rows) {
    oip::ModelInferRequest request;
    request.set_model_name("same");
    AddTensor(request, "features", datatype, {rows, 1});
    request.add_raw_input_contents(raw);
    request.add_outputs()->set_name("score");
    const oip::ModelInferResponse answer = Answer(request);
    std::vector<float> scores;
    if (answer.raw_output_contents_size() == 0) return scores;
    for (size_t i = 0; i < answer.raw_output_contents(0).size(); i += 4) {
      uint32_t bits = 0;
      for (size_t byte = 0; byte < 4; ++byte) {
        const auto value = static_cast<uint8_t>(answer.raw_output_contents(0)[i + byte]);
        bits |= static_cast<uint32_t>(value) << (8 * byte);
      }
      scores.push_back(std::bit_cast<float>(bits));
    }
    return scores;
  }
  std::string RefusalOf(const std::string& datatype, const std::string& raw, int64_t rows) {
    oip::ModelInferRequest request;
    request.set_model_name("same");
    AddTensor(request, "features", datatype, {rows, 1});
    request.add_raw_input_contents(raw);
    return Refusal(request);
  }
  static std::string Numbers(const std::vector<uint64_t>& numbers, int bytes) {
    std::string raw;
    for (const uint64_t number : numbers) AppendBytes(number, bytes, raw);
    return raw;
  }
  static std::string Doubles(const std::vector<double>& numbers) {
    std::string raw;
    for (const double number : numbers) AppendBytes(std::bit_cast<uint64_t>(number), 8, raw);
    return raw;
  }
};

}  // namespace perceptrond::testing
