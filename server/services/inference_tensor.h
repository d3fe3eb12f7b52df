// Input tensors of the Open Inference Protocol: reads their typed or raw contents as values,
// indices or names of examples. FP64 is rounded to float32; no other conversion rounds.
#pragma once

#include <google/protobuf/repeated_field.h>
#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "inference/inference_service.pb.h"

namespace perceptrond {

// ---- Raw contents: little endian, unaligned ----

template <typename T>
T LoadLittleEndian(const char* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <typename T>
void AppendLittleEndian(T value, std::string& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  to.append(bytes, sizeof(T));
}

// ---- Conversions of elements to float32 values and to indices ----

// Element types that C++ lacks.
struct Bool {
  uint8_t byte;
};
struct Half {
  uint16_t bits;
};
struct Bfloat16 {
  uint16_t bits;
};

// Sets `to` to the float32 that equals `from`; returns false if there is none. Of a double it is the
// nearest one, of two the even one, and there is none beyond the largest float32. NaN and infinities
// are converted to float32's.
inline bool ToFloat(float from, float& to) {
  to = from;
  return true;
}
inline bool ToFloat(double from, float& to) {
  if (std::isfinite(from) && std::abs(from) > std::numeric_limits<float>::max()) return false;
  to = static_cast<float>(from);
  return true;
}
template <std::integral T>
bool ToFloat(T from, float& to) {
  const auto bits = static_cast<uint64_t>(from);
  const uint64_t magnitude = std::cmp_less(from, 0) ? 0 - bits : bits;
  to = static_cast<float>(from);
  // The significant bits fit float32's 24.
  return magnitude == 0 || magnitude >> std::countr_zero(magnitude) < 1U << 24;
}
inline bool ToFloat(Bool from, float& to) {
  to = from.byte;
  return from.byte <= 1;
}
inline bool ToFloat(Bfloat16 from, float& to) {
  to = std::bit_cast<float>(static_cast<uint32_t>(from.bits) << 16);
  return true;
}
inline bool ToFloat(Half from, float& to) {
  const uint32_t sign = static_cast<uint32_t>(from.bits & 0x8000) << 16;
  const uint32_t exponent = (from.bits >> 10) & 0x1f;
  const uint32_t fraction = from.bits & 0x3ff;
  if (exponent == 0) {
    to = std::copysign(static_cast<float>(fraction) * 0x1p-24F, std::bit_cast<float>(sign | 1));
  } else {
    const uint32_t wide = exponent == 0x1f ? 0xff : exponent + (127 - 15);
    to = std::bit_cast<float>(sign | wide << 23 | fraction << 13);
  }
  return true;
}

// Sets `to` to the index that equals `from`; returns false if there is none.
template <typename T>
bool ToIndex(T from, uint32_t& to) {
  if constexpr (std::integral<T>) {
    to = static_cast<uint32_t>(from);
    return std::in_range<uint32_t>(from);
  }
  return false;
}

// The number in an error message.
template <typename T>
std::string ToString(T number) {
  if constexpr (std::is_arithmetic_v<T>) {
    return absl::StrCat(+number);
  } else {
    // BOOL is the only one of these with invalid values.
    return "a BOOL other than 0 and 1";
  }
}

// Converts a number of typed contents to the tensor's datatype; returns false if it is out of
// range.
template <typename From, typename To>
bool Narrow(From from, To& to) {
  if constexpr (std::same_as<From, To>) {
    to = from;
    return true;
  } else if constexpr (std::same_as<To, Bool>) {
    to = {static_cast<uint8_t>(from)};
    return true;
  } else if constexpr (std::integral<To>) {
    to = static_cast<To>(from);
    return std::in_range<To>(from);
  }
  return false;
}

// ---- One tensor ----

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

  // Appends the elements, those of FP64 rounded to the nearest float32. WRONG_DATATYPE; INEXACT_VALUE
  // for an FP64 beyond float32's range, and for another number that is not exactly a float32.
  // O(elements).
  absl::Status AppendFloats(google::protobuf::RepeatedField<float>& values) const;
  // Appends the elements. WRONG_DATATYPE; INDEX_OUT_OF_RANGE for a number below 0 or above 2^32 -
  // 1. O(elements).
  absl::Status AppendIndices(google::protobuf::RepeatedField<uint32_t>& indices) const;
  // Appends views of the elements. WRONG_DATATYPE; LENGTH_MISMATCH. O(elements).
  absl::Status AppendStrings(std::vector<absl::string_view>& strings) const;

  // An error of this code that names this tensor, and the element if it is about one.
  absl::Status Error(absl::StatusCode code, absl::string_view reason, absl::string_view what,
                     std::optional<size_t> element = std::nullopt) const;
  // INVALID_ARGUMENT, likewise.
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
