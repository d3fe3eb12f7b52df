// AnsweringModel: the model whose predictions `perceptronctl predict` prints. An alias may name another
// model during the stream; labels are then those of the model that answered.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {

// Threads: one at a time; LabelOf() any.
class AnsweringModel {
 public:
  // `asked`: the name of the model or alias. Both must outlive it.
  AnsweringModel(const Client& client, const std::string& asked) : client_(client), asked_(asked) {}

  // Reads the model that is to answer first.
  absl::Status Open();
  // Reads the model of an answer if it is another than that of the answer before, and returns whether it
  // is. Errors: the model cannot be read, so that its labels are not known.
  absl::StatusOr<bool> Follow(const v1::PredictResponse& answer);

  // The model of the latest answer.
  const v1::Model& model() const { return model_; }
  bool multiclass() const { return model_.learner().has_classes(); }
  std::vector<std::string> label_names() const;
  // Whether its labels and classes are those of the first model, by which LabelOf() reads labels.
  bool has_first_labels() const { return has_first_labels_; }
  // Whether this is a label by LabelOf(), and the model has other labels.
  bool HasNot(int label) const {
    // With two labels 0 may mean that there is none.
    const bool is_label = label != Row::kNoLabel && (label != 0 || first_multiclass_);
    return is_label && !has_first_labels_;
  }

  // The row's label or class number in the first model; Row::kNoLabel without one.
  int LabelOf(const Row& row) const;

 private:
  const Client& client_;
  const std::string& asked_;
  v1::Model model_;
  // The first model's.
  bool first_multiclass_ = false;
  std::vector<std::string> first_names_;
  absl::flat_hash_map<std::string, int> class_numbers_;
  bool has_first_labels_ = true;
  // An answer came.
  bool answered_ = false;
};

}  // namespace perceptrond::client
