// What the tests of the Open Inference Protocol share: its stub, and how its answers compare with
// Predict's.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "inference/inference_service.grpc.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/inference.h"

namespace perceptrond::testing {

class InferenceTest : public ServerTest {
 protected:
  explicit InferenceTest(std::vector<std::string> flags = {}) : ServerTest(std::move(flags)) {
    inference_ = oip::GRPCInferenceService::NewStub(channel_);
  }

  grpc::Status Infer(const oip::ModelInferRequest& request, oip::ModelInferResponse& response) {
    grpc::ClientContext context;
    return inference_->ModelInfer(&context, request, &response);
  }
  oip::ModelInferResponse Answer(const oip::ModelInferRequest& request) {
    oip::ModelInferResponse response;
    const grpc::Status status = Infer(request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  std::string Refusal(const oip::ModelInferRequest& request) {
    oip::ModelInferResponse response;
    return Outcome(Infer(request, response));
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

  std::unique_ptr<oip::GRPCInferenceService::Stub> inference_;
};

// The output of a name; an empty one if there is none.
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

// NaN too is compared by its bits.
template <typename Field>
std::vector<uint32_t> Bits(const Field& floats) {
  std::vector<uint32_t> bits;
  for (const float value : floats) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

}  // namespace perceptrond::testing
