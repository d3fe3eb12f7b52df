// Calls of the Open Inference Protocol.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "inference/inference_service.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/inference.h"

namespace perceptrond::testing {

class InferenceTest : public ServerTest {
 protected:
  using ServerTest::ServerTest;

  std::string Infer(const oip::ModelInferRequest& request,
                    oip::ModelInferResponse* response = nullptr) {
    return Call("inference.GRPCInferenceService/ModelInfer", request.ShortDebugString(), response);
  }
  oip::ModelInferResponse Answer(const oip::ModelInferRequest& request) {
    oip::ModelInferResponse response;
    EXPECT_EQ(Infer(request, &response), "OK");
    return response;
  }
  oip::ModelMetadataResponse Metadata(const std::string& id) {
    return AnswerOf<oip::ModelMetadataResponse>("inference.GRPCInferenceService/ModelMetadata",
                                                "name: '" + id + "'");
  }
  void LearnSome(const std::string& id, const std::string& examples) {
    EXPECT_EQ(Call("LearningService/Learn", "model: 'models/" + id + "' " + examples), "OK");
  }
  // One dense row of as many ones.
  static oip::ModelInferRequest Ones(const std::string& id, int64_t dimension) {
    oip::ModelInferRequest request;
    request.set_model_name(id);
    AddFloats(request, "features", {1, dimension},
              std::vector<float>(static_cast<size_t>(dimension), 1));
    return request;
  }
};

// The output of this name; an empty one if there is none.
inline oip::ModelInferResponse::InferOutputTensor Output(const oip::ModelInferResponse& response,
                                                         const std::string& name) {
  for (const auto& output : response.outputs()) {
    if (output.name() == name) return output;
  }
  return {};
}

// "NAME DATATYPE [SHAPE]" of each tensor.
template <typename Tensors>
std::vector<std::string> Describe(const Tensors& tensors) {
  std::vector<std::string> words;
  for (const auto& tensor : tensors) {
    std::string shape;
    for (const int64_t size : tensor.shape())
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    words.push_back(tensor.name() + " " + tensor.datatype() + " [" + shape + "]");
  }
  return words;
}

}  // namespace perceptrond::testing
