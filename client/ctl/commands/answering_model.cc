#include "client/ctl/commands/answering_model.h"

#include <utility>

#include "client/ctl/prediction.h"

namespace perceptrond::client {

absl::Status AnsweringModel::Open() {
  absl::StatusOr<v1::Model> model = client_.GetModel(asked_);
  if (!model.ok()) return model.status();
  model_ = *std::move(model);
  first_multiclass_ = multiclass();
  first_names_ = label_names();
  for (const std::string& name : first_names_)
    class_numbers_.emplace(name, static_cast<int>(class_numbers_.size()));
  return absl::OkStatus();
}

absl::StatusOr<bool> AnsweringModel::Follow(const v1::PredictResponse& answer) {
  const bool is_first = !std::exchange(answered_, true);
  if (answer.model().empty() || (is_first && answer.model() == model_.name())) return false;
  // By the alias, because the caller may have access to the model through it alone.
  absl::StatusOr<v1::Model> model = client_.GetModel(asked_);
  if (!model.ok() || model->name() != answer.model()) model = client_.GetModel(answer.model());
  if (!model.ok()) return model.status();
  const bool is_another = model->name() != model_.name() || model->uid() != model_.uid();
  model_ = *std::move(model);
  has_first_labels_ = multiclass() == first_multiclass_ && label_names() == first_names_;
  return is_another;
}

std::vector<std::string> AnsweringModel::label_names() const {
  return {model_.label_names().begin(), model_.label_names().end()};
}

int AnsweringModel::LabelOf(const Row& row) const {
  if (row.label_name.empty()) return row.label;
  const auto known = class_numbers_.find(row.label_name);
  return known == class_numbers_.end() ? kUnknownClass : known->second;
}

}  // namespace perceptrond::client
