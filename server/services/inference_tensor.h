// One input tensor of the Open Inference Protocol: reads its typed or raw contents as values,
// indices or names of examples.
#pragma once

#include <google/protobuf/repeated_field.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/inference_service.pb.h"

namespace perceptrond {

struct TensorDatatype;

// A view of the message and its contents, which must outlive it. Every error is INVALID_ARGUMENT
// and names the tensor. Any thread may read it.
class InferenceTensor {
 public:
  using Message = ::inference::ModelInferRequest::InferInputTensor;

  // The input at `position` in the request. `raw` has its contents; null if the message has them.
  InferenceTensor(const Message& message, const std::string* raw, int position)
      : message_(&message), raw_(raw), position_(position) {}

  // Checks that datatype, shape and contents match; the other methods require it. WRONG_DATATYPE,
  // WRONG_SHAPE, LENGTH_MISMATCH. O(dimensions).
  absl::Status Check();
  // WRONG_SHAPE unless the tensor has `rank` dimensions; `meaning` names them in the error.
  absl::Status CheckRank(int rank, absl::string_view meaning) const;

  absl::string_view name() const { return message_->name(); }
  int rank() const { return message_->shape_size(); }
  // The size of dimension i.
  uint64_t size(int i) const { return static_cast<uint64_t>(message_->shape(i)); }
  size_t elements() const { return elements_; }
  const Message& message() const { return *message_; }

  // Appends the elements. WRONG_DATATYPE; INEXACT_VALUE for a number that is not exactly a float32.
  // O(elements).
  absl::Status AppendFloats(google::protobuf::RepeatedField<float>& values) const;
  // Appends the elements. WRONG_DATATYPE; INDEX_OUT_OF_RANGE for a number below 0 or above 2^32 -
  // 1. O(elements).
  absl::Status AppendIndices(google::protobuf::RepeatedField<uint32_t>& indices) const;
  // Appends views of the elements. WRONG_DATATYPE; LENGTH_MISMATCH. O(elements).
  absl::Status AppendStrings(std::vector<absl::string_view>& strings) const;

  // INVALID_ARGUMENT that names this tensor, and the element if the error is about one.
  absl::Status Invalid(absl::string_view reason, absl::string_view what,
                       std::optional<size_t> element = std::nullopt) const;

 private:
  absl::Status CheckContents() const;
  absl::Status CheckRaw() const;
  // The error for an element of typed contents that is out of the datatype's range.
  absl::Status NotOfDatatype(absl::string_view reason, size_t element) const;
  absl::Status AppendRawStrings(std::vector<absl::string_view>& strings) const;
  // Calls use(number) for each element until it returns false or a number is out of the datatype's
  // range. Returns the number of elements before that. The datatype must not be BYTES.
  template <typename Use>
  size_t EachNumber(const Use& use) const;

  const Message* message_;
  const std::string* raw_;
  int position_;
  const TensorDatatype* datatype_ = nullptr;
  size_t elements_ = 0;
};

}  // namespace perceptrond
