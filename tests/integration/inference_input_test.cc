// The input tensors of the Open Inference Protocol: which numbers of each datatype are accepted.
#include "tests/integration/inference_input_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

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
  const std::string inexact = "3 INEXACT_VALUE inputs[0]";
  EXPECT_EQ(RefusalOf("BOOL", Numbers({2}, 1), 1), inexact);
  EXPECT_EQ(RefusalOf("UINT32", Numbers({(1U << 24) + 1}, 4), 1), inexact);
  EXPECT_EQ(RefusalOf("INT32", Numbers({static_cast<uint64_t>(-16777217)}, 4), 1), inexact);
  EXPECT_EQ(RefusalOf("UINT64", Numbers({UINT64_MAX}, 8), 1), inexact);
  EXPECT_EQ(RefusalOf("INT64", Numbers({INT64_MAX}, 8), 1), inexact);
}

TEST_F(InferenceInputTest, DoublesAreRoundedToTheNearestFloat) {
  EXPECT_THAT(Echo("FP64", Doubles({0.5, -0x1p-149, 0x1.fffffep127, -0.0}), 4),
              ElementsAre(0.5F, -0x1p-149F, 0x1.fffffep127F, 0.0F));
  // Halfway between two floats the even one; below half of the least one 0.
  EXPECT_THAT(Echo("FP64", Doubles({0.1, 0x1.000001p0, 0x1.000003p0, 0x1p-150, 0x1.8p-150}), 5),
              ElementsAre(0.1F, 1.0F, 0x1.000004p0F, 0.0F, 0x1p-149F));
  for (const double beyond : {1e300, -1e39, 0x1.ffffffp127})
    EXPECT_EQ(RefusalOf("FP64", Doubles({beyond}), 1), "3 INEXACT_VALUE inputs[0]") << beyond;
  for (const double no_number : {NAN, INFINITY})
    EXPECT_EQ(RefusalOf("FP64", Doubles({no_number}), 1), "3 NON_FINITE_VALUE inputs[0]");
}

// Values from IEEE 754's binary16 and from bfloat16's definition as the upper half of a float32.
TEST_F(InferenceInputTest, HalvesAreAcceptedInRawContents) {
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

}  // namespace
}  // namespace perceptrond::testing
