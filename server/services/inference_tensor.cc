#include "server/services/inference_tensor.h"

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/error/error.h"

namespace perceptrond {

enum class Element : uint8_t {
  kBool,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFp16,
  kBf16,
  kFp32,
  kFp64,
  kBytes,
};

struct TensorDatatype {
  absl::string_view name;
  Element element;
  // The size of an element in raw contents; for BYTES the smallest.
  size_t bytes;
  // The field for typed contents; empty if there is none.
  absl::string_view field;
};

namespace {

using Contents = ::inference::InferTensorContents;

constexpr TensorDatatype kDatatypes[] = {
    {"BOOL", Element::kBool, 1, "bool_contents"},
    {"UINT8", Element::kUint8, 1, "uint_contents"},
    {"UINT16", Element::kUint16, 2, "uint_contents"},
    {"UINT32", Element::kUint32, 4, "uint_contents"},
    {"UINT64", Element::kUint64, 8, "uint64_contents"},
    {"INT8", Element::kInt8, 1, "int_contents"},
    {"INT16", Element::kInt16, 2, "int_contents"},
    {"INT32", Element::kInt32, 4, "int_contents"},
    {"INT64", Element::kInt64, 8, "int64_contents"},
    {"FP16", Element::kFp16, 2, ""},
    {"BF16", Element::kBf16, 2, ""},
    {"FP32", Element::kFp32, 4, "fp32_contents"},
    {"FP64", Element::kFp64, 8, "fp64_contents"},
    {"BYTES", Element::kBytes, 4, "bytes_contents"},
};

const TensorDatatype* FindDatatype(absl::string_view name) {
  for (const TensorDatatype& datatype : kDatatypes) {
    if (datatype.name == name) return &datatype;
  }
  return nullptr;
}

// Calls use(element) for each element, of the raw contents if there are any; see EachNumber.
template <typename T, typename Typed, typename Use>
size_t Each(size_t elements, const std::string* raw,
            const google::protobuf::RepeatedField<Typed>& typed, const Use& use) {
  for (size_t i = 0; i < elements; ++i) {
    T value{};
    if (raw != nullptr) {
      value = LoadLittleEndian<T>(raw->data() + i * sizeof(T));
    } else if (!Narrow(typed[static_cast<int>(i)], value)) {
      return i;
    }
    if (!use(value)) return i;
  }
  return elements;
}

// The fields of typed contents and their numbers of elements, in the same order.
constexpr absl::string_view kFields[] = {"bool_contents", "int_contents",    "int64_contents",
                                         "uint_contents", "uint64_contents", "fp32_contents",
                                         "fp64_contents", "bytes_contents"};
std::array<int, 8> FieldSizes(const Contents& contents) {
  return {contents.bool_contents_size(),   contents.int_contents_size(),
          contents.int64_contents_size(),  contents.uint_contents_size(),
          contents.uint64_contents_size(), contents.fp32_contents_size(),
          contents.fp64_contents_size(),   contents.bytes_contents_size()};
}

std::string Shape(const InferenceTensor::Message& message) {
  return absl::StrCat("[", absl::StrJoin(message.shape(), ", "), "]");
}

}  // namespace

absl::Status InferenceTensor::Error(absl::StatusCode code, absl::string_view reason,
                                    absl::string_view what, std::optional<size_t> element) const {
  const std::string where = element.has_value() ? absl::StrCat(", element ", *element) : "";
  return FieldError(
      code, reason, absl::StrCat("inputs[", position_, "]"),
      absl::StrCat("tensor \"", absl::Utf8SafeCHexEscape(name()), "\"", where, ": ", what));
}

absl::Status InferenceTensor::Invalid(absl::string_view reason, absl::string_view what,
                                      std::optional<size_t> element) const {
  return Error(absl::StatusCode::kInvalidArgument, reason, what, element);
}

absl::Status InferenceTensor::Check() {
  datatype_ = FindDatatype(message_->datatype());
  if (datatype_ == nullptr) {
    return Invalid("WRONG_DATATYPE",
                   absl::StrCat("\"", absl::Utf8SafeCHexEscape(message_->datatype()),
                                "\" is not a datatype; use BOOL, INT8 to INT64, UINT8 to UINT64, "
                                "FP16, BF16, FP32, FP64 or BYTES"));
  }
  uint64_t elements = 1;
  bool overflow = false;
  bool none = false;
  for (const int64_t size : message_->shape()) {
    if (size < 0) {
      return Invalid("WRONG_SHAPE",
                     absl::StrCat("the shape ", Shape(*message_), " has a size below 0"));
    }
    none |= size == 0;
    overflow |= __builtin_mul_overflow(elements, static_cast<uint64_t>(size), &elements);
  }
  if (overflow && !none) {
    return Invalid("WRONG_SHAPE",
                   absl::StrCat("the shape ", Shape(*message_), " has more than 2^64 elements"));
  }
  elements_ = none ? 0 : elements;
  return raw_ == nullptr ? CheckContents() : CheckRaw();
}

absl::Status InferenceTensor::CheckContents() const {
  const std::array<int, 8> sizes = FieldSizes(message_->contents());
  size_t own = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (kFields[i] == datatype_->field) {
      own = static_cast<size_t>(sizes[i]);
    } else if (sizes[i] > 0) {
      return Invalid(
          "WRONG_DATATYPE",
          absl::StrCat("is ", datatype_->name, " and has ", kFields[i], "; send ",
                       datatype_->field.empty() ? "raw_input_contents" : datatype_->field));
    }
  }
  if (own == elements_) return absl::OkStatus();
  if (datatype_->field.empty()) {
    return Invalid("LENGTH_MISMATCH",
                   absl::StrCat("has no contents; send ", datatype_->name,
                                " in raw_input_contents, since there is no field for it"));
  }
  return Invalid("LENGTH_MISMATCH", absl::StrCat(own, " elements in ", datatype_->field,
                                                 " for the shape ", Shape(*message_)));
}

absl::Status InferenceTensor::CheckRaw() const {
  const size_t room = raw_->size() / datatype_->bytes;
  const bool fits = datatype_->element == Element::kBytes
                        ? elements_ <= room
                        : elements_ == room && raw_->size() % datatype_->bytes == 0;
  if (fits) return absl::OkStatus();
  return Invalid("LENGTH_MISMATCH", absl::StrCat(raw_->size(), " raw bytes for ", datatype_->name,
                                                 " of the shape ", Shape(*message_)));
}

absl::Status InferenceTensor::CheckRank(int rank, absl::string_view meaning) const {
  if (this->rank() == rank) return absl::OkStatus();
  return Invalid("WRONG_SHAPE", absl::StrCat("the shape ", Shape(*message_), " is not ", meaning));
}

template <typename Use>
size_t InferenceTensor::EachNumber(const Use& use) const {
  const Contents& contents = message_->contents();
  switch (datatype_->element) {
    case Element::kBool:
      return Each<Bool>(elements_, raw_, contents.bool_contents(), use);
    case Element::kUint8:
      return Each<uint8_t>(elements_, raw_, contents.uint_contents(), use);
    case Element::kUint16:
      return Each<uint16_t>(elements_, raw_, contents.uint_contents(), use);
    case Element::kUint32:
      return Each<uint32_t>(elements_, raw_, contents.uint_contents(), use);
    case Element::kUint64:
      return Each<uint64_t>(elements_, raw_, contents.uint64_contents(), use);
    case Element::kInt8:
      return Each<int8_t>(elements_, raw_, contents.int_contents(), use);
    case Element::kInt16:
      return Each<int16_t>(elements_, raw_, contents.int_contents(), use);
    case Element::kInt32:
      return Each<int32_t>(elements_, raw_, contents.int_contents(), use);
    case Element::kInt64:
      return Each<int64_t>(elements_, raw_, contents.int64_contents(), use);
    // There are no typed contents for the next two: Check has verified that they are raw.
    case Element::kFp16:
      return Each<Half>(elements_, raw_, contents.fp32_contents(), use);
    case Element::kBf16:
      return Each<Bfloat16>(elements_, raw_, contents.fp32_contents(), use);
    case Element::kFp32:
      return Each<float>(elements_, raw_, contents.fp32_contents(), use);
    case Element::kFp64:
      return Each<double>(elements_, raw_, contents.fp64_contents(), use);
    case Element::kBytes:
      break;
  }
  return 0;
}

absl::Status InferenceTensor::AppendFloats(google::protobuf::RepeatedField<float>& values) const {
  if (datatype_->element == Element::kBytes)
    return Invalid("WRONG_DATATYPE", "is BYTES; send numbers, preferably FP32");
  values.Reserve(values.size() + static_cast<int>(elements_));
  std::string number_text;
  const size_t taken = EachNumber([&](auto number) {
    float value = 0;
    if (!ToFloat(number, value)) {
      number_text = ToString(number);
      return false;
    }
    values.AddAlreadyReserved(value);
    return true;
  });
  if (taken == elements_) return absl::OkStatus();
  if (number_text.empty()) return NotOfDatatype("INEXACT_VALUE", taken);
  return Invalid(
      "INEXACT_VALUE",
      absl::StrCat(number_text, datatype_->element == Element::kFp64
                                    ? " is beyond the range of float32; scale the values"
                                    : " is not exactly a float32; round it and send FP32"),
      taken);
}

absl::Status InferenceTensor::AppendIndices(
    google::protobuf::RepeatedField<uint32_t>& indices) const {
  if (datatype_->element < Element::kUint8 || datatype_->element > Element::kInt64) {
    return Invalid("WRONG_DATATYPE",
                   absl::StrCat("is ", datatype_->name, "; send integers, preferably UINT32"));
  }
  indices.Reserve(indices.size() + static_cast<int>(elements_));
  std::string number_text;
  const size_t taken = EachNumber([&](auto number) {
    uint32_t index = 0;
    if (!ToIndex(number, index)) {
      number_text = ToString(number);
      return false;
    }
    indices.AddAlreadyReserved(index);
    return true;
  });
  if (taken == elements_) return absl::OkStatus();
  if (number_text.empty()) return NotOfDatatype("INDEX_OUT_OF_RANGE", taken);
  return Invalid("INDEX_OUT_OF_RANGE", absl::StrCat(number_text, " is not from 0 to 4294967295"),
                 taken);
}

absl::Status InferenceTensor::NotOfDatatype(absl::string_view reason, size_t element) const {
  return Invalid(reason, absl::StrCat("is out of the range of ", datatype_->name), element);
}

absl::Status InferenceTensor::AppendStrings(std::vector<absl::string_view>& strings) const {
  if (datatype_->element != Element::kBytes)
    return Invalid("WRONG_DATATYPE", absl::StrCat("is ", datatype_->name, "; send BYTES"));
  if (raw_ != nullptr) return AppendRawStrings(strings);
  const auto& contents = message_->contents().bytes_contents();
  strings.insert(strings.end(), contents.begin(), contents.end());
  return absl::OkStatus();
}

absl::Status InferenceTensor::AppendRawStrings(std::vector<absl::string_view>& strings) const {
  absl::string_view rest = *raw_;
  for (size_t i = 0; i < elements_; ++i) {
    const size_t length =
        rest.size() < sizeof(uint32_t) ? rest.size() : LoadLittleEndian<uint32_t>(rest.data());
    if (rest.size() < sizeof(uint32_t) || rest.size() - sizeof(uint32_t) < length) {
      return Invalid(
          "LENGTH_MISMATCH",
          "exceeds the raw contents; precede each element with its length in four bytes, "
          "little endian",
          i);
    }
    strings.push_back(rest.substr(sizeof(uint32_t), length));
    rest.remove_prefix(sizeof(uint32_t) + length);
  }
  if (rest.empty()) return absl::OkStatus();
  return Invalid("LENGTH_MISMATCH",
                 absl::StrCat(rest.size(), " raw bytes follow the last element"));
}

}  // namespace perceptrond
