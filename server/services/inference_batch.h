// From the tensors of an inference request to examples in columns, and from what is wrong with
// those back to the tensors. The one place that knows which tensors make an example.
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

// What the tensors that make examples are called, in the order of Role.
inline constexpr std::array<absl::string_view, 5> kInputNames = {"features", "row_ends", "indices",
                                                                 "values", "names"};

// Not thread-safe. Views of the request: it must outlive the batch.
class InferenceBatch {
 public:
  // Fills `columns`, which are empty, with the request's examples. Whether the model takes their
  // form, and what is in their rows, is for Predict to say. INVALID_ARGUMENT, as the proto lists
  // the reasons. O(elements), of names O(elements x log elements).
  absl::Status Read(const ::inference::ModelInferRequest& request,
                    ::perceptron::v1::ExampleColumns& columns);

  // Whether dense rows are as wide as the model's examples where there are none, so that Predict,
  // which looks at each row, found nothing wrong with them. WRONG_DIMENSION.
  absl::Status CheckWidth(const FeatureSpace& space,
                          const ::perceptron::v1::ExampleColumns& columns) const;

  // An error that Predict answered to these columns with, said of the tensors they came from.
  // Others are left as they are.
  absl::Status InTensors(const absl::Status& status) const;

 private:
  enum class Role : uint8_t { kFeatures, kRowEnds, kIndices, kValues, kNames };
  static constexpr size_t kRoles = kInputNames.size();

  absl::Status Gather(const ::inference::ModelInferRequest& request);
  absl::Status CheckForm() const;
  absl::Status ReadDense(::perceptron::v1::ExampleColumns& columns) const;
  absl::Status ReadSparse(::perceptron::v1::ExampleColumns& columns) const;
  absl::Status ReadRowEnds(google::protobuf::RepeatedField<uint32_t>& row_ends) const;

  // Names: server/services/inference_names.cc. The rows as they were sent, before they are in columns.
  struct SentNames {
    // "" where a row of [n, k] ends early.
    std::vector<absl::string_view> names;
    // Where each row ends among them.
    google::protobuf::RepeatedField<uint32_t> row_ends;
    // Of each name its place among all that occur, in the order of their bytes; of "" 0.
    std::vector<uint32_t> numbers;
  };
  absl::Status ReadNamed(::perceptron::v1::ExampleColumns& columns);
  absl::Status CheckNameShapes() const;
  absl::Status CheckName(absl::string_view name, size_t place) const;
  absl::Status ReadNameRows(SentNames& sent) const;
  absl::Status CheckNameRows(const SentNames& sent) const;
  absl::Status AppendNameRow(const SentNames& sent, size_t begin, size_t end,
                             ::perceptron::v1::ExampleColumns& columns);
  absl::Status AppendNameValues(::perceptron::v1::ExampleColumns& columns) const;
  // Names as [n, k].
  bool padded() const { return Has(Role::kNames) && tensor(Role::kNames)->rank() == 2; }

  bool Has(Role role) const { return tensor(role).has_value(); }
  const std::optional<InferenceTensor>& tensor(Role role) const {
    return tensors_[static_cast<size_t>(role)];
  }
  // What was found of the columns at `path`, "row_ends[3]", said of the tensor it came from.
  absl::Status InTensors(absl::string_view reason, absl::string_view path,
                         absl::string_view description) const;
  // The tensor that a field of the columns was made of.
  const InferenceTensor& TensorOf(absl::string_view field) const;

  std::array<std::optional<InferenceTensor>, kRoles> tensors_;
  // Of named rows: where each of their features stands in the tensors.
  std::vector<size_t> places_;
};

}  // namespace perceptrond
