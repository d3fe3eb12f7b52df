// One input tensor of the Open Inference Protocol: typed or raw, read as what examples are made of.
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

// A view: message and contents must outlive it. Every error is INVALID_ARGUMENT and names the
// tensor. Any thread may read it.
class InferenceTensor {
 public:
  using Message = ::inference::ModelInferRequest::InferInputTensor;

  // The input at `place`. `raw`: its contents; null: they are in the message.
  InferenceTensor(const Message& message, const std::string* raw, int place)
      : message_(&message), raw_(raw), place_(place) {}

  // Whether datatype, shape and contents go together; the rest may be asked for only then.
  // WRONG_DATATYPE, WRONG_SHAPE, LENGTH_MISMATCH. O(dimensions).
  absl::Status Check();
  // WRONG_SHAPE, unless it has so many dimensions. `meaning`: what they are.
  absl::Status CheckRank(int rank, absl::string_view meaning) const;

  absl::string_view name() const { return message_->name(); }
  int rank() const { return message_->shape_size(); }
  // Of dimension i.
  uint64_t size(int i) const { return static_cast<uint64_t>(message_->shape(i)); }
  size_t elements() const { return elements_; }
  const Message& message() const { return *message_; }

  // Appends the elements. WRONG_DATATYPE; INEXACT_VALUE: a number that is no float32. O(elements).
  absl::Status AppendFloats(google::protobuf::RepeatedField<float>& values) const;
  // WRONG_DATATYPE; INDEX_OUT_OF_RANGE: a number below 0 or above 2^32 - 1. O(elements).
  absl::Status AppendIndices(google::protobuf::RepeatedField<uint32_t>& indices) const;
  // Views of the contents. WRONG_DATATYPE; LENGTH_MISMATCH. O(elements).
  absl::Status AppendStrings(std::vector<absl::string_view>& strings) const;

  // An error that names this tensor, and the element if it is about one.
  absl::Status Invalid(absl::string_view reason, absl::string_view what,
                       std::optional<size_t> element = std::nullopt) const;

 private:
  absl::Status CheckContents() const;
  absl::Status CheckRaw() const;
  // Typed contents can hold numbers that an INT8 cannot.
  absl::Status NotOfDatatype(absl::string_view reason, size_t element) const;
  absl::Status AppendRawStrings(std::vector<absl::string_view>& strings) const;
  // Calls use(number) for each element, until it says false or the number is not one of the
  // datatype: returns how many it took. The datatype is not BYTES.
  template <typename Use>
  size_t EachNumber(const Use& use) const;

  const Message* message_;
  const std::string* raw_;
  int place_;
  const TensorDatatype* datatype_ = nullptr;
  size_t elements_ = 0;
};

}  // namespace perceptrond
