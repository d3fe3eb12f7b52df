#include "client/ctl/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

// Details of types unknown to this build cannot be printed as JSON.
void DropUnknownDetails(google::rpc::Status* status) {
  const auto* pool = google::protobuf::DescriptorPool::generated_pool();
  for (int i = status->details_size() - 1; i >= 0; --i) {
    const std::string& url = status->details(i).type_url();
    if (pool->FindMessageTypeByName(url.substr(url.rfind('/') + 1)) == nullptr) {
      status->mutable_details()->DeleteSubrange(i, 1);
    }
  }
}

void SetError(const v1::RowError& error, v1::PredictResponse* answer) {
  v1::RowError* own = answer->add_row_errors();
  *own->mutable_status() = error.status();
  DropUnknownDetails(own->mutable_status());
}

// Adds the values of row `row` out of `rows` rows.
void AddRow(const google::protobuf::RepeatedField<float>& all, int row, int rows,
            google::protobuf::RepeatedField<float>* own) {
  const int each = all.size() / rows;
  own->Add(all.begin() + row * each, all.begin() + (row + 1) * each);
}

// A line for an answer whose label or class has this name.
std::string Line(const v1::PredictResponse& answer, std::string_view label) {
  std::string line =
      absl::StrCat(PrintableInLine(label), "\t", Shortest(answer.scores(0)), "\t",
                   answer.distances_size() > 0 ? Shortest(answer.distances(0)) : std::string("-"));
  if (answer.probabilities_size() > 0)
    absl::StrAppend(&line, "\t", Shortest(answer.probabilities(0)));
  if (answer.prediction_ids_size() > 0) absl::StrAppend(&line, "\t", answer.prediction_ids(0));
  return line + "\n";
}

}  // namespace

std::string LabelName(int label, const std::vector<std::string>& names) {
  if (names.size() == 2) return names[label > 0 ? 1 : 0];
  return label > 0 ? "+1" : "-1";
}

v1::PredictResponse AnswerToRow(const v1::PredictResponse& response, int row,
                                const v1::RowError* error) {
  v1::PredictResponse answer;
  answer.add_scores(response.scores(row));
  answer.add_predicted_labels(response.predicted_labels(row));
  if (row < response.distances_size()) answer.add_distances(response.distances(row));
  if (row < response.probabilities_size()) answer.add_probabilities(response.probabilities(row));
  answer.set_model(response.model());
  AddRow(response.class_scores(), row, response.scores_size(), answer.mutable_class_scores());
  AddRow(response.class_probabilities(), row, response.scores_size(),
         answer.mutable_class_probabilities());
  if (row < response.prediction_ids_size()) answer.add_prediction_ids(response.prediction_ids(row));
  answer.set_revision(response.revision());
  *answer.mutable_component_revisions() = response.component_revisions();
  if (error != nullptr) SetError(*error, &answer);
  return answer;
}

std::string PredictionHeader(bool multiclass, const std::vector<std::string>& names,
                             bool has_probabilities, bool has_ids) {
  std::string header = multiclass ? "CLASS\tSCORE\tMARGIN" : "LABEL\tSCORE\tDISTANCE";
  if (has_probabilities) {
    absl::StrAppend(&header, "\tP(", multiclass ? "CLASS" : PrintableInLine(LabelName(1, names)),
                    ")");
  }
  return header + (has_ids ? "\tPREDICTION_ID\n" : "\n");
}

std::string NoPredictionLine() { return "?\n"; }

v1::PredictResponse NoPrediction(const std::string& model) {
  v1::PredictResponse answer;
  answer.set_model(model);
  answer.add_scores(std::numeric_limits<float>::quiet_NaN());
  answer.add_predicted_labels(0);
  google::rpc::Status* const status = answer.add_row_errors()->mutable_status();
  status->set_code(static_cast<int>(absl::StatusCode::kInvalidArgument));
  status->set_message("the line has no example, or is malformed");
  return answer;
}

std::string PredictionLine(const v1::PredictResponse& answer,
                           const std::vector<std::string>& names) {
  return answer.row_errors_size() > 0 ? NoPredictionLine()
                                      : Line(answer, LabelName(answer.predicted_labels(0), names));
}

std::string PredictionJsonLine(const v1::PredictResponse& answer) {
  return ToJson(answer, false) + "\n";
}

namespace {

// The number of names that fit on a line.
constexpr int kShownNames = 20;

std::string ListNames(const v1::Model& model) {
  std::string text;
  for (int i = 0; i < std::min(model.label_names_size(), kShownNames); ++i)
    absl::StrAppend(&text, i == 0 ? ": " : ", ", PrintableInLine(model.label_names(i)));
  if (model.label_names_size() > kShownNames) absl::StrAppend(&text, ", ...");
  return text;
}

}  // namespace

std::string ClassName(int number, const std::vector<std::string>& names) {
  if (number < 0) return "-";
  if (number == kUnknownClass) return "(not a class of the model)";
  const auto index = static_cast<size_t>(number);
  return index < names.size() ? names[index] : absl::StrCat(number);
}

LabelRule LabelRuleOf(const v1::Model& model) {
  const v1::Classes& classes = model.learner().classes();
  LabelRule rule;
  rule.names.assign(model.label_names().begin(), model.label_names().end());
  rule.max_classes = classes.max_classes();
  rule.new_names = classes.new_classes() == v1::Classes::NEW_CLASSES_NAMED;
  return rule;
}

absl::StatusOr<int32_t> FindClass(const std::string& text, const v1::Model& model) {
  const std::vector<std::string> names(model.label_names().begin(), model.label_names().end());
  Row row;
  if (Labels(LabelRuleOf(model)).Read(text, &row).ok()) {
    const auto name = std::find(names.begin(), names.end(), row.label_name);
    if (name != names.end()) return static_cast<int32_t>(name - names.begin());
    if (row.label_name.empty()) return row.label;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the model has no class \"", PrintableInLine(text), "\"; ",
      names.empty() ? "its classes are numbers from 0"
                    : absl::StrCat("it has ", names.size(), ", as ", PrintableInLine(names.front()),
                                   "; 'perceptronctl get' lists them")));
}

int ClassesKnown(const v1::Model& model) {
  const v1::Classes& classes = model.learner().classes();
  const bool fixed = classes.new_classes() != v1::Classes::NEW_CLASSES_NUMBERED &&
                     classes.new_classes() != v1::Classes::NEW_CLASSES_NAMED;
  return fixed ? static_cast<int>(classes.max_classes()) : model.label_names_size();
}

std::string DescribeClasses(const v1::Model& model) {
  const v1::Classes& classes = model.learner().classes();
  switch (classes.new_classes()) {
    case v1::Classes::NEW_CLASSES_NUMBERED:
      return absl::StrCat("at most ", classes.max_classes(), ", new classes by number");
    case v1::Classes::NEW_CLASSES_NAMED:
      return absl::StrCat(model.label_names_size(), " of at most ", classes.max_classes(),
                          ", new classes by name", ListNames(model));
    default:
      return absl::StrCat(classes.max_classes(), ListNames(model));
  }
}

std::string ClassPredictionLine(const v1::PredictResponse& answer,
                                const std::vector<std::string>& names) {
  return answer.row_errors_size() > 0 ? NoPredictionLine()
                                      : Line(answer, ClassName(answer.predicted_labels(0), names));
}

}  // namespace perceptrond::client
