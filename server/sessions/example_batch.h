// From a message's examples to the batch that the core reads. Packed columns are read where they
// lie; nested examples are laid out as columns.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/model/model.h"
#include "core/model/settings.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond {

// Keeps its memory from one message to the next. Not thread-safe. Views of the message: it must
// outlive the batch.
class ExampleBatch {
 public:
  enum class Use : uint8_t { kLearn, kPredict };

  // The most examples a message may hold, so that the answer fits a message too.
  static constexpr size_t kMaxExamples = 1 << 16;

  // Reads the message's examples, of which it has one form or none. INVALID_ARGUMENT (BOTH_FORMS,
  // TOO_MANY_EXAMPLES, WEIGHTS_NOT_TAKEN).
  absl::Status Read(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples,
                    bool has_columns, const ::perceptron::v1::ExampleColumns& columns,
                    const ModelSettings& settings, Use use);

  const Batch& batch() const { return batch_; }
  // Nested examples that are bad in themselves; they lie in the batch as empty rows.
  std::span<const RowError> row_errors() const { return refused_; }
  // The path of a refused row's field from the request's root: "examples[3].sparse.indices[7]".
  // O(the row's features).
  std::string PathTo(const RowError& row_errors) const;

 private:
  std::string PathInColumns(const RowError& row_errors) const;
  std::string PathInExample(const RowError& row_errors) const;
  void ReadColumns(const ::perceptron::v1::ExampleColumns& columns, Use use);
  void ReadExamples(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples,
                    const ModelSettings& settings, Use use);
  void GatherNames(const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples);
  // Appends the example's features as a row; finds fault with it otherwise.
  ValidationError AppendRow(const ::perceptron::v1::Example& example,
                            const ModelSettings& settings);
  ValidationError AppendNamed(const ::perceptron::v1::NamedFeatures& named);
  // Of several classes: which names the labels have, if they go by name.
  void GatherLabelNames(
      const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>& examples);
  ValidationError ReadLabel(const ::perceptron::v1::Example& example, const ModelSettings& settings,
                            int32_t& label) const;
  ValidationError ReadClass(const ::perceptron::v1::Example& example, int32_t& label) const;

  Batch batch_;
  // Null: the rows came in columns.
  const google::protobuf::RepeatedPtrField<::perceptron::v1::Example>* examples_ = nullptr;
  std::vector<RowError> refused_;
  std::vector<uint32_t> row_ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  // Empty unless an example has one.
  std::vector<float> weights_;
  std::vector<absl::string_view> names_;
  // The place of each name in names_.
  absl::flat_hash_map<absl::string_view, uint32_t> places_;
  std::vector<absl::string_view> label_names_;
  absl::flat_hash_map<absl::string_view, int32_t> label_places_;
};

}  // namespace perceptrond
