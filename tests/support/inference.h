// Requests of the Open Inference Protocol as its clients make them: tensors with contents, and the
// same in raw bytes. Written from the protocol's text, apart from the server's own reading.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "inference/inference_service.pb.h"

namespace perceptrond::testing {

namespace oip = ::inference;
using InferTensor = oip::ModelInferRequest::InferInputTensor;

inline InferTensor& AddTensor(oip::ModelInferRequest& request, const std::string& name,
                              const std::string& datatype, const std::vector<int64_t>& shape) {
  InferTensor& tensor = *request.add_inputs();
  tensor.set_name(name);
  tensor.set_datatype(datatype);
  for (const int64_t size : shape) tensor.add_shape(size);
  return tensor;
}

inline InferTensor& AddFloats(oip::ModelInferRequest& request, const std::string& name,
                              const std::vector<int64_t>& shape, const std::vector<float>& values) {
  InferTensor& tensor = AddTensor(request, name, "FP32", shape);
  for (const float value : values) tensor.mutable_contents()->add_fp32_contents(value);
  return tensor;
}

inline InferTensor& AddIndices(oip::ModelInferRequest& request, const std::string& name,
                               const std::vector<uint32_t>& values) {
  InferTensor& tensor = AddTensor(request, name, "UINT32", {static_cast<int64_t>(values.size())});
  for (const uint32_t value : values) tensor.mutable_contents()->add_uint_contents(value);
  return tensor;
}

inline InferTensor& AddStrings(oip::ModelInferRequest& request, const std::string& name,
                               const std::vector<int64_t>& shape,
                               const std::vector<std::string>& values) {
  InferTensor& tensor = AddTensor(request, name, "BYTES", shape);
  for (const std::string& value : values) tensor.mutable_contents()->add_bytes_contents(value);
  return tensor;
}

// The lowest `bytes` bytes of a number, the lowest first.
inline void AppendBytes(uint64_t number, int bytes, std::string& to) {
  for (int i = 0; i < bytes; ++i) to.push_back(static_cast<char>(number >> (8 * i)));
}

// How many bytes an element of a datatype takes; 0 for BYTES and for what is none.
inline int ElementBytes(const std::string& datatype) {
  if (datatype == "BOOL" || datatype == "INT8" || datatype == "UINT8") return 1;
  if (datatype == "INT16" || datatype == "UINT16") return 2;
  if (datatype == "INT32" || datatype == "UINT32" || datatype == "FP32") return 4;
  return datatype == "INT64" || datatype == "UINT64" || datatype == "FP64" ? 8 : 0;
}

// The contents of a tensor in the order of their fields: of a well-formed tensor one field has any.
inline std::string RawContents(const std::string& datatype,
                               const oip::InferTensorContents& contents) {
  std::string raw;
  const int bytes = ElementBytes(datatype);
  for (const bool value : contents.bool_contents()) AppendBytes(value ? 1 : 0, bytes, raw);
  for (const int32_t value : contents.int_contents())
    AppendBytes(static_cast<uint64_t>(value), bytes, raw);
  for (const int64_t value : contents.int64_contents())
    AppendBytes(static_cast<uint64_t>(value), bytes, raw);
  for (const uint32_t value : contents.uint_contents()) AppendBytes(value, bytes, raw);
  for (const uint64_t value : contents.uint64_contents()) AppendBytes(value, bytes, raw);
  for (const float value : contents.fp32_contents())
    AppendBytes(std::bit_cast<uint32_t>(value), bytes, raw);
  for (const double value : contents.fp64_contents())
    AppendBytes(std::bit_cast<uint64_t>(value), bytes, raw);
  for (const std::string& value : contents.bytes_contents()) {
    AppendBytes(value.size(), 4, raw);
    raw += value;
  }
  return raw;
}

// The same request with raw contents.
inline oip::ModelInferRequest Raw(oip::ModelInferRequest request) {
  for (InferTensor& tensor : *request.mutable_inputs()) {
    request.add_raw_input_contents(RawContents(tensor.datatype(), tensor.contents()));
    tensor.clear_contents();
  }
  return request;
}

// The same response with raw contents.
inline oip::ModelInferResponse Raw(oip::ModelInferResponse response) {
  for (auto& tensor : *response.mutable_outputs()) {
    response.add_raw_output_contents(RawContents(tensor.datatype(), tensor.contents()));
    tensor.clear_contents();
  }
  return response;
}

}  // namespace perceptrond::testing
