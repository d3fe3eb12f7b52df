// Retained examples, to and from their stored form.
#pragma once

#include "absl/status/statusor.h"
#include "core/model/retention.h"
#include "perceptron/storage/v1/journal.pb.h"

namespace perceptrond {

::perceptron::storage::v1::Retained ToStorage(const RetainedExamples& examples);

// What the rows must fit.
struct RetainedShape {
  // Indices lie below it.
  size_t size = 0;
  bool named = false;
};
// DATA_LOSS for a row that contradicts itself or does not fit; labels are not looked at. Sampled
// rows are hashed again, with the dictionary that they were stored with.
absl::StatusOr<RetainedExamples> FromStorage(const ::perceptron::storage::v1::Retained& stored,
                                             const RetainedShape& shape, const Dictionary& names);

}  // namespace perceptrond
