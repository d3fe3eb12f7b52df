// The input tensors of the Open Inference Protocol: which numbers are taken of every datatype, and
// that whatever is wrong with a tensor is refused with a reason that names it.
#include <functional>

#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class InferenceInputTest : public InferenceTest {
 protected:
  InferenceInputTest() {
    // Its score is its feature.
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
    v1::Weights& start = *settings.mutable_learner()->mutable_starting_weights();
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

TEST_F(InferenceInputTest, IntegersAreTakenWhereTheyAreFloatsExactly) {
  EXPECT_THAT(Echo("BOOL", Numbers({0, 1}, 1), 2), ElementsAre(0, 1));
  EXPECT_THAT(Echo("UINT8", Numbers({0, 255}, 1), 2), ElementsAre(0, 255));
  EXPECT_THAT(Echo("INT8", Numbers({127, 0x80, 0xff}, 1), 3), ElementsAre(127, -128, -1));
  EXPECT_THAT(Echo("UINT16", Numbers({0xffff}, 2), 1), ElementsAre(65535));
  EXPECT_THAT(Echo("INT16", Numbers({0x8000}, 2), 1), ElementsAre(-32768));
  EXPECT_THAT(Echo("UINT32", Numbers({1U << 24, 0xffffff00}, 4), 2),
              ElementsAre(0x1p24F, 0xffffff00p0F));
  EXPECT_THAT(Echo("INT32", Numbers({0x80000000}, 4), 1), ElementsAre(-0x1p31F));
  EXPECT_THAT(Echo("UINT64", Numbers({uint64_t{1} << 63}, 8), 1), ElementsAre(0x1p63F));
  EXPECT_THAT(Echo("INT64", Numbers({uint64_t{1} << 63, static_cast<uint64_t>(-16777216)}, 8), 2),
              ElementsAre(-0x1p63F, -0x1p24F));
  const std::string row_errors = "3 INEXACT_VALUE inputs[0]";
  EXPECT_EQ(RefusalOf("BOOL", Numbers({2}, 1), 1), row_errors);
  EXPECT_EQ(RefusalOf("UINT32", Numbers({(1U << 24) + 1}, 4), 1), row_errors);
  EXPECT_EQ(RefusalOf("INT32", Numbers({static_cast<uint64_t>(-16777217)}, 4), 1), row_errors);
  EXPECT_EQ(RefusalOf("UINT64", Numbers({UINT64_MAX}, 8), 1), row_errors);
  EXPECT_EQ(RefusalOf("INT64", Numbers({INT64_MAX}, 8), 1), row_errors);
}

TEST_F(InferenceInputTest, DoublesAreTakenWhereTheyAreFloatsExactly) {
  EXPECT_THAT(Echo("FP64", Doubles({0.5, -0x1p-149, 0x1.fffffep127, -0.0}), 4),
              ElementsAre(0.5F, -0x1p-149F, 0x1.fffffep127F, 0.0F));
  for (const double inexact : {0.1, 1e300, -1e39, 0x1p-150, 0x1.ffffffp127})
    EXPECT_EQ(RefusalOf("FP64", Doubles({inexact}), 1), "3 INEXACT_VALUE inputs[0]") << inexact;
  for (const double no_number : {NAN, INFINITY})
    EXPECT_EQ(RefusalOf("FP64", Doubles({no_number}), 1), "3 NON_FINITE_VALUE inputs[0]");
}

// Values from IEEE 754's binary16 and from bfloat16's definition as the upper half of a float32.
TEST_F(InferenceInputTest, HalvesAreTakenInRawContents) {
  EXPECT_THAT(Echo("FP16", Numbers({0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff, 0x0400, 0x3555}, 2), 7),
              ElementsAre(1, -2, 65504, 0x1p-24F, 0x3ffp-24F, 0x1p-14F, 0x1.554p-2F));
  EXPECT_THAT(Echo("BF16", Numbers({0x3f80, 0xc000, 0x7f7f, 0x0001}, 2), 4),
              ElementsAre(1, -2, 0x1.fep127F, 0x1p-133F));
  for (const char* datatype : {"FP16", "BF16"}) {
    EXPECT_EQ(RefusalOf(datatype, Numbers({0x7f80 | 0x7c00}, 2), 1),
              "3 NON_FINITE_VALUE inputs[0]");
    oip::ModelInferRequest typed;
    typed.set_model_name("same");
    AddTensor(typed, "features", datatype, {1, 1}).mutable_contents()->add_fp32_contents(1);
    EXPECT_EQ(Refusal(typed), "3 WRONG_DATATYPE inputs[0]");
  }
}

TEST_F(InferenceInputTest, TypedContentsAreOfTheirDatatypeOrRefused) {
  oip::ModelInferRequest request;
  request.set_model_name("same");
  InferTensor& tensor = AddTensor(request, "features", "INT8", {2, 1});
  tensor.mutable_contents()->add_int_contents(-128);
  tensor.mutable_contents()->add_int_contents(127);
  EXPECT_THAT(Output(Answer(request), "score").contents().fp32_contents(), ElementsAre(-128, 127));
  tensor.mutable_contents()->set_int_contents(1, 128);
  EXPECT_EQ(Refusal(request), "3 INEXACT_VALUE inputs[0]");
  tensor.set_datatype("INT16");
  EXPECT_THAT(Output(Answer(request), "score").contents().fp32_contents(), ElementsAre(-128, 128));
}

// What is done to a request that was right, and what is then said of it.
struct Case {
  const char* what;
  std::function<void(oip::ModelInferRequest&)> spoil;
  const char* refusal;
};

TEST_F(InferenceInputTest, WhatIsWrongWithADenseTensorIsNamed) {
  const Case cases[] = {
      {"no inputs", [](auto& r) { r.clear_inputs(); }, "3 MISSING_TENSOR inputs"},
      {"a name that no input has", [](auto& r) { r.mutable_inputs(0)->set_name("x"); },
       "3 UNKNOWN_TENSOR inputs[0]"},
      {"twice", [](auto& r) { *r.add_inputs() = r.inputs(0); }, "3 DUPLICATE_TENSOR inputs[1]"},
      {"beside another form", [](auto& r) { AddIndices(r, "indices", {}); },
       "3 BOTH_FORMS inputs[1]"},
      {"with values", [](auto& r) { AddFloats(r, "values", {1}, {1}); }, "3 BOTH_FORMS inputs[1]"},
      {"no datatype", [](auto& r) { r.mutable_inputs(0)->set_datatype(""); },
       "3 WRONG_DATATYPE inputs[0]"},
      {"a datatype that is none", [](auto& r) { r.mutable_inputs(0)->set_datatype("float32"); },
       "3 WRONG_DATATYPE inputs[0]"},
      {"contents of another datatype", [](auto& r) { r.mutable_inputs(0)->set_datatype("FP64"); },
       "3 WRONG_DATATYPE inputs[0]"},
      {"contents of two datatypes",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_int_contents(1); },
       "3 WRONG_DATATYPE inputs[0]"},
      {"BYTES",
       [](auto& r) {
         r.clear_inputs();
         AddStrings(r, "features", {1, 2}, {"1", "2"});
       },
       "3 WRONG_DATATYPE inputs[0]"},
      {"no shape", [](auto& r) { r.mutable_inputs(0)->clear_shape(); },
       "3 LENGTH_MISMATCH inputs[0]"},
      {"one dimension",
       [](auto& r) {
         r.mutable_inputs(0)->clear_shape();
         r.mutable_inputs(0)->add_shape(4);
       },
       "3 WRONG_SHAPE inputs[0]"},
      {"three dimensions", [](auto& r) { r.mutable_inputs(0)->add_shape(1); },
       "3 WRONG_SHAPE inputs[0]"},
      {"a size below 0",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, -2);
         r.mutable_inputs(0)->set_shape(1, -2);
       },
       "3 WRONG_SHAPE inputs[0]"},
      {"a product beyond 64 bits, which comes to 0 there",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, int64_t{1} << 32);
         r.mutable_inputs(0)->set_shape(1, int64_t{1} << 32);
         r.mutable_inputs(0)->clear_contents();
       },
       "3 WRONG_SHAPE inputs[0]"},
      {"a product beyond 64 bits, which comes to the right number there",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, (int64_t{1} << 62) + 1);
         r.mutable_inputs(0)->set_shape(1, 4);
       },
       "3 WRONG_SHAPE inputs[0]"},
      {"fewer elements than the shape has",
       [](auto& r) {
         r.mutable_inputs(0)->mutable_contents()->mutable_fp32_contents()->RemoveLast();
       },
       "3 LENGTH_MISMATCH inputs[0]"},
      {"more elements than the shape has",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); },
       "3 LENGTH_MISMATCH inputs[0]"},
      {"another dimension than the model's",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, 1);
         r.mutable_inputs(0)->set_shape(1, 4);
       },
       "3 WRONG_DIMENSION inputs[0]"},
      {"rows of nothing",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(1, 0);
         r.mutable_inputs(0)->clear_contents();
       },
       "3 WRONG_DIMENSION inputs[0]"},
      {"NaN", [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_fp32_contents(3, NAN); },
       "3 NON_FINITE_VALUE inputs[0]"},
      {"raw contents beside typed ones", [](auto& r) { r.add_raw_input_contents("12345678"); },
       "3 BOTH_FORMS inputs[0]"},
      {"names for a model with a dimension",
       [](auto& r) {
         r.clear_inputs();
         AddStrings(r, "names", {1, 1}, {"x"});
       },
       "3 MALFORMED_COLUMNS inputs[0]"},
      {"more rows than a message may have",
       [](auto& r) {
         r.clear_inputs();
         AddFloats(r, "features", {65537, 2}, std::vector<float>(131074, 1));
       },
       "3 TOO_MANY_EXAMPLES inputs[0]"},
  };
  oip::ModelInferRequest right;
  right.set_model_name("plane");
  AddFloats(right, "features", {2, 2}, {1, 2, 3, 4});
  Answer(right);
  for (const Case& one : cases) {
    oip::ModelInferRequest request = right;
    one.spoil(request);
    EXPECT_EQ(Refusal(request), one.refusal) << one.what;
  }
}

TEST_F(InferenceInputTest, WhatIsWrongWithSparseTensorsIsNamed) {
  const Case cases[] = {
      {"no row ends", [](auto& r) { r.mutable_inputs()->DeleteSubrange(0, 1); },
       "3 MISSING_TENSOR inputs"},
      {"no indices", [](auto& r) { r.mutable_inputs()->DeleteSubrange(1, 1); },
       "3 MISSING_TENSOR inputs"},
      {"names as well", [](auto& r) { AddStrings(r, "names", {1}, {"a"}); },
       "3 BOTH_FORMS inputs[3]"},
      {"a row end that falls",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_uint_contents(0, 4); },
       "3 MALFORMED_COLUMNS inputs[0]"},
      {"a row end that passes the end",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_uint_contents(1, 4); },
       "3 MALFORMED_COLUMNS inputs[0]"},
      {"row ends in two dimensions", [](auto& r) { r.mutable_inputs(0)->add_shape(1); },
       "3 WRONG_SHAPE inputs[0]"},
      {"indices that do not ascend",
       [](auto& r) { r.mutable_inputs(1)->mutable_contents()->set_uint_contents(1, 0); },
       "3 UNSORTED_INDICES inputs[1]"},
      {"an index beyond the dimension",
       [](auto& r) { r.mutable_inputs(1)->mutable_contents()->set_uint_contents(2, 2); },
       "3 INDEX_OUT_OF_RANGE inputs[1]"},
      {"an index below 0",
       [](auto& r) {
         r.mutable_inputs(1)->set_datatype("INT64");
         r.mutable_inputs(1)->clear_contents();
         for (const int64_t index : {0, 1, -1})
           r.mutable_inputs(1)->mutable_contents()->add_int64_contents(index);
       },
       "3 INDEX_OUT_OF_RANGE inputs[1]"},
      {"an index of 2^32",
       [](auto& r) {
         r.mutable_inputs(1)->set_datatype("UINT64");
         r.mutable_inputs(1)->clear_contents();
         for (const uint64_t index : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 32})
           r.mutable_inputs(1)->mutable_contents()->add_uint64_contents(index);
       },
       "3 INDEX_OUT_OF_RANGE inputs[1]"},
      {"indices that are no integers",
       [](auto& r) {
         r.mutable_inputs()->DeleteSubrange(1, 2);
         AddFloats(r, "indices", {3}, {0, 1, 0});
       },
       "3 WRONG_DATATYPE inputs[1]"},
      {"another number of values than of indices",
       [](auto& r) {
         r.mutable_inputs(2)->set_shape(0, 0);
         r.mutable_inputs(2)->clear_contents();
       },
       "3 LENGTH_MISMATCH inputs[2]"},
      {"an infinite value",
       [](auto& r) { r.mutable_inputs(2)->mutable_contents()->set_fp32_contents(1, INFINITY); },
       "3 NON_FINITE_VALUE inputs[2]"},
      {"indices for a model of names", [](auto& r) { r.set_model_name("words"); },
       "3 MALFORMED_COLUMNS inputs[1]"},
  };
  oip::ModelInferRequest right;
  right.set_model_name("plane");
  AddIndices(right, "row_ends", {2, 3});
  AddIndices(right, "indices", {0, 1, 0});
  AddFloats(right, "values", {3}, {1, 2, 3});
  Answer(right);
  for (const Case& one : cases) {
    oip::ModelInferRequest request = right;
    one.spoil(request);
    EXPECT_EQ(Refusal(request), one.refusal) << one.what;
  }
}

TEST_F(InferenceInputTest, WhatIsWrongWithNamesIsNamed) {
  const Case cases[] = {
      {"a name twice in a row",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_bytes_contents(1, "zebra"); },
       "3 REPEATED_NAME inputs[0]"},
      {"a name of 1025 bytes",
       [](auto& r) {
         r.mutable_inputs(0)->mutable_contents()->set_bytes_contents(1, std::string(1025, 'a'));
       },
       "3 BAD_NAME inputs[0]"},
      {"a name that is not UTF-8",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->set_bytes_contents(1, "\xc3"); },
       "3 BAD_NAME inputs[0]"},
      {"values of another shape", [](auto& r) { r.mutable_inputs(1)->set_shape(1, 4); },
       "3 LENGTH_MISMATCH inputs[1]"},
      {"values of another shape with as many elements",
       [](auto& r) {
         r.mutable_inputs(1)->clear_shape();
         r.mutable_inputs(1)->add_shape(4);
       },
       "3 WRONG_SHAPE inputs[1]"},
      {"row ends of padded rows",
       [](auto& r) {
         AddIndices(r, "row_ends", {2, 4});
       },
       "3 BOTH_FORMS inputs[2]"},
      {"an infinite value",
       [](auto& r) { r.mutable_inputs(1)->mutable_contents()->set_fp32_contents(0, INFINITY); },
       "3 NON_FINITE_VALUE inputs[1]"},
      {"three dimensions",
       [](auto& r) {
         r.mutable_inputs(0)->add_shape(1);
         AddIndices(r, "row_ends", {2, 4});
       },
       "3 WRONG_SHAPE inputs[0]"},
      {"rows without number",
       [](auto& r) {
         r.clear_inputs();
         AddStrings(r, "names", {int64_t{1} << 62, 0}, {});
       },
       "3 TOO_MANY_EXAMPLES inputs[0]"},
      {"features for a model of names",
       [](auto& r) {
         r.clear_inputs();
         AddFloats(r, "features", {1, 1}, {1});
       },
       "3 MALFORMED_COLUMNS inputs[0]"},
  };
  oip::ModelInferRequest right;
  right.set_model_name("words");
  AddStrings(right, "names", {2, 2}, {"zebra", "ape", "mule", ""});
  AddFloats(right, "values", {2, 2}, {1, 2, 3, NAN});
  Answer(right);
  for (const Case& one : cases) {
    oip::ModelInferRequest request = right;
    one.spoil(request);
    EXPECT_EQ(Refusal(request), one.refusal) << one.what;
  }
}

TEST_F(InferenceInputTest, RowEndsOfNamesAreCheckedAndEmptyNamesHaveNoPlaceThere) {
  oip::ModelInferRequest right;
  right.set_model_name("words");
  AddStrings(right, "names", {3}, {"zebra", "ape", "mule"});
  AddIndices(right, "row_ends", {2, 2, 3});
  EXPECT_EQ(Output(Answer(right), "label").shape(0), 3);
  oip::ModelInferRequest request = right;
  request.mutable_inputs(1)->mutable_contents()->set_uint_contents(2, 4);
  EXPECT_EQ(Refusal(request), "3 MALFORMED_COLUMNS inputs[1]");
  request = right;
  request.mutable_inputs(1)->mutable_contents()->set_uint_contents(0, 3);
  EXPECT_EQ(Refusal(request), "3 MALFORMED_COLUMNS inputs[1]");
  request = right;
  request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(1, "");
  EXPECT_EQ(Refusal(request), "3 BAD_NAME inputs[0]");
  request = right;
  request.mutable_inputs()->RemoveLast();
  EXPECT_EQ(Refusal(request), "3 MISSING_TENSOR inputs");
}

TEST_F(InferenceInputTest, RawContentsOfTheWrongSizeAreRefused) {
  const std::string four = Numbers({1, 2, 3, 4}, 4);
  for (const std::string& raw : {std::string(), four.substr(1), four + '\0', four + four})
    EXPECT_EQ(RefusalOf("UINT32", raw, 4), "3 LENGTH_MISMATCH inputs[0]");
  EXPECT_THAT(Echo("UINT32", four, 4), ElementsAre(1, 2, 3, 4));
  oip::ModelInferRequest words;
  words.set_model_name("words");
  AddTensor(words, "names", "BYTES", {1, 2});
  std::string& raw = *words.add_raw_input_contents();
  const std::string right = std::string("\1\0\0\0a\2\0\0\0bc", 11);
  raw = right;
  Answer(words);
  for (const std::string& wrong :
       {right.substr(0, 10), right.substr(0, 8), right.substr(0, 5), right + 'd', std::string(),
        std::string("\xff\xff\xff\xff", 4) + right, std::string("\1\0\0\0a\3\0\0\0bc", 11)}) {
    raw = wrong;
    EXPECT_EQ(Refusal(words), "3 LENGTH_MISMATCH inputs[0]");
  }
  raw = right;
  words.add_raw_input_contents(right);
  EXPECT_EQ(Refusal(words), "3 LENGTH_MISMATCH raw_input_contents");
}

TEST_F(InferenceInputTest, NoRowsAreAnsweredByNoRows) {
  oip::ModelInferRequest request;
  request.set_model_name("plane");
  AddTensor(request, "features", "FP32", {0, 2});
  EXPECT_THAT(Describe(Answer(request).outputs()),
              ElementsAre("label INT32 [0]", "score FP32 [0]", "distance FP32 [0]"));
}

TEST_F(InferenceInputTest, TheWidthOfNoRowsIsTheModelsToo) {
  v1::Model hashed;
  hashed.mutable_feature_space()->mutable_hashed()->set_bits(4);
  Create("slots", hashed);
  const struct {
    const char* model;
    int64_t width;
    std::string refusal;
  } cases[] = {{"plane", 7, "3 WRONG_DIMENSION inputs[0]"},
               {"plane", 1, "3 WRONG_DIMENSION inputs[0]"},
               {"plane", 0, "3 WRONG_DIMENSION inputs[0]"},
               {"slots", 7, "3 WRONG_DIMENSION inputs[0]"},
               {"words", 7, "3 MALFORMED_COLUMNS inputs[0]"}};
  for (const auto& one : cases) {
    for (const int64_t rows : {0, 1}) {
      oip::ModelInferRequest request;
      request.set_model_name(one.model);
      AddFloats(request, "features", {rows, one.width},
                std::vector<float>(static_cast<size_t>(rows * one.width), 1));
      EXPECT_EQ(Refusal(request), one.refusal) << one.model << " [" << rows << "," << one.width;
    }
  }
  oip::ModelInferRequest slots;
  slots.set_model_name("slots");
  AddTensor(slots, "features", "FP32", {0, 16});
  EXPECT_EQ(Output(Answer(slots), "score").shape(0), 0);
}

TEST_F(InferenceInputTest, TheMessageNamesTheTensorTheElementAndWhatToDo) {
  oip::ModelInferRequest request;
  request.set_model_name("words");
  AddStrings(request, "names", {3}, {"zebra", "ape", "mule"});
  AddFloats(request, "values", {3}, {1, NAN, 1});
  AddIndices(request, "row_ends", {3});
  oip::ModelInferResponse response;
  EXPECT_THAT(Infer(request, response).error_message(),
              HasSubstr("tensor \"values\", element 1: nan is not a finite number"));
  request.mutable_inputs(1)->set_name("weights\n");
  EXPECT_THAT(Infer(request, response).error_message(),
              HasSubstr("tensor \"weights\\n\": is not an input of a model; send features; or"));
  oip::ModelInferRequest tenth;
  tenth.set_model_name("same");
  AddTensor(tenth, "features", "FP64", {1, 1}).mutable_contents()->add_fp64_contents(0.1);
  EXPECT_THAT(Infer(tenth, response).error_message(),
              HasSubstr("tensor \"features\", element 0: 0.1 is not exactly a float32"));
}

TEST_F(InferenceInputTest, BytesThatAreNoMessageAndMessagesThatAreTooLargeAreRefusedWithAReason) {
  EXPECT_EQ(Reason(CallRaw("/inference.GRPCInferenceService/ModelInfer", {"\xff\xff"})),
            "MALFORMED_MESSAGE");
  oip::ModelInferRequest large;
  large.set_model_name("plane");
  AddFloats(large, "features", {65536 * 50, 2}, std::vector<float>(65536 * 100, 1));
  EXPECT_EQ(Refusal(large), "8 MESSAGE_TOO_LARGE ");
}

}  // namespace
}  // namespace perceptrond::testing
