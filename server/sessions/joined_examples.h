// Predictions and the labels that come for them later: the features of predicted rows, as they are
// kept (core/store/waiting_predictions.h), and examples that name predictions, with these features.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/features/feature_space.h"
#include "core/store/waiting_predictions.h"
#include "core/vector/check.h"
#include "core/vector/row.h"
#include "perceptron/v1/example.pb.h"
#include "server/sessions/nested_examples.h"

namespace perceptrond {

// The features of each row that was predicted, as a perceptron.v1.Example in the form in which
// nested examples are sent; empty for the rows in `refused`, which ascend. O(features).
std::vector<std::string> CopyFeatures(const Batch& batch, const FeatureSpace& space,
                                      std::span<const RowError> refused);

// How many of the rows from `first_offset` on, any number, are before a producer's position.
size_t RowsBefore(int64_t position, int64_t first_offset);

// Whether examples name predictions instead of features. O(nested examples).
template <typename Message>
bool NamesPredictions(const RequestWithExamples<Message>& request) {
  if (request.message.columns().prediction_ids_size() > 0) return true;
  for (const NestedExample& example : request.examples) {
    if (example.features == NestedExample::FeaturesCase::kPredictionId) return true;
  }
  return false;
}

// The examples of a message some of which name predictions. Reuses its memory. Not thread-safe.
class JoinedExamples {
 public:
  // Claims the predictions that rows from `first` on name: the rows before were learned already, and
  // get no features. INVALID_ARGUMENT (BOTH_FORMS, TOO_MANY_EXAMPLES, MALFORMED_COLUMNS); UNAVAILABLE
  // (KEEPER_UNREACHABLE).
  template <typename Message>
  absl::Status Read(const RequestWithExamples<Message>& request, size_t first,
                    ClaimedPredictions& claimed) {
    return Read(request.examples, request.message.has_columns(), request.message.columns(), first,
                claimed);
  }

  // With features. Those whose prediction was not found name it.
  const NestedExamples& examples() const { return examples_; }
  // Whether the message has them in columns.
  bool in_columns() const { return in_columns_; }
  // Why row i, which names its prediction still, cannot be learned.
  ValidationError ErrorOf(size_t i) const;

 private:
  absl::Status Read(const NestedExamples& examples, bool has_columns,
                    const ::perceptron::v1::ExampleColumns& columns, size_t first,
                    ClaimedPredictions& claimed);
  absl::Status CheckColumns(const ::perceptron::v1::ExampleColumns& columns) const;

  NestedExamples examples_;
  bool in_columns_ = false;
  // One a row; kNone: it has features.
  std::vector<ValidationCode> codes_;
};

}  // namespace perceptrond
