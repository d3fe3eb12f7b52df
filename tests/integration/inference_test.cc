// The Open Inference Protocol over a real connection: health, metadata, versions, outputs,
// parameters, and what a Triton client puts on the wire.
#include <csignal>
#include <thread>

#include "absl/strings/escaping.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class InferenceServiceTest : public InferenceTest {
 protected:
  grpc::Status ModelReady(const std::string& id, const std::string& version, bool& ready) {
    grpc::ClientContext context;
    oip::ModelReadyRequest request;
    request.set_name(id);
    request.set_version(version);
    oip::ModelReadyResponse response;
    const grpc::Status status = inference_->ModelReady(&context, request, &response);
    ready = response.ready();
    return status;
  }
  grpc::Status ServerReady(bool& ready) {
    grpc::ClientContext context;
    oip::ServerReadyResponse response;
    const grpc::Status status = inference_->ServerReady(&context, {}, &response);
    ready = response.ready();
    return status;
  }
  grpc::Status ServerLive(bool& live) {
    grpc::ClientContext context;
    oip::ServerLiveResponse response;
    const grpc::Status status = inference_->ServerLive(&context, {}, &response);
    live = response.live();
    return status;
  }
};

TEST_F(InferenceServiceTest, TheServerIsLiveAndReadyAndSaysThatItLearns) {
  bool yes = false;
  EXPECT_TRUE(ServerLive(yes).ok());
  EXPECT_TRUE(yes);
  yes = false;
  EXPECT_TRUE(ServerReady(yes).ok());
  EXPECT_TRUE(yes);
  grpc::ClientContext context;
  oip::ServerMetadataResponse metadata;
  ASSERT_TRUE(inference_->ServerMetadata(&context, {}, &metadata).ok());
  EXPECT_EQ(metadata.name(), "perceptrond");
  EXPECT_THAT(RunServer("--version").out, HasSubstr("perceptrond " + metadata.version() + " "));
  EXPECT_THAT(metadata.extensions(), Contains("learning"));
}

TEST_F(InferenceServiceTest, ADrainingServerIsLiveAndNotReadyAndTakesNoPredictions) {
  // A map that makes a prediction of many rows take a while: the server drains as long.
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
  auto& fourier = *settings.mutable_feature_space()->mutable_map()->mutable_fourier();
  fourier.set_dimension(1'000'000);
  fourier.set_gamma(1);
  Create("slow", settings);
  oip::ModelInferRequest slow;
  slow.set_model_name("slow");
  AddFloats(slow, "features", {60, 1}, std::vector<float>(60, 1));
  oip::ModelInferResponse answer;
  grpc::Status answered;
  std::thread caller([&] { answered = Infer(slow, answer); });
  while (StartedCalls(server_.metrics_port(), "ModelInfer") == 0) {
  }
  server_.Signal(SIGTERM);
  bool ready = true;
  grpc::Status status;
  do {
    status = ServerReady(ready);
  } while (status.ok() && ready);
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_FALSE(ready);
  bool live = false;
  EXPECT_TRUE(ServerLive(live).ok());
  EXPECT_TRUE(live);
  ready = true;
  EXPECT_TRUE(ModelReady("slow", "", ready).ok());
  EXPECT_FALSE(ready);
  EXPECT_EQ(Refusal(slow), "14 DRAINING ");
  caller.join();
  EXPECT_TRUE(answered.ok()) << answered.error_message();
  EXPECT_EQ(Output(answer, "score").contents().fp32_contents_size(), 60);
  EXPECT_EQ(server_.Wait(), 0);
}

TEST_F(InferenceServiceTest, MetadataSaysWhichTensorsAModelTakesAndGives) {
  CreateDense("plane", 2);
  oip::ModelMetadataResponse metadata = Metadata("plane");
  EXPECT_EQ(metadata.name(), "plane");
  EXPECT_EQ(metadata.platform(), "perceptrond_perceptron");
  EXPECT_THAT(metadata.versions(), ElementsAre("0"));
  EXPECT_THAT(Describe(metadata.inputs()), ElementsAre("features FP32 [-1,2]"));
  EXPECT_THAT(Describe(metadata.outputs()),
              ElementsAre("label INT32 [-1]", "score FP32 [-1]", "distance FP32 [-1]"));
  EXPECT_EQ(metadata.properties().at("other_inputs"),
            "row_ends UINT32 [-1], indices UINT32 [-1], values FP32 [-1]");

  v1::Model mail;
  mail.mutable_feature_space()->mutable_hashed()->set_bits(4);
  mail.add_label_names("ham");
  mail.add_label_names("spam");
  mail.mutable_learner()->mutable_voted();
  Create("mail", mail);
  metadata = Metadata("mail");
  EXPECT_EQ(metadata.platform(), "perceptrond_voted-perceptron");
  EXPECT_THAT(Describe(metadata.inputs()), ElementsAre("names BYTES [-1,-1]"));
  EXPECT_THAT(Describe(metadata.outputs()), ElementsAre("label BYTES [-1]", "score FP32 [-1]"));

  v1::Model topics;
  topics.mutable_feature_space()->mutable_named();
  topics.mutable_learner()->mutable_logistic_regression();
  topics.mutable_learner()->mutable_classes()->set_max_classes(5);
  topics.mutable_learner()->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  Create("topics", topics);
  EXPECT_THAT(Describe(Metadata("topics").outputs()),
              ElementsAre("label BYTES [-1]", "score FP32 [-1]", "distance FP32 [-1]",
                          "probability FP32 [-1]", "class_scores FP32 [-1,-1]",
                          "class_probabilities FP32 [-1,-1]", "class_names BYTES [-1]"));
}

// Who sends exactly the inputs that the metadata lists is answered.
TEST_F(InferenceServiceTest, TheInputsOfTheMetadataAreAllThatAModelNeeds) {
  CreateDense("plane", 3);
  v1::Model words;
  words.mutable_feature_space()->mutable_named();
  Create("words", words);
  for (const char* id : {"plane", "words"}) {
    oip::ModelInferRequest request;
    request.set_model_name(id);
    const oip::ModelMetadataResponse metadata = Metadata(id);
    for (const auto& input : metadata.inputs()) {
      std::vector<int64_t> shape;
      for (const int64_t size : input.shape()) shape.push_back(size == -1 ? 1 : size);
      if (input.datatype() == "BYTES") AddStrings(request, input.name(), shape, {"x"});
      if (input.datatype() == "FP32") AddFloats(request, input.name(), shape, {1, 2, 3});
    }
    EXPECT_EQ(Output(Answer(request), "label").shape(0), 1);
  }
}

TEST_F(InferenceServiceTest, AVersionIsARevisionAndOnlyThePresentOneCanBeAskedFor) {
  CreateDense("plane", 2);
  LearnSome("plane", {SparseExample(1, {{0, 1}}), SparseExample(-1, {{0, 5}})});
  oip::ModelInferRequest request = Ones("plane", 2);
  EXPECT_EQ(Answer(request).model_version(), "2");
  EXPECT_THAT(Metadata("plane").versions(), ElementsAre("2"));
  request.set_model_version("2");
  EXPECT_EQ(Answer(request).model_version(), "2");
  for (const char* other : {"1", "3", "18446744073709551615"}) {
    request.set_model_version(other);
    EXPECT_EQ(Refusal(request), "5 VERSION_NOT_FOUND ");
    bool ready = true;
    EXPECT_TRUE(ModelReady("plane", other, ready).ok());
    EXPECT_FALSE(ready);
  }
  for (const char* none : {"02", "-1", "latest", " 2", "18446744073709551616"}) {
    request.set_model_version(none);
    EXPECT_EQ(Refusal(request), "3 INVALID_FIELD model_version");
  }
  bool ready = false;
  EXPECT_TRUE(ModelReady("plane", "", ready).ok());
  EXPECT_TRUE(ready);
  ready = false;
  EXPECT_TRUE(ModelReady("plane", "2", ready).ok());
  EXPECT_TRUE(ready);
  LearnSome("plane", {SparseExample(1, {{0, 5}})});
  EXPECT_TRUE(ModelReady("plane", "2", ready).ok());
  EXPECT_FALSE(ready);
}

TEST_F(InferenceServiceTest, MinRevisionRefusesToAnswerFromAnOlderState) {
  CreateDense("plane", 2);
  LearnSome("plane", {SparseExample(1, {{0, 1}})});
  oip::ModelInferRequest request = Ones("plane", 2);
  auto& parameter = (*request.mutable_parameters())["min_revision"];
  parameter.set_int64_param(1);
  Answer(request);
  parameter.set_uint64_param(1);
  Answer(request);
  parameter.set_int64_param(2);
  EXPECT_EQ(Refusal(request), "10 REVISION_TOO_OLD ");
  parameter.set_uint64_param(UINT64_MAX);
  EXPECT_EQ(Refusal(request), "10 REVISION_TOO_OLD ");
  parameter.set_int64_param(-1);
  EXPECT_EQ(Refusal(request), "3 INVALID_FIELD parameters[\"min_revision\"]");
  parameter.set_string_param("1");
  EXPECT_EQ(Refusal(request), "3 INVALID_FIELD parameters[\"min_revision\"]");
}

TEST_F(InferenceServiceTest, UnknownFeaturesAreRefusedOnRequest) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  Create("words", settings);
  oip::ModelInferRequest request;
  request.set_model_name("words");
  oip::ModelInferRequest::InferInputTensor& names = *request.add_inputs();
  names.set_name("names");
  names.set_datatype("BYTES");
  names.add_shape(1);
  names.add_shape(1);
  names.mutable_contents()->add_bytes_contents("zebra");
  Answer(request);
  auto& parameter = (*request.mutable_parameters())["unknown_features"];
  parameter.set_string_param("ignore");
  Answer(request);
  parameter.set_string_param("refuse");
  EXPECT_EQ(Refusal(request), "3 UNKNOWN_FEATURE inputs[0]");
  parameter.set_string_param("maybe");
  EXPECT_EQ(Refusal(request), "3 INVALID_FIELD parameters[\"unknown_features\"]");
}

TEST_F(InferenceServiceTest, AnUnknownModelAndAnInvalidNameAreDifferentErrors) {
  EXPECT_EQ(Refusal(Ones("nobody", 2)), "5 MODEL_NOT_FOUND ");
  EXPECT_EQ(Refusal(Ones("models/plane", 2)), "3 INVALID_FIELD model_name");
  EXPECT_EQ(Refusal(Ones("", 2)), "3 INVALID_FIELD model_name");
  bool ready = true;
  EXPECT_EQ(Reason(ModelReady("nobody", "", ready)), "MODEL_NOT_FOUND");
  EXPECT_EQ(BadField(ModelReady("a b", "", ready)), "name");
  EXPECT_EQ(BadField(ModelReady("a b", "x", ready)), "name");
}

TEST_F(InferenceServiceTest, OutputsComeInTheOrderTheyWereAskedForAndTheIdComesBack) {
  CreateDense("plane", 2);
  LearnSome("plane", {SparseExample(1, {{0, 1}})});
  oip::ModelInferRequest request = Ones("plane", 2);
  request.set_id("42");
  request.add_outputs()->set_name("distance");
  request.add_outputs()->set_name("label");
  const oip::ModelInferResponse answer = Answer(request);
  EXPECT_EQ(answer.id(), "42");
  EXPECT_EQ(answer.model_name(), "plane");
  EXPECT_THAT(Describe(answer.outputs()), ElementsAre("distance FP32 [1]", "label INT32 [1]"));
  request.add_outputs()->set_name("label");
  EXPECT_EQ(Refusal(request), "3 DUPLICATE_TENSOR outputs[2]");
  request.mutable_outputs(2)->set_name("probability");
  EXPECT_EQ(Refusal(request), "3 UNKNOWN_TENSOR outputs[2]");
}

TEST_F(InferenceServiceTest, WhatIsNotKnownYetIsNotANumber) {
  CreateDense("plane", 2);
  oip::ModelInferResponse answer = Answer(Ones("plane", 2));
  EXPECT_THAT(Output(answer, "distance").contents().fp32_contents(),
              ElementsAre(::testing::IsNan()));
  v1::Model topics;
  topics.mutable_feature_space()->mutable_dense()->set_dimension(2);
  topics.mutable_learner()->mutable_classes()->set_max_classes(5);
  topics.mutable_learner()->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  Create("topics", topics);
  answer = Answer(Ones("topics", 2));
  EXPECT_THAT(Output(answer, "label").contents().bytes_contents(), ElementsAre(""));
  EXPECT_THAT(Describe(answer.outputs()),
              ElementsAre("label BYTES [1]", "score FP32 [1]", "distance FP32 [1]",
                          "class_scores FP32 [1,0]", "class_names BYTES [0]"));
}

TEST_F(InferenceServiceTest, MoreScoresOfClassesThanAnAnswerHoldsAreRefusedUnlessNobodyWantsThem) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
  settings.mutable_learner()->mutable_classes()->set_max_classes(10'000);
  Create("many", settings);
  oip::ModelInferRequest request;
  request.set_model_name("many");
  AddFloats(request, "features", {200, 1}, std::vector<float>(200, 1));
  EXPECT_EQ(Refusal(request), "3 TOO_MANY_SCORES outputs");
  request.add_outputs()->set_name("label");
  EXPECT_EQ(Output(Answer(request), "label").shape(0), 200);
}

class InferenceLimitsTest : public InferenceTest {
 protected:
  InferenceLimitsTest() : InferenceTest({"--max-example-features=3"}) {}
};

TEST_F(InferenceLimitsTest, ARowOfTooManyFeaturesIsRefusedWithTheTensorThatHasThem) {
  CreateDense("plane", 9);
  oip::ModelInferRequest request;
  request.set_model_name("plane");
  AddFloats(request, "features", {1, 9}, std::vector<float>(9, 1));
  EXPECT_EQ(Refusal(request), "8 TOO_MANY_FEATURES inputs[0]");
}

TEST_F(InferenceServiceTest, ParametersThatWouldChangeTheAnswerAreRefusedAndOthersIgnored) {
  CreateDense("plane", 2);
  oip::ModelInferRequest request = Ones("plane", 2);
  request.add_outputs()->set_name("label");
  for (const char* ignored : {"priority", "timeout", "sequence_id", "content_type"}) {
    (*request.mutable_parameters())[ignored].set_int64_param(1);
    (*request.mutable_inputs(0)->mutable_parameters())[ignored].set_string_param("x");
  }
  Answer(request);
  oip::ModelInferRequest row_errors = request;
  (*row_errors.mutable_outputs(0)->mutable_parameters())["classification"].set_int64_param(2);
  EXPECT_EQ(Refusal(row_errors),
            "3 UNSUPPORTED_PARAMETER outputs[0].parameters[\"classification\"]");
  row_errors = request;
  (*row_errors.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param(
      "r");
  EXPECT_EQ(Refusal(row_errors),
            "3 UNSUPPORTED_PARAMETER inputs[0].parameters[\"shared_memory_region\"]");
}

TEST_F(InferenceServiceTest, PredictingChangesNothing) {
  CreateDense("plane", 2);
  LearnSome("plane", {SparseExample(1, {{0, 1}})});
  const std::string before = Get("plane").SerializeAsString();
  for (int i = 0; i < 10; ++i) Answer(Ones("plane", 2));
  EXPECT_EQ(Get("plane").SerializeAsString(), before);
}

// What tritonclient.grpc.InferenceServerClient.infer sends for the rows ("win", "a", "") and
// ("home", "", ""), with a request_id, a priority, a timeout and one output: recorded from that
// client.
constexpr const char* kTritonRequest[] = {
    "0a046d61696c",                              // model_name: "mail"
    "1a0137",                                    // id: "7"
    "220e0a087072696f7269747912022803",          // parameters: priority, uint64_param 3
    "220e0a0774696d656f7574120310e807",          // parameters: timeout, int64_param 1000
    "2a120a056e616d6573120542595445531a020203",  // inputs: names, BYTES, [2, 3]
    "32070a056c6162656c",                        // outputs: label
    "3a200300000077696e0100000061",              // raw_input_contents: "win", "a",
    "0000000004000000686f6d650000000000000000",  // "", "home", "", ""
};

TEST_F(InferenceServiceTest, ATritonClientsBytesAreAnsweredInRawBytes) {
  v1::Model mail;
  mail.mutable_feature_space()->mutable_named();
  mail.add_label_names("ham");
  mail.add_label_names("spam");
  Create("mail", mail);
  LearnSome("mail", {NamedExample("spam", {{"win", 1}}), NamedExample("ham", {{"home", 1}})});
  std::string bytes;
  for (const char* const part : kTritonRequest) bytes += absl::HexStringToBytes(part);
  std::vector<std::string> answers;
  const grpc::Status status =
      CallRaw("/inference.GRPCInferenceService/ModelInfer", {bytes}, &answers);
  ASSERT_TRUE(status.ok()) << status.error_message();
  oip::ModelInferResponse answer;
  ASSERT_TRUE(answers.size() == 1 && answer.ParseFromString(answers[0]));
  EXPECT_EQ(answer.id(), "7");
  EXPECT_THAT(Describe(answer.outputs()), ElementsAre("label BYTES [2]"));
  EXPECT_THAT(answer.raw_output_contents(),
              ElementsAre(std::string("\4\0\0\0spam\3\0\0\0ham", 15)));
}

TEST_F(InferenceServiceTest, ReflectionHealthAndMetricsKnowTheService) {
  std::vector<std::string> answers;
  ASSERT_TRUE(CallRaw("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
                      {std::string("\x3a\x00", 2)}, &answers)
                  .ok());
  EXPECT_THAT(answers.at(0), HasSubstr("inference.GRPCInferenceService"));
  // HealthCheckRequest.service; HealthCheckResponse.status SERVING.
  const std::string service = "inference.GRPCInferenceService";
  answers.clear();
  ASSERT_TRUE(CallRaw("/grpc.health.v1.Health/Check",
                      {std::string("\x0a") + static_cast<char>(service.size()) + service}, &answers)
                  .ok());
  EXPECT_THAT(answers, ElementsAre("\x08\x01"));
  EXPECT_EQ(Refusal(Ones("nobody", 2)), "5 MODEL_NOT_FOUND ");
  const std::string metrics =
      RunCommand("curl -sf http://127.0.0.1:" + std::to_string(server_.metrics_port()) + "/metrics")
          .out;
  EXPECT_THAT(metrics, HasSubstr("grpc_server_handled_total{grpc_type=\"unary\",grpc_service="
                                 "\"inference.GRPCInferenceService\",grpc_method=\"ModelInfer\","
                                 "grpc_code=\"NotFound\"} 1"));
}

}  // namespace
}  // namespace perceptrond::testing
