// Which numbers of tensors are float32, held against arithmetic that has room for them all; and rows, which are counted before
// they are read.
#include "server/services/inference_tensor.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "server/services/inference_batch.h"
#include "server/sessions/example_batch.h"
#include "tests/support/inference.h"
#include "tests/support/status.h"

namespace perceptrond {
namespace {

TEST(TensorNumber, EveryHalfIsTheFloatThatItsDefinitionSays) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1f);
    const auto fraction = static_cast<double>(bits & 0x3ff);
    double expected = std::ldexp(1024 + fraction, exponent - 25);
    if (exponent == 0) expected = std::ldexp(fraction, -24);
    if (exponent == 31) expected = fraction == 0 ? INFINITY : NAN;
    float value = 0;
    ASSERT_TRUE(ToFloat(Half{static_cast<uint16_t>(bits)}, value));
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
    } else {
      ASSERT_EQ(std::abs(static_cast<double>(value)), expected) << bits;
      ASSERT_EQ(std::signbit(value), bits >> 15 == 1) << bits;
    }
  }
}

TEST(TensorNumber, EveryBfloat16IsTheUpperHalfOfItsFloat) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    float value = 0;
    ASSERT_TRUE(ToFloat(Bfloat16{static_cast<uint16_t>(bits)}, value));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), bits << 16);
  }
}

// long double has 64 bits of fraction or more wherever this runs.
template <typename T>
void ExpectExact(T number) {
  static_assert(std::numeric_limits<long double>::digits >= 64);
  float value = 0;
  const bool exact =
      static_cast<long double>(static_cast<float>(number)) == static_cast<long double>(number);
  EXPECT_EQ(ToFloat(number, value), exact) << +number;
  EXPECT_TRUE(!exact || static_cast<long double>(value) == static_cast<long double>(number));
}

template <typename T>
void ExpectExactAround(int bits) {
  for (int step = -3; step <= 3; ++step) {
    const uint64_t number = (uint64_t{1} << bits) + static_cast<uint64_t>(step);
    ExpectExact(static_cast<T>(number));
    ExpectExact(static_cast<T>(0 - number));
    ExpectExact(static_cast<T>(number * 0xaaaaab));
  }
}

TEST(TensorNumber, IntegersAreFloatsWhereNothingIsRounded) {
  for (int bits = 0; bits < 64; ++bits) {
    ExpectExactAround<int8_t>(bits);
    ExpectExactAround<uint16_t>(bits);
    ExpectExactAround<int32_t>(bits);
    ExpectExactAround<uint32_t>(bits);
    ExpectExactAround<int64_t>(bits);
    ExpectExactAround<uint64_t>(bits);
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) ExpectExact(random() >> random() % 64 << random() % 64);
}

TEST(TensorNumber, ADoubleIsTheNearestFloat) {
  std::mt19937 random(1);
  for (int i = 0; i < 100'000; ++i) {
    const auto number = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(number)) continue;
    float value = 0;
    ASSERT_TRUE(ToFloat(static_cast<double>(number), value));
    ASSERT_EQ(std::bit_cast<uint32_t>(value), std::bit_cast<uint32_t>(number));
    // Closer to this float than to the next one.
    const double above = std::nextafter(static_cast<double>(number), INFINITY);
    ASSERT_TRUE(ToFloat(above, value));
    ASSERT_EQ(value, number);
  }
}

struct Tensor {
  const char* name;
  const char* datatype;
  std::vector<int64_t> shape;
};

// Of tensors whose elements have four bytes each, all 0.
std::string ReasonOfReading(const std::vector<Tensor>& tensors) {
  ::inference::ModelInferRequest request;
  for (const auto& [name, datatype, shape] : tensors) {
    testing::AddTensor(request, name, datatype, shape);
    request.add_raw_input_contents(std::string(static_cast<size_t>(shape[0]) * 4, '\0'));
  }
  ::perceptron::v1::ExampleColumns columns;
  const std::string reason = testing::ReasonOf(InferenceBatch().Read(request, columns));
  if (!reason.empty()) {
    EXPECT_EQ(columns.ByteSizeLong(), 0U);
  }
  return reason;
}

TEST(InferenceBatchTest, TooManyRowsAreRefusedBeforeAnyIsRead) {
  constexpr int64_t kMost = ExampleBatch::kMaxExamples;
  for (const int64_t rows : {kMost, kMost + 1}) {
    const std::string expected = rows > kMost ? "TOO_MANY_EXAMPLES" : "";
    EXPECT_EQ(ReasonOfReading({{"features", "FP32", {rows, 1}}}), expected);
    EXPECT_EQ(ReasonOfReading({{"text", "BYTES", {rows}}}), expected);
    EXPECT_EQ(ReasonOfReading({{"text", "BYTES", {rows, 1}}}), expected);
    EXPECT_EQ(ReasonOfReading({{"names", "BYTES", {rows, 1}}}), expected);
    EXPECT_EQ(ReasonOfReading({{"row_ends", "UINT32", {rows}}, {"indices", "UINT32", {0}}}),
              expected);
  }
}

}  // namespace
}  // namespace perceptrond
