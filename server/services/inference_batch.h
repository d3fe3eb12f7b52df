// Converts the tensors of an inference request to examples in columns, and errors about the columns
// to errors about the tensors. The one place that knows which tensors form an example.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/features/feature_space.h"
#include "inference/inference_service.pb.h"
#include "perceptron/v1/example.pb.h"
#include "server/services/inference_tensor.h"

namespace perceptrond {

// The names of the input tensors, in the order of Role.
inline constexpr std::array<absl::string_view, 6> kInputNames = {"features", "row_ends", "indices",
                                                                 "values",   "names",    "text"};

// Holds views of the request, which must outlive the batch. Not thread-safe.
class InferenceBatch {
 public:
  // Fills `columns`, which must be empty, with the request's examples. Predict checks their rows,
  // and whether the model takes their form. INVALID_ARGUMENT, with the reasons that the proto
  // lists. O(elements), for names O(elements x log elements).
  absl::Status Read(const ::inference::ModelInferRequest& request,
                    ::perceptron::v1::ExampleColumns& columns);

  // Checks the width of a dense tensor without rows, which Predict cannot do: it checks each row.
  // WRONG_DIMENSION.
  absl::Status CheckWidth(const FeatureSpace& space,
                          const ::perceptron::v1::ExampleColumns& columns) const;

  // Converts an error of Predict about the columns to one about the tensors. Other errors are
  // returned unchanged.
  absl::Status ToTensorError(const absl::Status& status) const;

 private:
  enum class Role : uint8_t { kFeatures, kRowEnds, kIndices, kValues, kNames, kText };
  static constexpr size_t kRoles = kInputNames.size();

  absl::Status Gather(const ::inference::ModelInferRequest& request);
  absl::Status CheckForm() const;
  absl::Status ReadDense(::perceptron::v1::ExampleColumns& columns) const;
  absl::Status ReadTexts(::perceptron::v1::ExampleColumns& columns) const;
  absl::Status ReadSparse(::perceptron::v1::ExampleColumns& columns) const;
  absl::Status ReadRowEnds(google::protobuf::RepeatedField<uint32_t>& row_ends) const;

  // Rows of names, as sent.
  struct SentNames {
    // Shorter rows of [n, k] end with "".
    std::vector<absl::string_view> names;
    // Where each row ends in `names`.
    google::protobuf::RepeatedField<uint32_t> row_ends;
    // The position of each name in the vocabulary; 0 for "".
    std::vector<uint32_t> numbers;
  };
  absl::Status ReadNamed(::perceptron::v1::ExampleColumns& columns);
  absl::Status CheckNameShapes() const;
  // Checks the first dimension, that of the examples, before memory is taken for them.
  static absl::Status CheckRows(const InferenceTensor& tensor);
  absl::Status CheckName(absl::string_view name, size_t position) const;
  absl::Status ReadNameRows(SentNames& sent) const;
  absl::Status CheckNameRows(const SentNames& sent) const;
  absl::Status AppendNameRow(const SentNames& sent, size_t begin, size_t end,
                             ::perceptron::v1::ExampleColumns& columns);
  absl::Status AppendNameValues(::perceptron::v1::ExampleColumns& columns) const;
  // Whether names have the shape [n, k].
  bool padded() const { return Has(Role::kNames) && tensor(Role::kNames)->rank() == 2; }

  bool Has(Role role) const { return tensor(role).has_value(); }
  const std::optional<InferenceTensor>& tensor(Role role) const {
    return tensors_[static_cast<size_t>(role)];
  }
  // The error about the columns at `path`, such as "row_ends[3]", as one about their tensor.
  absl::Status ToTensorError(absl::StatusCode code, absl::string_view reason,
                             absl::string_view path, absl::string_view description) const;
  // The tensor that says how the examples are sent; absent if there is none.
  std::optional<Role> form() const;
  // The tensor that a field of the columns was made from.
  const InferenceTensor& TensorOf(absl::string_view field) const;

  std::array<std::optional<InferenceTensor>, kRoles> tensors_;
  // The position in the tensors of each feature of the columns, for named rows.
  std::vector<size_t> positions_;
};

}  // namespace perceptrond
