#include "client/ctl/evaluation.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/prediction.h"
#include "client/ctl/terminal.h"
#include "core/report/format.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

std::optional<double> RatioOf(uint64_t part, uint64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string PercentOrDash(const std::optional<double>& ratio) {
  return ratio.has_value() ? Percent(*ratio) : "-";
}

std::string RetrievalText(const Retrieval& retrieval) {
  return absl::StrCat("precision ", PercentOrDash(retrieval.precision), ", recall ",
                      PercentOrDash(retrieval.recall), ", F1 ", PercentOrDash(retrieval.f1));
}

void AddRetrieval(const Retrieval& retrieval, JsonObject& json) {
  if (retrieval.precision.has_value()) json.Number("precision", *retrieval.precision);
  if (retrieval.recall.has_value()) json.Number("recall", *retrieval.recall);
  if (retrieval.f1.has_value()) json.Number("f1", *retrieval.f1);
}

uint64_t Sum(const std::map<int, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [predicted, count] : counts) sum += count;
  return sum;
}

std::string Shown(int number, const std::vector<std::string>& names) {
  return PrintableInLine(number == kTiedClasses ? "(tied)" : ClassName(number, names));
}

}  // namespace

Retrieval MakeRetrieval(uint64_t hits, uint64_t labelled, uint64_t predicted) {
  return {RatioOf(hits, predicted), RatioOf(hits, labelled),
          RatioOf(2 * hits, labelled + predicted)};
}

void ClassConfusion::Add(int actual, int predicted) {
  ++counts_[actual][predicted];
  ++total_;
  if (actual != predicted) ++errors_;
}

double ClassConfusion::majority_error() const {
  uint64_t most = 0;
  for (const auto& [actual, counts] : counts_) most = std::max(most, Sum(counts));
  return 1 - static_cast<double>(most) / static_cast<double>(total_);
}

std::map<int, Retrieval> ClassConfusion::ByClass() const {
  std::map<int, uint64_t> labelled;
  std::map<int, uint64_t> predicted;
  std::map<int, uint64_t> hits;
  for (const auto& [actual, counts] : counts_) {
    labelled[actual] += Sum(counts);
    for (const auto& [guess, count] : counts) {
      if (guess >= 0) predicted[guess] += count;
      if (guess == actual) hits[actual] += count;
    }
  }
  std::map<int, Retrieval> by_class;
  for (const auto& counts : {labelled, predicted}) {
    for (const auto& [number, count] : counts)
      by_class[number] = MakeRetrieval(hits[number], labelled[number], predicted[number]);
  }
  return by_class;
}

double ClassConfusion::Mean(const std::map<int, Retrieval>& by_class,
                            std::optional<double> Retrieval::*figure) {
  double sum = 0;
  for (const auto& [number, retrieval] : by_class) sum += (retrieval.*figure).value_or(0);
  return sum / static_cast<double>(by_class.size());
}

std::string ClassConfusion::Text(const std::vector<std::string>& names) const {
  std::string text = absl::StrCat(
      "errors: ", errors_, " of ", total_, " (", Percent(error()),
      "); always predicting the most frequent class: ", Percent(majority_error()), "\n");
  const std::map<int, Retrieval> by_class = ByClass();
  for (const auto& [number, retrieval] : by_class) {
    absl::StrAppend(&text, "  ", Shown(number, names), ": ");
    const auto found = counts_.find(number);
    const std::map<int, uint64_t> counts =
        found == counts_.end() ? std::map<int, uint64_t>() : found->second;
    const auto right = counts.find(number);
    absl::StrAppend(&text, right == counts.end() ? 0 : right->second, " correct");
    for (const auto& [predicted, count] : counts) {
      if (predicted != number)
        absl::StrAppend(&text, ", ", count, " predicted as ", Shown(predicted, names));
    }
    absl::StrAppend(&text, "; ", RetrievalText(retrieval), "\n");
  }
  absl::StrAppend(&text, "mean of ", Counted(by_class.size(), "classes"), ": precision ",
                  Percent(Mean(by_class, &Retrieval::precision)), ", recall ",
                  Percent(Mean(by_class, &Retrieval::recall)), ", F1 ",
                  Percent(Mean(by_class, &Retrieval::f1)), "\n");
  return text;
}

void ClassConfusion::AddTo(JsonObject& json, const std::vector<std::string>& names) const {
  std::vector<std::string> pairs;
  for (const auto& [actual, counts] : counts_) {
    for (const auto& [predicted, count] : counts) {
      JsonObject pair;
      pair.Raw("actual", absl::StrCat(actual)).Raw("predicted", absl::StrCat(predicted));
      if (!names.empty())
        pair.Text("actualName", ClassName(actual, names))
            .Text("predictedName", ClassName(predicted, names));
      pairs.push_back(pair.Integer("count", static_cast<int64_t>(count)).str());
    }
  }
  std::vector<std::string> classes;
  const std::map<int, Retrieval> by_class = ByClass();
  for (const auto& [number, retrieval] : by_class) {
    JsonObject one;
    one.Raw("class", absl::StrCat(number));
    if (!names.empty()) one.Text("name", ClassName(number, names));
    AddRetrieval(retrieval, one);
    classes.push_back(one.str());
  }
  json.Integer("errors", static_cast<int64_t>(errors_))
      .Number("errorRate", error())
      .Number("majorityErrorRate", majority_error())
      .Number("macroPrecision", Mean(by_class, &Retrieval::precision))
      .Number("macroRecall", Mean(by_class, &Retrieval::recall))
      .Number("macroF1", Mean(by_class, &Retrieval::f1))
      .Raw("classes", JsonArray(classes))
      .Raw("confusion", JsonArray(pairs));
}

void Confusion::Add(int actual, int predicted) {
  const bool positive = actual > 0;
  if (actual == kUnknownClass) {
    ++(predicted > 0 ? unknown_positive : predicted < 0 ? unknown_negative : unknown_undecided);
  } else if (predicted == 0) {
    ++(positive ? undecided_positive : undecided_negative);
  } else if (positive) {
    ++(predicted > 0 ? true_positive : false_negative);
  } else {
    ++(predicted > 0 ? false_positive : true_negative);
  }
}

void Confusion::Merge(const Confusion& other) {
  true_positive += other.true_positive;
  true_negative += other.true_negative;
  false_positive += other.false_positive;
  false_negative += other.false_negative;
  undecided_positive += other.undecided_positive;
  undecided_negative += other.undecided_negative;
  zero_scores += other.zero_scores;
  unknown_positive += other.unknown_positive;
  unknown_negative += other.unknown_negative;
  unknown_undecided += other.unknown_undecided;
}

uint64_t Confusion::errors() const {
  const uint64_t undecided = undecided_positive + undecided_negative;
  return false_positive + false_negative + unknown_labels() +
         (undecided_are_errors ? undecided : 0);
}

double Confusion::majority_error() const {
  return static_cast<double>(std::min(positives(), negatives()) + unknown_labels()) /
         static_cast<double>(total());
}

Retrieval Confusion::retrieval() const {
  return MakeRetrieval(true_positive, positives(),
                       true_positive + false_positive + unknown_positive);
}

void DataMargin::Add(int actual, std::optional<float> distance) {
  if (!distance.has_value() || std::isnan(*distance)) {
    known_ = false;
    return;
  }
  // Adding 0 turns -0 into 0.
  const float margin = (actual > 0 ? *distance : -*distance) + 0.0F;
  smallest_ = std::min(smallest_.value_or(margin), margin);
}

void DataMargin::Merge(const DataMargin& other) {
  known_ &= other.known_;
  if (other.smallest_.has_value())
    smallest_ = std::min(smallest_.value_or(*other.smallest_), *other.smallest_);
}

LabelledPrediction MakeLabelled(const v1::PredictResponse& response, int row, int actual) {
  LabelledPrediction labelled;
  labelled.actual = actual;
  labelled.predicted = response.predicted_labels(row);
  labelled.score = response.scores(row);
  if (row < response.distances_size()) labelled.distance = response.distances(row);
  if (row < response.probabilities_size()) labelled.probability = response.probabilities(row);
  const int classes = response.class_probabilities_size() / response.scores_size();
  labelled.class_probabilities = {response.class_probabilities().data() + row * classes,
                                  static_cast<size_t>(classes)};
  return labelled;
}

void TwoLabelEvaluation::Add(const LabelledPrediction& row, v1::TieRule tie_rule) {
  confusion.undecided_are_errors = tie_rule != v1::TIE_RULE_CORRECT;
  // With TIE_RULE_POSITIVE it is a prediction of +1 like any other.
  const bool undecided = row.score == 0 && tie_rule != v1::TIE_RULE_POSITIVE;
  confusion.Add(row.actual, undecided ? 0 : row.predicted);
  if (row.score == 0) ++confusion.zero_scores;
  if (row.actual == kUnknownClass) return;
  margin.Add(row.actual, row.distance);
  roc.Add(row.actual > 0, row.score);
  if (row.probability.has_value()) calibration.Add(*row.probability, row.actual > 0);
}

void TwoLabelEvaluation::Merge(const TwoLabelEvaluation& other) {
  confusion.Merge(other.confusion);
  margin.Merge(other.margin);
  roc.Merge(other.roc);
  calibration.Merge(other.calibration);
}

namespace {

std::string ZeroScoresText(const Confusion& confusion) {
  const bool decided = confusion.undecided() == 0;
  return absl::StrCat("score 0: ", Counted(confusion.zero_scores, "times"), ", ",
                      decided                          ? "predicted as +1"
                      : confusion.undecided_are_errors ? "each an error"
                      : confusion.unknown_undecided == 0
                          ? "each correct"
                          : "each correct if the model has the label",
                      ", as in learning (create --tie)\n");
}

std::string MatrixText(const Confusion& confusion, const std::vector<std::string>& names) {
  const std::string negative = PrintableInLine(LabelName(-1, names));
  const std::string positive = PrintableInLine(LabelName(1, names));
  const bool undecided = confusion.undecided() > 0;
  std::vector<std::vector<std::string>> rows = {
      {"label", "predicted " + negative, "predicted " + positive, "score 0"},
      {negative, Grouped(confusion.true_negative), Grouped(confusion.false_positive),
       Grouped(confusion.undecided_negative)},
      {positive, Grouped(confusion.false_negative), Grouped(confusion.true_positive),
       Grouped(confusion.undecided_positive)}};
  if (confusion.unknown_labels() > 0)
    rows.push_back({"others", Grouped(confusion.unknown_negative),
                    Grouped(confusion.unknown_positive), Grouped(confusion.unknown_undecided)});
  std::string text;
  for (std::vector<std::string>& row : rows) {
    if (!undecided) row.pop_back();
    absl::StrAppend(&text, " ");
    for (size_t i = 0; i < row.size(); ++i) {
      size_t width = 0;
      for (const std::vector<std::string>& each : rows) width = std::max(width, ColumnsOf(each[i]));
      const std::string blanks(width - ColumnsOf(row[i]), ' ');
      absl::StrAppend(&text, i == 0 ? " " : "  ", i == 0 ? row[i] + blanks : blanks + row[i]);
    }
    absl::StrAppend(&text, "\n");
  }
  return text;
}

}  // namespace

std::string TwoLabelEvaluation::Text(const std::vector<std::string>& names) const {
  std::string text = absl::StrCat(
      "errors: ", confusion.errors(), " of ", confusion.total(), " (", Percent(confusion.error()),
      "); always predicting the more frequent label: ", Percent(confusion.majority_error()), "\n");
  if (confusion.unknown_labels() > 0)
    absl::StrAppend(&text,
                    "labels that the model does not have: ", Grouped(confusion.unknown_labels()),
                    ", each an error\n");
  absl::StrAppend(&text, MatrixText(confusion, names));
  if (confusion.zero_scores > 0) absl::StrAppend(&text, ZeroScoresText(confusion));
  absl::StrAppend(&text, "of ", PrintableInLine(LabelName(1, names)), ": ",
                  RetrievalText(confusion.retrieval()));
  if (const std::optional<RocArea::Area> area = roc.value(); area.has_value()) {
    absl::StrAppendFormat(&text, "; AUC %.4f", area->value);
    if (area->most_error > 0) absl::StrAppendFormat(&text, " +- %.2g", area->most_error);
  }
  absl::StrAppend(&text, "\n");
  if (calibration.total() > 0) {
    absl::StrAppendFormat(
        &text, "calibration: Brier score %.4f, log loss %.4f, expected calibration error %.4f\n",
        calibration.brier_score(), calibration.log_loss(), calibration.expected_error());
    absl::StrAppend(
        &text,
        calibration.Table("probability", "fraction of " + PrintableInLine(LabelName(1, names))));
  }
  if (const std::optional<float> smallest = margin.value()) {
    absl::StrAppend(&text, "margin ", Shortest(*smallest),
                    ": the smallest distance from the boundary, negative if misclassified\n");
  }
  return text;
}

void TwoLabelEvaluation::AddTo(JsonObject& json) const {
  json.Integer("errors", static_cast<int64_t>(confusion.errors()))
      .Number("errorRate", confusion.error())
      .Number("majorityErrorRate", confusion.majority_error())
      .Integer("truePositives", static_cast<int64_t>(confusion.true_positive))
      .Integer("trueNegatives", static_cast<int64_t>(confusion.true_negative))
      .Integer("falsePositives", static_cast<int64_t>(confusion.false_positive))
      .Integer("falseNegatives", static_cast<int64_t>(confusion.false_negative))
      .Integer("zeroScores", static_cast<int64_t>(confusion.zero_scores));
  AddRetrieval(confusion.retrieval(), json);
  if (const std::optional<RocArea::Area> area = roc.value(); area.has_value()) {
    json.Number("auc", area->value);
    if (area->most_error > 0) json.Number("aucMostError", area->most_error);
  }
  if (calibration.total() > 0) {
    json.Number("brierScore", calibration.brier_score())
        .Number("logLoss", calibration.log_loss())
        .Number("expectedCalibrationError", calibration.expected_error())
        .Raw("calibration", calibration.Json());
  }
  if (const std::optional<float> smallest = margin.value()) json.Number("margin", *smallest);
}

void PredictSummary::AddTwoLabels(const LabelledPrediction& row) {
  if (row.actual == kUnknownClass) ++unknown_labels;
  if (row.actual != 0) {
    labelled.Add(row, tie_rule);
    return;
  }
  LabelledPrediction negative = row;
  negative.actual = -1;
  zero_labelled.Add(negative, tie_rule);
}

void PredictSummary::AddClass(const LabelledPrediction& row) {
  if (row.actual == kUnknownClass) ++unknown_labels;
  // Without distances all scores are 0 while the weights are; votes may tie unseen.
  const bool equal =
      row.distance.has_value() ? *row.distance == 0 : classes_known > 1 && row.score == 0;
  const bool tied = equal && tie_rule != v1::TIE_RULE_POSITIVE && tie_rule != v1::TIE_RULE_CORRECT;
  const int predicted = tied && row.predicted >= 0 ? kTiedClasses : row.predicted;
  classes.Add(row.actual, predicted);
  if (row.probability.has_value()) class_calibration.Add(*row.probability, predicted == row.actual);
  if (!row.class_probabilities.empty()) class_scores.Add(row.class_probabilities, row.actual);
}

std::string PredictSummary::DecideZeroLabels() {
  const uint64_t zeros = zero_labelled.confusion.total();
  if (zeros == 0) return "";
  if (labelled.confusion.negatives() > 0 || labelled.confusion.positives() == 0) {
    return absl::StrCat("label 0 is counted as no label, ", Counted(zeros, "times"), ", ",
                        labelled.confusion.negatives() > 0 ? "since -1 is a label too"
                                                           : "since there is no other label",
                        "; --zero-is-negative counts it as -1");
  }
  labelled.Merge(zero_labelled);
  return absl::StrCat("label 0 is counted as -1, ", Counted(zeros, "times"));
}

void PredictSummary::DropLabelsIfAllAreUnknown() {
  if (unknown_labels < labelled.confusion.total() + classes.total()) return;
  unknown_labels = 0;
  labelled = TwoLabelEvaluation();
  classes = {};
  class_calibration = {};
  class_scores = {};
}

std::string PredictSummary::Text() const {
  if (examples == 0) return "the input contains no examples\n";
  std::string text =
      absl::StrCat(partial ? "partial: " : "", examples, " predicted at revision ", revision);
  if (!later_model.empty()) absl::StrAppend(&text, " of ", PrintableInLine(later_model));
  if (row_errors > 0) absl::StrAppend(&text, ", ", row_errors, " with validation errors");
  if (partial) absl::StrAppend(&text, "; the rest of the input was not read");
  absl::StrAppend(&text, "\n");
  if (labelled.confusion.total() > 0) absl::StrAppend(&text, labelled.Text(label_names));
  if (classes.total() > 0) absl::StrAppend(&text, classes.Text(label_names));
  if (class_scores.total() > 0) {
    absl::StrAppendFormat(&text, "probabilities of all classes: Brier score %.4f, log loss %.4f\n",
                          class_scores.brier_score(), class_scores.log_loss());
  }
  if (class_calibration.total() > 0) {
    absl::StrAppendFormat(&text,
                          "calibration of the predicted class: expected calibration error %.4f\n",
                          class_calibration.expected_error());
    absl::StrAppend(&text, class_calibration.Table("probability", "fraction correct"));
  }
  return text;
}

std::string PredictSummary::Json() const {
  JsonObject json;
  json.Integer("examples", static_cast<int64_t>(examples))
      .Integer("labelled", static_cast<int64_t>(labelled.confusion.total() + classes.total()))
      .Integer("rowErrors", static_cast<int64_t>(row_errors))
      .Integer("badLines", static_cast<int64_t>(bad_lines))
      .Integer("unknownLabels", static_cast<int64_t>(unknown_labels))
      .Integer("revision", revision);
  if (partial) json.Bool("partial", true);
  if (classes.total() > 0) classes.AddTo(json, label_names);
  if (class_scores.total() > 0)
    json.Number("brierScore", class_scores.brier_score())
        .Number("logLoss", class_scores.log_loss());
  if (class_calibration.total() > 0) {
    json.Number("expectedCalibrationError", class_calibration.expected_error())
        .Raw("calibration", class_calibration.Json());
  }
  if (labelled.confusion.total() > 0) labelled.AddTo(json);
  return json.str();
}

}  // namespace perceptrond::client
