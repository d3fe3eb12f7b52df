// Converts the examples of a message to the batch that the core reads. Packed columns are viewed in
// place; nested examples are copied into columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/model/model.h"
#include "core/settings/settings.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond {

// Reuses its memory from one message to the next. Holds views of the message, which must outlive
// the batch. Not thread-safe.
class ExampleBatch {
 public:
  enum class Use : uint8_t { kLearn, kPredict };

  // The most examples that a message may hold, so that the response fits a message too.
  static constexpr size_t kMaxExamples = 1 << 16;

  // Reads the message's examples, which are either nested or in columns. INVALID_ARGUMENT
  // (BOTH_FORMS, TOO_MANY_EXAMPLES, WEIGHTS_NOT_TAKEN). O(the message).
  absl::Status Read(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples,
                    bool has_columns, const ::perceptron::v1::ExampleColumns& columns,
                    const ModelSettings& settings, Use use);

  const Batch& batch() const { return batch_; }
  // Validation errors of nested examples, which are empty rows in the batch.
  std::span<const RowError> row_errors() const { return row_errors_; }
  // The path from the request to the field that the error is about:
  // "examples[3].sparse.indices[7]". O(the row's features).
  std::string PathTo(const RowError& row_error) const;

 private:
  std::string PathInColumns(const RowError& row_error) const;
  std::string PathInExample(const RowError& row_error) const;
  void ReadColumns(const ::perceptron::v1::ExampleColumns& columns, Use use);
  void ReadExamples(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples,
                    const ModelSettings& settings, Use use);
  void GatherNames(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples);
  // Appends the example's features as a row, or returns why it is invalid.
  ValidationError AppendRow(const ::perceptron::v1::Example& example,
                            const ModelSettings& settings);
  ValidationError AppendNamed(const ::perceptron::v1::NamedFeatures& named);
  // Collects the names of the labels of a model with several classes.
  void GatherLabelNames(
      const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples);
  ValidationError ReadLabel(const ::perceptron::v1::Example& example, const ModelSettings& settings,
                            int32_t& label) const;
  ValidationError ReadClass(const ::perceptron::v1::Example& example, int32_t& label) const;

  Batch batch_;
  // Null if the examples are in columns.
  const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>* examples_ = nullptr;
  std::vector<RowError> row_errors_;
  std::vector<uint32_t> row_ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  // Empty unless an example has a weight.
  std::vector<float> weights_;
  std::vector<absl::string_view> names_;
  // The position of each name in names_.
  absl::flat_hash_map<absl::string_view, uint32_t> positions_;
  std::vector<absl::string_view> label_names_;
  absl::flat_hash_map<absl::string_view, int32_t> label_positions_;
};

}  // namespace perceptrond
