// The input tensors of the Open Inference Protocol: which numbers of each datatype are accepted
// (tests/server/services/tensor_number_test.cc has them all), and what is refused, with the tensor.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

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

}  // namespace
}  // namespace perceptrond::testing
