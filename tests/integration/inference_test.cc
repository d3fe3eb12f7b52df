// The Open Inference Protocol over a real connection: health, metadata, versions, outputs,
// parameters, and what a Triton client puts on the wire.
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferenceServiceTest : public InferenceTest {
 protected:
  InferenceServiceTest() { CreateDense("plane", 2); }
  static std::string Service(const std::string& method) {
    return "inference.GRPCInferenceService/" + method;
  }
  bool ModelReady(const std::string& request) {
    return AnswerOf<oip::ModelReadyResponse>(Service("ModelReady"), request).ready();
  }
  std::string InferPlane(const std::string& more, oip::ModelInferResponse* answer = nullptr) {
    return Call(Service("ModelInfer"),
                "model_name: 'plane' inputs { name: 'features' datatype: 'FP32' shape: [1, 2] "
                "contents { fp32_contents: [1, 1] } } " +
                    more,
                answer);
  }
};

TEST_F(InferenceServiceTest, TheServerIsLiveReadyAndNamesItself) {
  EXPECT_TRUE(AnswerOf<oip::ServerLiveResponse>(Service("ServerLive"), "").live());
  EXPECT_TRUE(AnswerOf<oip::ServerReadyResponse>(Service("ServerReady"), "").ready());
  const auto metadata = AnswerOf<oip::ServerMetadataResponse>(Service("ServerMetadata"), "");
  EXPECT_EQ(metadata.name(), "perceptrond");
  EXPECT_THAT(RunServer("--version").out, HasSubstr("perceptrond " + metadata.version() + " "));
  EXPECT_THAT(metadata.extensions(), Contains("learning"));
}

TEST_F(InferenceServiceTest, MetadataSaysWhichTensorsAModelTakesAndGives) {
  oip::ModelMetadataResponse metadata = Metadata("plane");
  EXPECT_EQ(metadata.name(), "plane");
  EXPECT_EQ(metadata.platform(), "perceptrond_perceptron");
  EXPECT_THAT(metadata.versions(), ElementsAre("0"));
  EXPECT_THAT(Describe(metadata.inputs()), ElementsAre("features FP32 [-1,2]"));
  EXPECT_THAT(Describe(metadata.outputs()),
              ElementsAre("label INT32 [-1]", "score FP32 [-1]", "distance FP32 [-1]"));
  EXPECT_EQ(metadata.properties().at("other_inputs"),
            "row_ends UINT32 [-1], indices UINT32 [-1], values FP32 [-1]");

  Create("mail",
         "feature_space { hashed { bits: 4 } } label_names: ['ham', 'spam'] learner { voted {} }");
  metadata = Metadata("mail");
  EXPECT_EQ(metadata.platform(), "perceptrond_voted-perceptron");
  EXPECT_THAT(Describe(metadata.inputs()), ElementsAre("names BYTES [-1,-1]"));
  EXPECT_THAT(Describe(metadata.outputs()), ElementsAre("label BYTES [-1]", "score FP32 [-1]"));

  Create("topics",
         "feature_space { named {} } learner { logistic_regression {} classes { max_classes: 5 "
         "new_classes: NEW_CLASSES_NAMED } }");
  EXPECT_THAT(Describe(Metadata("topics").outputs()),
              ElementsAre("label BYTES [-1]", "score FP32 [-1]", "distance FP32 [-1]",
                          "probability FP32 [-1]", "class_scores FP32 [-1,-1]",
                          "class_probabilities FP32 [-1,-1]", "class_names BYTES [-1]"));
}

TEST_F(InferenceServiceTest, AVersionIsARevisionAndOnlyThePresentOneCanBeAskedFor) {
  LearnSome("plane",
            "examples { dense { values: [1, 0] } label: 1 } "
            "examples { dense { values: [5, 0] } label: -1 }");
  EXPECT_EQ(Answer(Ones("plane", 2)).model_version(), "2");
  EXPECT_THAT(Metadata("plane").versions(), ElementsAre("2"));
  for (const auto& [version, outcome] :
       {std::pair{"2", "OK"},
        {"1", "NOT_FOUND VERSION_NOT_FOUND"},
        {"3", "NOT_FOUND VERSION_NOT_FOUND"},
        {"18446744073709551615", "NOT_FOUND VERSION_NOT_FOUND"},
        {"02", "INVALID_ARGUMENT INVALID_FIELD model_version"},
        {"-1", "INVALID_ARGUMENT INVALID_FIELD model_version"},
        {"latest", "INVALID_ARGUMENT INVALID_FIELD model_version"},
        {" 2", "INVALID_ARGUMENT INVALID_FIELD model_version"},
        {"18446744073709551616", "INVALID_ARGUMENT INVALID_FIELD model_version"}}) {
    EXPECT_EQ(InferPlane(absl::StrCat("model_version: '", version, "'")), outcome) << version;
  }
  EXPECT_TRUE(ModelReady("name: 'plane'"));
  EXPECT_TRUE(ModelReady("name: 'plane' version: '2'"));
  EXPECT_FALSE(ModelReady("name: 'plane' version: '3'"));
  LearnSome("plane", "examples { dense { values: [5, 0] } label: 1 }");
  EXPECT_FALSE(ModelReady("name: 'plane' version: '2'"));
}

TEST_F(InferenceServiceTest, ParametersAndOutputsAreTakenRefusedOrIgnored) {
  LearnSome("plane", "examples { dense { values: [1, 0] } label: 1 }");
  const std::string before = Get("plane").SerializeAsString();
  const auto parameter = [](const char* name, const char* value) {
    return absl::StrCat("parameters { key: '", name, "' value { ", value, " } } ");
  };
  const std::string bad_revision = "INVALID_ARGUMENT INVALID_FIELD parameters[\"min_revision\"]";
  const struct {
    std::string more;
    std::string outcome;
  } cases[] = {
      {parameter("min_revision", "int64_param: 1"), "OK"},
      {parameter("min_revision", "uint64_param: 1"), "OK"},
      {parameter("min_revision", "int64_param: 2"), "ABORTED REVISION_TOO_OLD"},
      {parameter("min_revision", "uint64_param: 18446744073709551615"), "ABORTED REVISION_TOO_OLD"},
      {parameter("min_revision", "int64_param: -1"), bad_revision},
      {parameter("min_revision", "string_param: '1'"), bad_revision},
      {parameter("unknown_features", "string_param: 'ignore'"), "OK"},
      {parameter("unknown_features", "string_param: 'maybe'"),
       "INVALID_ARGUMENT INVALID_FIELD parameters[\"unknown_features\"]"},
      {parameter("priority", "int64_param: 1") + parameter("timeout", "int64_param: 1"), "OK"},
      // Parameters that would change the answer are refused.
      {"outputs { name: 'label' " + parameter("classification", "int64_param: 2") + "}",
       "INVALID_ARGUMENT UNSUPPORTED_PARAMETER outputs[0].parameters[\"classification\"]"},
      {"outputs { name: 'label' } outputs { name: 'label' }",
       "INVALID_ARGUMENT DUPLICATE_TENSOR outputs[1]"},
      {"outputs { name: 'probability' }", "INVALID_ARGUMENT UNKNOWN_TENSOR outputs[0]"},
  };
  for (const auto& one : cases) EXPECT_EQ(InferPlane(one.more), one.outcome) << one.more;
  oip::ModelInferRequest shared = Ones("plane", 2);
  (*shared.mutable_inputs(0)->mutable_parameters())["content_type"].set_string_param("x");
  EXPECT_EQ(Infer(shared), "OK");
  (*shared.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_EQ(
      Infer(shared),
      "INVALID_ARGUMENT UNSUPPORTED_PARAMETER inputs[0].parameters[\"shared_memory_region\"]");
  oip::ModelInferResponse answer;
  EXPECT_EQ(InferPlane("id: '42' outputs { name: 'distance' } outputs { name: 'label' }", &answer),
            "OK");
  EXPECT_EQ(answer.id(), "42");
  EXPECT_EQ(answer.model_name(), "plane");
  EXPECT_THAT(Describe(answer.outputs()), ElementsAre("distance FP32 [1]", "label INT32 [1]"));
  EXPECT_EQ(Get("plane").SerializeAsString(), before) << "predicting changes nothing";

  Create("words", "feature_space { named {} }");
  oip::ModelInferRequest words;
  words.set_model_name("words");
  AddStrings(words, "names", {1, 1}, {"zebra"});
  EXPECT_EQ(Infer(words), "OK");
  (*words.mutable_parameters())["unknown_features"].set_string_param("refuse");
  EXPECT_EQ(Infer(words), "INVALID_ARGUMENT UNKNOWN_FEATURE inputs[0]");
}

TEST_F(InferenceServiceTest, WhatIsNotKnownYetIsNotANumberAndTooManyScoresAreRefused) {
  EXPECT_THAT(Output(Answer(Ones("plane", 2)), "distance").contents().fp32_contents(),
              ElementsAre(::testing::IsNan()));
  Create("topics",
         "feature_space { dense { dimension: 2 } } learner { classes { max_classes: 5 "
         "new_classes: NEW_CLASSES_NAMED } }");
  const oip::ModelInferResponse answer = Answer(Ones("topics", 2));
  EXPECT_THAT(Output(answer, "label").contents().bytes_contents(), ElementsAre(""));
  EXPECT_THAT(Describe(answer.outputs()),
              ElementsAre("label BYTES [1]", "score FP32 [1]", "distance FP32 [1]",
                          "class_scores FP32 [1,0]", "class_names BYTES [0]"));
  Create("many",
         "feature_space { dense { dimension: 1 } } learner { classes { max_classes: 10000 } }");
  oip::ModelInferRequest request;
  request.set_model_name("many");
  AddFloats(request, "features", {200, 1}, std::vector<float>(200, 1));
  EXPECT_EQ(Infer(request), "INVALID_ARGUMENT TOO_MANY_SCORES outputs");
  request.add_outputs()->set_name("label");
  EXPECT_EQ(Output(Answer(request), "label").shape(0), 200);
}

class InferenceLimitsTest : public InferenceTest {
 protected:
  InferenceLimitsTest() : InferenceTest({"--max-example-features=3"}) {}
};

TEST_F(InferenceLimitsTest, ARowOfTooManyFeaturesIsRefusedWithTheTensorThatHasThem) {
  CreateDense("plane", 9);
  EXPECT_EQ(Infer(Ones("plane", 9)), "RESOURCE_EXHAUSTED TOO_MANY_FEATURES inputs[0]");
}

// Bytes that tritonclient.grpc.InferenceServerClient.infer sends for the rows ("win", "a", "") and
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
  Create("mail", "feature_space { named {} } label_names: ['ham', 'spam']");
  LearnSome("mail",
            "examples { named { names: 'win' } label_name: 'spam' } "
            "examples { named { names: 'home' } label_name: 'ham' }");
  std::string bytes;
  for (const char* const part : kTritonRequest) bytes += absl::HexStringToBytes(part);
  std::vector<std::string> answers;
  ASSERT_EQ(Outcome(CallRaw("/inference.GRPCInferenceService/ModelInfer", {bytes}, &answers)),
            "OK");
  oip::ModelInferResponse answer;
  ASSERT_TRUE(answers.size() == 1 && answer.ParseFromString(answers[0]));
  EXPECT_EQ(answer.id(), "7");
  EXPECT_THAT(Describe(answer.outputs()), ElementsAre("label BYTES [2]"));
  EXPECT_THAT(answer.raw_output_contents(),
              ElementsAre(std::string("\4\0\0\0spam\3\0\0\0ham", 15)));
}

}  // namespace
}  // namespace perceptrond::testing
