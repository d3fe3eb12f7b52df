// The Open Inference Protocol over a real connection: health, metadata, versions, outputs, parameters, what a Triton client puts
// on the wire, and the input tensors: which are accepted (tests/server/services/tensor_number_test.cc has all numbers), what is
// refused, and that the answers are those of Predict to the same rows.
#include <bit>
#include <cmath>
#include <cstdint>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "inference/inference_service.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/inference.h"

namespace perceptrond::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

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
oip::ModelInferResponse::InferOutputTensor Output(const oip::ModelInferResponse& response,
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
  Teach("plane",
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
  Teach("plane", "examples { dense { values: [5, 0] } label: 1 }");
  EXPECT_FALSE(ModelReady("name: 'plane' version: '2'"));
}

TEST_F(InferenceServiceTest, ParametersAndOutputsAreTakenRefusedOrIgnored) {
  Teach("plane", "examples { dense { values: [1, 0] } label: 1 }");
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
  Teach("mail",
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

class InferenceInputTest : public InferenceTest {
 protected:
  InferenceInputTest() {
    // Its score is its feature.
    Create("same",
           "feature_space { dense { dimension: 1 } } "
           "learner { starting_weights { vectors { indices: 0 values: 1 } } }");
    CreateDense("plane", 2);
    Create("words", "feature_space { named {} }");
    Create("slots", "feature_space { hashed { bits: 4 } }");
    Create("mail", "feature_space { text {} }");
  }
};

std::string Numbers(const std::vector<uint64_t>& numbers, int bytes) {
  std::string raw;
  for (const uint64_t number : numbers) AppendBytes(number, bytes, raw);
  return raw;
}
std::string Doubles(const std::vector<double>& numbers) {
  std::string raw;
  for (const double number : numbers) AppendBytes(std::bit_cast<uint64_t>(number), 8, raw);
  return raw;
}

TEST_F(InferenceInputTest, RawNumbersAreTakenWhereTheyAreFloats) {
  const std::string inexact = "INVALID_ARGUMENT INEXACT_VALUE inputs[0]";
  const std::string not_finite = "INVALID_ARGUMENT NON_FINITE_VALUE inputs[0]";
  const struct {
    const char* datatype;
    std::string raw;
    // Empty: refused.
    std::vector<float> values;
    std::string refusal;
  } cases[] = {
      {"BOOL", Numbers({0, 1}, 1), {0, 1}, ""},
      {"INT8", Numbers({127, 0x80, 0xff}, 1), {127, -128, -1}, ""},
      {"UINT8", Numbers({0xff}, 1), {255}, ""},
      {"UINT16", Numbers({0xffff}, 2), {65535}, ""},
      {"INT16", Numbers({0x8000, 0x7fff}, 2), {-32768, 32767}, ""},
      {"INT32", Numbers({0xff000000}, 4), {-0x1p24F}, ""},
      {"UINT64", Numbers({uint64_t{1} << 63}, 8), {0x1p63F}, ""},
      {"UINT32", Numbers({1U << 24, 0xffffff00}, 4), {0x1p24F, 0xffffff00p0F}, ""},
      {"INT64", Numbers({uint64_t{1} << 63}, 8), {-0x1p63F}, ""},
      // Rounded to the nearest, halfway to the even one.
      {"FP64", Doubles({0.5, 0.1, 0x1.000001p0}), {0.5F, 0.1F, 1.0F}, ""},
      {"FP16", Numbers({0x3c00, 0xc000, 0x0001}, 2), {1, -2, 0x1p-24F}, ""},
      {"BF16", Numbers({0x3f80, 0xc000, 0x0001}, 2), {1, -2, 0x1p-133F}, ""},
      {"BOOL", Numbers({2}, 1), {}, inexact},
      {"UINT32", Numbers({(1U << 24) + 1}, 4), {}, inexact},
      {"INT64", Numbers({INT64_MAX}, 8), {}, inexact},
      {"FP64", Doubles({NAN}), {}, not_finite},
      {"BF16", Numbers({0x7f80}, 2), {}, not_finite},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.datatype);
    oip::ModelInferRequest request;
    request.set_model_name("same");
    const size_t rows = std::max<size_t>(1, one.values.size());
    AddTensor(request, "features", one.datatype, {static_cast<int64_t>(rows), 1});
    request.add_raw_input_contents(one.raw);
    request.add_outputs()->set_name("score");
    oip::ModelInferResponse answer;
    EXPECT_EQ(Infer(request, &answer), one.refusal.empty() ? "OK" : one.refusal);
    if (!one.refusal.empty()) continue;
    std::string raw;
    for (const float value : one.values) AppendBytes(std::bit_cast<uint32_t>(value), 4, raw);
    EXPECT_THAT(answer.raw_output_contents(), ElementsAre(raw));
  }
}

// A tensor, in text format.
std::string Tensor(const std::string& name, const std::string& datatype, const std::string& shape,
                   const std::string& contents) {
  return absl::StrCat(" inputs { name: '", name, "' datatype: '", datatype, "' shape: [", shape,
                      "] contents { ", contents, " } }");
}
std::string Features(const std::string& shape, const std::string& values) {
  return Tensor("features", "FP32", shape, "fp32_contents: [" + values + "]");
}
std::string Values(const std::string& shape, const std::string& values) {
  return Tensor("values", "FP32", shape, "fp32_contents: [" + values + "]");
}
std::string Indices(const std::string& values, const std::string& shape = "3") {
  return Tensor("indices", "UINT32", shape, "uint_contents: [" + values + "]");
}
std::string RowEnds(const std::string& values, const std::string& shape = "2") {
  return Tensor("row_ends", "UINT32", shape, "uint_contents: [" + values + "]");
}
std::string Names(const std::string& shape, const std::string& names) {
  return Tensor("names", "BYTES", shape, "bytes_contents: [" + names + "]");
}

TEST_F(InferenceInputTest, WhatIsWrongWithATensorIsNamed) {
  const std::string right = Features("2, 2", "1, 2, 3, 4");
  const std::string four = "1, 2, 3, 4";
  const std::string bytes = "'zebra', 'ape', 'mule', ''";
  const struct {
    const char* model;
    std::string inputs;
    const char* outcome;
  } cases[] = {
      {"plane", right, "OK"},
      {"plane", Features("0, 2", ""), "OK"},
      {"plane", "", "MISSING_TENSOR inputs"},
      {"plane", Tensor("x", "FP32", "2, 2", ""), "UNKNOWN_TENSOR inputs[0]"},
      {"plane", right + right, "DUPLICATE_TENSOR inputs[1]"},
      {"plane", right + Indices("", "0"), "BOTH_FORMS inputs[1]"},
      {"plane", right + Values("1", "1"), "BOTH_FORMS inputs[1]"},
      {"plane", right + Tensor("text", "BYTES", "1", "bytes_contents: 'a'"),
       "BOTH_FORMS inputs[1]"},
      {"plane", right + " raw_input_contents: '12345678'", "BOTH_FORMS inputs[0]"},
      {"plane", Tensor("features", "", "1, 2", "fp32_contents: [1, 2]"),
       "WRONG_DATATYPE inputs[0]"},
      {"plane", Tensor("features", "FP64", "1, 2", "fp32_contents: [1, 2]"),
       "WRONG_DATATYPE inputs[0]"},
      {"plane", Tensor("features", "FP32", "1, 2", "fp32_contents: [1, 2] int_contents: 1"),
       "WRONG_DATATYPE inputs[0]"},
      {"plane", Tensor("features", "BYTES", "1, 2", "bytes_contents: ['1', '2']"),
       "WRONG_DATATYPE inputs[0]"},
      {"plane", Tensor("features", "INT8", "1, 2", "int_contents: [-128, 127]"), "OK"},
      {"plane", Tensor("features", "INT8", "1, 2", "int_contents: [-128, 128]"),
       "INEXACT_VALUE inputs[0]"},
      {"plane", Tensor("features", "BOOL", "1, 2", "bool_contents: [true, false]"), "OK"},
      // There is no field for them.
      {"plane", Tensor("features", "FP16", "1, 2", ""), "LENGTH_MISMATCH inputs[0]"},
      {"plane", Features("", four), "LENGTH_MISMATCH inputs[0]"},
      {"plane", Features("4", four), "WRONG_SHAPE inputs[0]"},
      {"plane", Features("-2, -2", four), "WRONG_SHAPE inputs[0]"},
      // Products beyond 64 bits, which come to 0 and to the right number there.
      {"plane", Features("4294967296, 4294967296", ""), "WRONG_SHAPE inputs[0]"},
      {"plane", Features("4611686018427387905, 4", four), "WRONG_SHAPE inputs[0]"},
      {"plane", Features("2, 2", "1, 2, 3"), "LENGTH_MISMATCH inputs[0]"},
      {"plane", Features("1, 4", four), "WRONG_DIMENSION inputs[0]"},
      {"plane", Features("2, 0", ""), "WRONG_DIMENSION inputs[0]"},
      {"slots", Features("0, 7", ""), "WRONG_DIMENSION inputs[0]"},
      {"slots", Features("0, 16", ""), "OK"},
      {"words", Features("1, 1", "1"), "MALFORMED_COLUMNS inputs[0]"},
      {"mail", Features("1, 1", "1"), "MALFORMED_COLUMNS inputs[0]"},
      {"plane", Features("2, 2", "1, 2, 3, nan"), "NON_FINITE_VALUE inputs[0]"},
      {"plane", Names("1, 1", "'x'"), "MALFORMED_COLUMNS inputs[0]"},
      {"plane", Tensor("text", "BYTES", "1", "bytes_contents: 'a'"), "MALFORMED_COLUMNS inputs[0]"},
      // Sparse rows.
      {"plane", RowEnds("2, 3") + Indices("0, 1, 0") + Values("3", "1, 2, 3"), "OK"},
      {"plane", Indices("0, 1, 0") + Values("3", "1, 2, 3"), "MISSING_TENSOR inputs"},
      {"plane", RowEnds("2, 3") + Values("3", "1, 2, 3"), "MISSING_TENSOR inputs"},
      {"plane", RowEnds("2, 3") + Indices("0, 1, 0") + Names("1", "'a'"), "BOTH_FORMS inputs[2]"},
      {"plane", RowEnds("4, 3") + Indices("0, 1, 0"), "MALFORMED_COLUMNS inputs[0]"},
      {"plane", RowEnds("2, 3", "2, 1") + Indices("0, 1, 0"), "WRONG_SHAPE inputs[0]"},
      {"plane", RowEnds("2, 3") + Indices("0, 0, 0"), "UNSORTED_INDICES inputs[1]"},
      {"plane", RowEnds("2, 3") + Indices("0, 1, 2"), "INDEX_OUT_OF_RANGE inputs[1]"},
      {"plane", RowEnds("2, 3") + Tensor("indices", "INT64", "3", "int64_contents: [0, 1, -1]"),
       "INDEX_OUT_OF_RANGE inputs[1]"},
      {"plane",
       RowEnds("2, 3") + Tensor("indices", "UINT64", "3", "uint64_contents: [0, 1, 4294967296]"),
       "INDEX_OUT_OF_RANGE inputs[1]"},
      {"plane", RowEnds("2, 3") + Tensor("indices", "UINT8", "3", "uint_contents: [0, 1, 256]"),
       "INDEX_OUT_OF_RANGE inputs[1]"},
      {"plane", RowEnds("2, 3") + Tensor("indices", "FP32", "3", "fp32_contents: [0, 1, 0]"),
       "WRONG_DATATYPE inputs[1]"},
      {"plane", RowEnds("2, 3") + Indices("0, 1, 0") + Values("0", ""),
       "LENGTH_MISMATCH inputs[2]"},
      {"plane", RowEnds("2, 3") + Indices("0, 1, 0") + Values("3", "1, inf, 3"),
       "NON_FINITE_VALUE inputs[2]"},
      {"words", RowEnds("2, 3") + Indices("0, 1, 0"), "MALFORMED_COLUMNS inputs[1]"},
      // Names: padded rows, and rows by their ends.
      {"words", Names("2, 2", bytes) + Values("2, 2", "1, 2, 3, nan"), "OK"},
      {"words", Names("2, 2", "'ape', 'ape', '', ''"), "REPEATED_NAME inputs[0]"},
      {"words", Names("2, 1", "'ape', '" + std::string(1025, 'a') + "'"), "BAD_NAME inputs[0]"},
      {"words", Names("1, 1", R"('\377')"), "BAD_NAME inputs[0]"},
      {"words", Names("2, 2", bytes) + Values("2, 4", four), "LENGTH_MISMATCH inputs[1]"},
      {"words", Names("2, 2", bytes) + Values("4", four), "WRONG_SHAPE inputs[1]"},
      {"words", Names("2, 2", bytes) + RowEnds("2, 4"), "BOTH_FORMS inputs[1]"},
      {"words", Names("2, 2", bytes) + Values("2, 2", "inf, 2, 3, 4"),
       "NON_FINITE_VALUE inputs[1]"},
      {"words", Names("2, 2, 1", bytes) + RowEnds("2, 4"), "WRONG_SHAPE inputs[0]"},
      {"words", Names("4611686018427387904, 0", ""), "TOO_MANY_EXAMPLES inputs[0]"},
      {"words", Names("3", "'a', 'b', 'c'") + RowEnds("2, 3"), "OK"},
      {"words", Names("3", "'a', 'b', 'c'"), "MISSING_TENSOR inputs"},
      {"words", Names("3", "'a', 'b', 'c'") + RowEnds("2, 4"), "MALFORMED_COLUMNS inputs[1]"},
      {"words", Names("3", "'a', '', 'c'") + RowEnds("2, 3"), "BAD_NAME inputs[0]"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(
        Call("inference.GRPCInferenceService/ModelInfer",
             absl::StrCat("model_name: '", one.model, "'", one.inputs)),
        one.outcome == std::string("OK") ? "OK" : absl::StrCat("INVALID_ARGUMENT ", one.outcome))
        << one.model << one.inputs;
  }
}

TEST_F(InferenceInputTest, RawContentsOfTheWrongSizeAndTooManyRowsAreRefused) {
  oip::ModelInferRequest numbers;
  numbers.set_model_name("same");
  AddTensor(numbers, "features", "UINT32", {4, 1});
  oip::ModelInferRequest words;
  words.set_model_name("words");
  AddTensor(words, "names", "BYTES", {1, 2});
  const std::string right = Numbers({1, 2, 3, 4}, 4);
  const std::string names = std::string("\1\0\0\0a\2\0\0\0bc", 11);
  const struct {
    oip::ModelInferRequest& request;
    std::string right;
    std::vector<std::string> wrong;
  } cases[] = {
      {numbers, right, {"", right.substr(1), right + '\0', right + right}},
      {words,
       names,
       {names.substr(0, 10), names.substr(0, 8), names.substr(0, 5), names + 'd', "",
        std::string("\xff\xff\xff\xff", 4) + names, std::string("\1\0\0\0a\3\0\0\0bc", 11)}}};
  for (const auto& one : cases) {
    std::string& raw = *one.request.add_raw_input_contents();
    raw = one.right;
    EXPECT_EQ(Infer(one.request), "OK");
    for (const std::string& wrong : one.wrong) {
      raw = wrong;
      EXPECT_EQ(Infer(one.request), "INVALID_ARGUMENT LENGTH_MISMATCH inputs[0]");
    }
    raw = one.right;
    one.request.add_raw_input_contents(one.right);
    EXPECT_EQ(Infer(one.request), "INVALID_ARGUMENT LENGTH_MISMATCH raw_input_contents");
  }
  oip::ModelInferRequest many;
  many.set_model_name("plane");
  AddFloats(many, "features", {65537, 2}, std::vector<float>(131074, 1));
  EXPECT_EQ(Infer(many), "INVALID_ARGUMENT TOO_MANY_EXAMPLES inputs[0]");
}

const char* const kMail[] = {"WIN a free prize now!", "see you at home", "Free entry, call now",
                             "call me at home", "Stra\u00dfe \u0421\u041f\u0410\u041c"};

class TextTest : public InferenceTest {
 protected:
  static std::string Texts() { return "texts: ['" + absl::StrJoin(kMail, "', '") + "']"; }
  std::vector<float> Scores(const std::string& id) {
    const auto response = AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict", "model: 'models/" + id + "' columns { " + Texts() + " }");
    return {response.scores().begin(), response.scores().end()};
  }
};

TEST_F(TextTest, NestedTextsColumnsOfTextsAndTensorsAreTheSame) {
  std::string nested;
  for (size_t i = 0; i < std::size(kMail); ++i) {
    absl::StrAppend(&nested, " examples { text: '", kMail[i], "' label: ", i % 2 == 0 ? 1 : -1,
                    " }");
  }
  const std::string columns = " columns { " + Texts() + " labels: [1, -1, 1, -1, 1] }";
  for (const char* id : {"nested", "columns"}) {
    Create(id,
           "feature_space { text { value: VALUE_LOG_COUNT min_characters: 3 max_characters: 5 "
           "inverse_document_frequency: true } }");
  }
  // More texts than 64: then they have frequencies.
  for (int i = 0; i < 14; ++i) {
    const auto learn = [&](const std::string& id, const std::string& rows) {
      return AnswerOf<v1::LearnResponse>("LearningService/Learn",
                                         "model: 'models/" + id + "'" + rows)
          .SerializeAsString();
    };
    EXPECT_EQ(learn("nested", nested), learn("columns", columns));
  }
  const std::vector<float> scores = Scores("nested");
  EXPECT_EQ(Scores("columns"), scores);

  oip::ModelInferRequest request;
  request.set_model_name("nested");
  AddStrings(request, "text", {std::size(kMail), 1}, {std::begin(kMail), std::end(kMail)});
  EXPECT_THAT(Output(Answer(request), "score").contents().fp32_contents(),
              ElementsAreArray(scores));
  request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(2, "\xff");
  EXPECT_EQ(Infer(request), "INVALID_ARGUMENT BAD_TEXT inputs[0]");
  EXPECT_THAT(Describe(Metadata("nested").inputs()), ElementsAre("text BYTES [-1]"));
  EXPECT_EQ(Metadata("nested").properties().at("feature_space"), "text");
}

// Three rows, of which the second is empty.
struct Form {
  // As Predict takes them, in text format.
  std::string columns;
  oip::ModelInferRequest tensors = {};
};

Form Dense() {
  Form form{"dense_width: 3 values: [1, 0, 2, 0, 0, 0, -1, 0.5, 0]"};
  AddFloats(form.tensors, "features", {3, 3}, {1, 0, 2, 0, 0, 0, -1, 0.5F, 0});
  return form;
}
Form Sparse() {
  Form form{"row_ends: [2, 2, 4] indices: [0, 2, 0, 1] values: [1, 2, -1, 0.5]"};
  AddFloats(form.tensors, "values", {4}, {1, 2, -1, 0.5F});
  AddIndices(form.tensors, "row_ends", {2, 2, 4});
  AddIndices(form.tensors, "indices", {0, 2, 0, 1});
  return form;
}
// Names are sent in any order.
constexpr char kNames[] =
    "feature_names { text: 'au^xv^x\u00e9' lengths: [1, 3, 3, 2] } row_ends: [3, 3, 5] "
    "indices: [0, 1, 3, 1, 2] values: [1, -2, 0.5, 3, 1]";
Form Names() {
  Form form{kNames};
  AddStrings(form.tensors, "names", {5}, {"\u00e9", "u^x", "a", "v^x", "u^x"});
  AddFloats(form.tensors, "values", {5}, {0.5F, -2, 1, 1, 3});
  AddIndices(form.tensors, "row_ends", {3, 3, 5});
  return form;
}
Form PaddedNames() {
  Form form{kNames};
  AddStrings(form.tensors, "names", {3, 3}, {"\u00e9", "u^x", "a", "", "", "", "v^x", "", "u^x"});
  AddFloats(form.tensors, "values", {3, 3}, {0.5F, -2, 1, NAN, NAN, NAN, 1, NAN, 3});
  return form;
}

// NaN too is compared by its bits.
template <typename Field>
std::vector<uint32_t> Bits(const Field& floats) {
  std::vector<uint32_t> bits;
  for (const float value : floats) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
}

class InferenceEqualityTest : public InferenceTest {
 protected:
  void ExpectLabels(const v1::Model& model, const v1::PredictResponse& expected,
                    const oip::ModelInferResponse& answer) {
    const auto label = Output(answer, "label");
    if (model.label_names().empty()) {
      EXPECT_THAT(label.contents().int_contents(), ElementsAreArray(expected.predicted_labels()));
      return;
    }
    std::vector<std::string> names;
    for (const int32_t number : expected.predicted_labels())
      names.push_back(model.label_names(model.learner().has_classes() ? number : number > 0));
    EXPECT_THAT(label.contents().bytes_contents(), ElementsAreArray(names));
  }
  void ExpectEqual(const std::string& id, Form form) {
    const v1::Model model = Get(id, v1::MODEL_VIEW_BASIC);
    const auto expected = AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict", absl::StrCat("model: 'models/", id, "' columns { ",
                                                  form.columns, " } include_class_scores: true"));
    form.tensors.set_model_name(id);
    const oip::ModelInferResponse answer = Answer(form.tensors);
    ExpectLabels(model, expected, answer);
    const auto expect_floats = [&](const char* name, const auto& floats) {
      EXPECT_EQ(Bits(Output(answer, name).contents().fp32_contents()), Bits(floats)) << name;
    };
    expect_floats("score", expected.scores());
    expect_floats("distance", expected.distances());
    expect_floats("probability", expected.probabilities());
    expect_floats("class_scores", expected.class_scores());
    expect_floats("class_probabilities", expected.class_probabilities());
    EXPECT_THAT(Output(answer, "component_revisions").contents().int64_contents(),
                ElementsAreArray(expected.component_revisions()));
    EXPECT_EQ(answer.model_version(), absl::StrCat(expected.revision()));
    if (model.learner().has_classes()) {
      EXPECT_EQ(Output(answer, "class_scores").shape(1), 3);
      EXPECT_THAT(Output(answer, "class_names").contents().bytes_contents(),
                  ElementsAreArray(model.label_names()));
    }
    // The metadata says what there is, and nothing else; it does not know classes that may come up.
    std::vector<std::string> described = Describe(Metadata(id).outputs());
    for (std::string& tensor : described) {
      const size_t rows_at = tensor.find("[-1");
      if (rows_at != std::string::npos) tensor.replace(rows_at + 1, 2, "3");
    }
    if (model.learner().classes().new_classes() <= v1::Classes::NEW_CLASSES_NONE) {
      EXPECT_EQ(Describe(answer.outputs()), described);
    }
    // Raw in, raw out, the same bits.
    EXPECT_EQ(Answer(Raw(form.tensors)).SerializeAsString(), Raw(answer).SerializeAsString());
  }
};

TEST_F(InferenceEqualityTest, OfFormsSpacesLearnersAndClasses) {
  const std::string named = "feature_space { named {} ";
  const std::string classes = named + "} learner { classes { max_classes: 3 ";
  const std::string two = " labels: [1, -1, 1]";
  const std::string three = " labels: [2, 0, 1]";
  const std::string three_by_name = three + " label_names: ['tea', 'rum', 'ale']";
  const struct {
    std::string settings;
    std::string labels;
    std::vector<Form> forms;
  } cases[] = {
      {"feature_space { dense { dimension: 3 } }", two, {Dense(), Sparse()}},
      {"feature_space { dense { dimension: 3 } } learner { logistic_regression {} }",
       two,
       {Dense()}},
      {"feature_space { hashed { bits: 3 } map { polynomial { degree: 2 } } } "
       "learner { voted {} } label_names: ['no', 'yes']",
       two,
       {Names(), PaddedNames(), Sparse()}},
      {named + "map { products { pairs { first: 'u' second: 'v' } } } }", two, {Names()}},
      {named + "map { fourier { dimension: 20 gamma: 0.5 } } }", two, {PaddedNames()}},
      {classes + "} }", three, {Names()}},
      {classes + "} averaged {} } label_names: ['north', 'east', 'south']", three, {Names()}},
      {classes + "new_classes: NEW_CLASSES_NUMBERED } logistic_regression {} }", three, {Names()}},
      {classes + "new_classes: NEW_CLASSES_NAMED } }", three_by_name, {PaddedNames()}},
      {"feature_space { composition { inputs { model: 'models/m3' } "
       "inputs { model: 'models/m3' output: OUTPUT_SCORE } } }",
       two,
       {Names(), PaddedNames()}},
  };
  int number = 0;
  std::string id;
  for (const auto& one : cases) {
    SCOPED_TRACE(one.settings);
    id = absl::StrCat("m", number++);
    Create(id, one.settings);
    for (int i = 0; i < 3; ++i) Teach(id, "columns { " + one.forms[0].columns + one.labels + " }");
    for (const Form& form : one.forms) ExpectEqual(id, form);
  }
  EXPECT_THAT(Describe(Metadata(id).inputs()), ElementsAre("names BYTES [-1,-1]"));
  EXPECT_EQ(Metadata(id).properties().at("feature_space"), "composition");
}

}  // namespace
}  // namespace perceptrond::testing
