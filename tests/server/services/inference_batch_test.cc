// Tensors as columns: rows are counted before they are read.
#include "server/services/inference_batch.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/sessions/example_batch.h"
#include "tests/support/status.h"

namespace perceptrond::inference_batch_test {
namespace {

namespace v1 = ::perceptron::v1;

struct Tensor {
  const char* name;
  const char* datatype;
  std::vector<int64_t> shape;
  // Of an element in raw contents.
  size_t bytes;
};

std::string ReasonOfReading(const std::vector<Tensor>& tensors) {
  ::inference::ModelInferRequest request;
  for (const Tensor& tensor : tensors) {
    auto& input = *request.add_inputs();
    input.set_name(tensor.name);
    input.set_datatype(tensor.datatype);
    int64_t elements = 1;
    for (const int64_t size : tensor.shape) {
      input.add_shape(size);
      elements *= size;
    }
    request.add_raw_input_contents(std::string(static_cast<size_t>(elements) * tensor.bytes, '\0'));
  }
  v1::ExampleColumns columns;
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
    EXPECT_EQ(ReasonOfReading({{"features", "FP32", {rows, 1}, 4}}), expected);
    EXPECT_EQ(ReasonOfReading({{"text", "BYTES", {rows}, 4}}), expected);
    EXPECT_EQ(ReasonOfReading({{"text", "BYTES", {rows, 1}, 4}}), expected);
    EXPECT_EQ(ReasonOfReading({{"names", "BYTES", {rows, 1}, 4}}), expected);
    EXPECT_EQ(ReasonOfReading({{"row_ends", "UINT32", {rows}, 4}, {"indices", "UINT32", {0}, 4}}),
              expected);
  }
}

}  // namespace
}  // namespace perceptrond::inference_batch_test
