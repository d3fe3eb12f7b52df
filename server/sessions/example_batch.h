// Converts the examples of a message to the batch that the core reads. Packed columns are viewed in
// place; nested examples are copied into columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/features/name_table.h"
#include "core/features/text.h"
#include "core/model/model.h"
#include "core/settings/settings.h"
#include "perceptron/v1/example.pb.h"
#include "server/sessions/joined_examples.h"
#include "server/sessions/nested_examples.h"

namespace perceptrond {

// Reuses its memory from one message to the next. Holds views of the message, which must outlive
// the batch. Not thread-safe.
class ExampleBatch {
 public:
  enum class Use : uint8_t { kLearn, kPredict };

  // The most examples that a message may hold, so that the response fits a message too.
  static constexpr size_t kMaxExamples = NestedExamples::kMaxExamples;

  // Gives the stream that the messages come on a table of names, as its first message asks for;
  // 0: none.
  void MakeStreamNames(uint32_t name_table_size);
  // The names that the table holds; 0: there is none.
  uint32_t name_table_size() const { return name_table_size_; }
  // What the table takes, approximately: it grows with the names that were appended.
  size_t stream_names_bytes() const {
    return stream_names_ == nullptr ? 0 : stream_names_->memory_bytes();
  }
  // Releases the memory that is kept for the next message. Nothing may be read until that.
  void DropSpareMemory();
  // Appends a message's names to the table. To be called once for each message of a stream, also
  // for one that is refused. INVALID_ARGUMENT (MALFORMED_COLUMNS, BAD_NAME): the table is not what
  // the client takes it for.
  absl::Status AppendStreamNames(const ::perceptron::v1::ExampleColumns& columns) {
    return columns.has_stream_names() ? AppendStreamNames(columns.stream_names())
                                      : absl::OkStatus();
  }
  absl::Status AppendStreamNames(const ::perceptron::v1::NameColumn& names);

  // Reads the message's examples, which are either nested or in columns. INVALID_ARGUMENT
  // (BOTH_FORMS, TOO_MANY_EXAMPLES, MALFORMED_COLUMNS, BAD_NAME, WEIGHTS_NOT_TAKEN). O(the message).
  // Asks KeepGoing about texts: once that returned false their rows are any rows.
  template <typename Message>
  absl::Status Read(const RequestWithExamples<Message>& request, const ModelSettings& settings,
                    Use use) {
    return Read(request.examples, request.message.has_columns(), request.message.columns(),
                settings, use);
  }

  // The same of examples that name predictions, to learn. They must outlive the batch.
  absl::Status ReadJoined(const JoinedExamples& joined, const ModelSettings& settings);

  const Batch& batch() const { return batch_; }
  // Validation errors of nested examples and texts, which are empty rows in the batch.
  std::span<const RowError> row_errors() const { return row_errors_; }
  // The path from the request to the field that the error is about:
  // "examples[3].sparse.indices[7]". O(the row's features).
  std::string PathTo(const RowError& row_error) const;

 private:
  absl::Status Read(const NestedExamples& examples, bool has_columns,
                    const ::perceptron::v1::ExampleColumns& columns, const ModelSettings& settings,
                    Use use);
  absl::Status ReadForms(const NestedExamples& examples, bool has_columns,
                         const ::perceptron::v1::ExampleColumns& columns,
                         const ModelSettings& settings, Use use);
  std::string PathInColumns(const RowError& row_error) const;
  static std::string PathInJoined(const RowError& row_error);
  std::string PathInExample(const RowError& row_error) const;
  absl::Status ReadColumns(const ::perceptron::v1::ExampleColumns& columns,
                           const ModelSettings& settings, Use use);
  absl::Status ReadTexts(const ::perceptron::v1::ExampleColumns& columns,
                         const ModelSettings& settings);
  absl::Status ReadIndices(const ::perceptron::v1::ExampleColumns& columns);
  absl::Status ReadValues(const ::perceptron::v1::ExampleColumns& columns);
  absl::Status ReadNames(const ::perceptron::v1::ExampleColumns& columns);
  void ReadExamples(const NestedExamples& examples, const ModelSettings& settings, Use use);
  // Appends the example's features as a row, or returns why it is invalid.
  ValidationError AppendRow(const NestedExample& example, const ModelSettings& settings);
  ValidationError AppendNamed(const NestedExample& example);
  ValidationError AppendText(absl::string_view text, const FeatureSpace& space);
  // Collects the names of the labels of a model with several classes.
  void GatherLabelNames(const NestedExamples& examples);
  ValidationError ReadLabel(const NestedExample& example, const ModelSettings& settings,
                            int32_t& label) const;
  ValidationError ReadClass(const NestedExample& example, int32_t& label) const;

  Batch batch_;
  // Null unless examples name predictions.
  const JoinedExamples* joined_ = nullptr;
  // Null if the examples are in columns.
  const NestedExamples* examples_ = nullptr;
  std::vector<RowError> row_errors_;
  std::vector<uint32_t> row_ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  // Empty unless an example has a weight.
  std::vector<float> weights_;
  // Never absent.
  std::optional<NameTable> names_{std::in_place};
  // Some example has names.
  bool has_names_ = false;
  // By name: 1 above the last row that has it.
  std::vector<uint32_t> last_row_;
  std::unique_ptr<NameTable> stream_names_;
  uint32_t name_table_size_ = 0;
  // One a row, unless no example has one; and what reads them.
  std::vector<absl::string_view> texts_;
  TextReader text_reader_;
  // How many n-grams the texts read had.
  size_t text_grams_ = 0;
  std::vector<absl::string_view> label_names_;
  absl::flat_hash_map<absl::string_view, int32_t> label_positions_;
};

}  // namespace perceptrond
