// Examples and the models that they are for: the dimension, the kind of features and the labels.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/client.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

// The smallest dimension that the row fits. O(1) if its indices ascend, as they must.
uint64_t NeededDimension(const Row& row);

// A model that rows are sent to.
struct RowTarget {
  // Of several models: which one, before a message.
  std::string prefix;
  // Its ExampleSpace().
  perceptron::v1::FeatureSpace space;
};

// FAILED_PRECONDITION if the row's features are of another kind than the model takes: it would take none
// of the file's rows.
absl::Status CheckKind(const Row& row, const RowTarget& target);

// FAILED_PRECONDITION if the row has a larger index than a model of indices or slots has, or as a dense
// row another number of values. The message says what to do; indices in it count from `index_base`.
absl::Status CheckDimension(const Row& row, const RowTarget& target, int index_base);

// FAILED_PRECONDITION if no name is unknown to models of this ExampleSpace(), for --unknown-names refuse.
absl::Status CheckKnowsNames(const perceptron::v1::FeatureSpace& space);

// Whether a model of names has a weight other than 0 for one of these columns of a CSV file, or for a word in it; absent: it
// has none for any name, or cannot be asked.
std::optional<bool> HasWeightOf(const Client& client, const perceptron::v1::Model& model,
                                const std::vector<std::string>& columns);

// FAILED_PRECONDITION if a file that is read by the labels of `first` would tell `other` other labels.
absl::Status CheckSameLabels(const perceptron::v1::Model& first,
                             const perceptron::v1::Model& other);

// The dimension or the number of slots of an ExampleSpace(), which indices are below; absent: it takes none.
std::optional<uint64_t> IndexLimit(const perceptron::v1::FeatureSpace& space);

// Removes what is not below the limit. False: there was nothing.
bool DropUnseen(uint64_t limit, Row* row);

}  // namespace perceptrond::client
