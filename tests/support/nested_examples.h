// Compares what the server reads of a request with what Protobuf's parser reads of it.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/vector/name.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/sessions/nested_examples.h"

namespace perceptrond::testing {

inline grpc::ByteBuffer InSlices(std::string_view bytes, size_t slice_bytes) {
  std::vector<grpc::Slice> slices;
  for (size_t i = 0; i < bytes.size(); i += slice_bytes)
    slices.emplace_back(bytes.data() + i, std::min(slice_bytes, bytes.size() - i));
  return {slices.data(), slices.size()};
}

// Without the bytes of a prediction's id, which the server refuses.
inline ::perceptron::v1::Example ToProto(const NestedExamples& examples,
                                         const NestedExample& example) {
  ::perceptron::v1::Example proto;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  example.indices.AppendTo(indices);
  example.values.AppendTo(values);
  switch (example.features) {
    case NestedExample::FeaturesCase::kNone:
      break;
    case NestedExample::FeaturesCase::kDense:
      proto.mutable_dense()->mutable_values()->Add(values.begin(), values.end());
      break;
    case NestedExample::FeaturesCase::kSparse:
      proto.mutable_sparse()->mutable_indices()->Add(indices.begin(), indices.end());
      proto.mutable_sparse()->mutable_values()->Add(values.begin(), values.end());
      break;
    case NestedExample::FeaturesCase::kNamed:
      proto.mutable_named()->mutable_values()->Add(values.begin(), values.end());
      for (const absl::string_view name : examples.names(example))
        proto.mutable_named()->add_names(std::string(name));
      break;
    case NestedExample::FeaturesCase::kText:
      proto.set_text(std::string(example.text));
      break;
    case NestedExample::FeaturesCase::kPredictionId:
      proto.set_prediction_id(std::string(example.prediction_id));
      break;
  }
  if (example.target == NestedExample::TargetCase::kLabel) proto.set_label(example.label);
  if (example.target == NestedExample::TargetCase::kLabelName)
    proto.set_label_name(std::string(example.label_name));
  if (example.has_weight) proto.set_weight(example.weight);
  return proto;
}

// Whether a text is not UTF-8, which is a validation error here and no message to Protobuf.
inline bool HasBadText(const NestedExamples& examples) {
  return std::any_of(examples.begin(), examples.end(), [](const NestedExample& example) {
    return !IsValidUtf8({example.text.data(), example.text.size()});
  });
}

// How the server and Protobuf differ about a LearnRequest of these bytes; empty if they do not.
inline std::string DifferenceFromProtobuf(std::string_view bytes, size_t slice_bytes) {
  ::perceptron::v1::LearnRequest expected;
  const bool valid = expected.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
  RequestWithExamples<::perceptron::v1::LearnRequest> request;
  grpc::ByteBuffer buffer = InSlices(bytes, slice_bytes);
  const bool read_here = ParseMessage(buffer, bytes.size(), request).ok();
  if (read_here && !valid && HasBadText(request.examples)) return "";
  if (read_here != valid)
    return valid ? "Protobuf alone accepts it" : "the server alone accepts it";
  if (!valid) return "";
  if (!request.message.examples().empty()) return "Protobuf has read examples";
  // As the queue of a worker does.
  const RequestWithExamples<::perceptron::v1::LearnRequest> moved = std::move(request);
  ::perceptron::v1::LearnRequest read = moved.message;
  for (const NestedExample& example : moved.examples)
    *read.add_examples() = ToProto(moved.examples, example);
  read.DiscardUnknownFields();
  expected.DiscardUnknownFields();
  // As bytes, since a NaN does not equal itself.
  return read.SerializeAsString() == expected.SerializeAsString()
             ? ""
             : "read:\n" + read.DebugString() + "expected:\n" + expected.DebugString();
}

}  // namespace perceptrond::testing
