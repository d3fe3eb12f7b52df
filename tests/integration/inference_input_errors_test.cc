// Whatever is wrong with an input tensor of the Open Inference Protocol is refused with a reason
// and the name of the tensor.
#include <functional>

#include "tests/integration/inference_input_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class InferenceInputErrorsTest : public InferenceInputTest {};

// What is done to a request that was right, and what is then said of it.
struct Case {
  const char* what;
  std::function<void(oip::ModelInferRequest&)> spoil;
  const char* refusal;
};

TEST_F(InferenceInputErrorsTest, WhatIsWrongWithADenseTensorIsNamed) {
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

TEST_F(InferenceInputErrorsTest, WhatIsWrongWithSparseTensorsIsNamed) {
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

TEST_F(InferenceInputErrorsTest, WhatIsWrongWithNamesIsNamed) {
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

TEST_F(InferenceInputErrorsTest, RowEndsOfNamesAreCheckedAndEmptyNamesAreRefusedThere) {
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

TEST_F(InferenceInputErrorsTest, TheWidthOfNoRowsIsTheModelsToo) {
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

TEST_F(InferenceInputErrorsTest, TheMessageNamesTheTensorTheElementAndWhatToDo) {
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
  oip::ModelInferRequest large;
  large.set_model_name("same");
  AddTensor(large, "features", "FP64", {1, 1}).mutable_contents()->add_fp64_contents(1e39);
  EXPECT_THAT(Infer(large, response).error_message(),
              HasSubstr("tensor \"features\", element 0: 1e+39 is beyond the range of float32"));
  oip::ModelInferRequest odd;
  odd.set_model_name("same");
  AddTensor(odd, "features", "UINT32", {1, 1}).mutable_contents()->add_uint_contents(16777217);
  EXPECT_THAT(Infer(odd, response).error_message(),
              HasSubstr("tensor \"features\", element 0: 16777217 is not exactly a float32"));
}

TEST_F(InferenceInputErrorsTest,
       BytesThatAreNoMessageAndMessagesThatAreTooLargeAreRefusedWithAReason) {
  EXPECT_EQ(Reason(CallRaw("/inference.GRPCInferenceService/ModelInfer", {"\xff\xff"})),
            "MALFORMED_MESSAGE");
  oip::ModelInferRequest large;
  large.set_model_name("plane");
  AddFloats(large, "features", {65536 * 50, 2}, std::vector<float>(65536 * 100, 1));
  EXPECT_EQ(Refusal(large), "8 MESSAGE_TOO_LARGE ");
}

}  // namespace
}  // namespace perceptrond::testing
