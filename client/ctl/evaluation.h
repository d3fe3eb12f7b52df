// How well predictions agree with labels: confusion matrices and the figures that follow from them,
// the margin of the data, AUC and calibration; and the summary of `perceptronctl predict`.
//
// A score of 0 counts as learning counts it, by the model's tie rule.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "client/ctl/calibration.h"
#include "client/ctl/output.h"
#include "client/ctl/roc_area.h"
#include "perceptron/v1/learner.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::client {

// Precision, recall and F1 of one label or class. Absent where their denominator is 0.
struct Retrieval {
  std::optional<double> precision;
  std::optional<double> recall;
  std::optional<double> f1;
};
// `hits` examples of the label were predicted to have it, of `labelled` that have it and
// `predicted` that were predicted to.
Retrieval MakeRetrieval(uint64_t hits, uint64_t labelled, uint64_t predicted);

// The prediction of an example whose best classes have equal scores, where that is a mistake
// whichever of them is right.
inline constexpr int kTiedClasses = -2;

// Confusion matrix of a multiclass model, over rows with a label. A plain value.
class ClassConfusion {
 public:
  void Add(int actual, int predicted);
  uint64_t total() const { return total_; }
  uint64_t errors() const { return errors_; }
  double error() const { return static_cast<double>(errors_) / static_cast<double>(total_); }
  // Error rate of always predicting the most frequent class.
  double majority_error() const;
  // The classes that occur as a label or a prediction, by number.
  std::map<int, Retrieval> ByClass() const;
  // The mean of a figure over these classes, one without it counting 0.
  static double Mean(const std::map<int, Retrieval>& by_class,
                     std::optional<double> Retrieval::*figure);

  // The errors, and the predictions for each class. Precondition: total() > 0.
  std::string Text(const std::vector<std::string>& names) const;
  // Adds errors, errorRate, majorityErrorRate, macroPrecision, macroRecall, macroF1; classes, a list
  // of {"class": number, "precision": ..., "recall": ..., "f1": ...}; and confusion, a list with an
  // element for each pair of classes that occurred: {"actual": number, "predicted": number, "count":
  // "n"}; both with names if known.
  void AddTo(JsonObject& json, const std::vector<std::string>& names) const;

 private:
  uint64_t total_ = 0;
  uint64_t errors_ = 0;
  // Counts by actual, then predicted class.
  std::map<int, std::map<int, uint64_t>> counts_;
};

// Confusion matrix of a model of two labels, over rows with a label. A plain value.
struct Confusion {
  uint64_t true_positive = 0;
  uint64_t true_negative = 0;
  uint64_t false_positive = 0;
  uint64_t false_negative = 0;
  // Rows with a score of 0 that predict neither label, by their label.
  uint64_t undecided_positive = 0;
  uint64_t undecided_negative = 0;
  // The undecided rows are errors. (TIE_RULE_CORRECT counts them as correct.)
  bool undecided_are_errors = true;
  // All rows with a score of 0.
  uint64_t zero_scores = 0;
  // Rows whose label is none of the model's, by their prediction: errors.
  uint64_t unknown_positive = 0;
  uint64_t unknown_negative = 0;
  uint64_t unknown_undecided = 0;

  // `actual` may be kUnknownClass; `predicted` is 0 for a row that is undecided.
  void Add(int actual, int predicted);
  void Merge(const Confusion& other);
  uint64_t positives() const { return true_positive + false_negative + undecided_positive; }
  uint64_t negatives() const { return true_negative + false_positive + undecided_negative; }
  uint64_t total() const { return positives() + negatives() + unknown_labels(); }
  uint64_t undecided() const { return undecided_positive + undecided_negative + unknown_undecided; }
  uint64_t unknown_labels() const {
    return unknown_positive + unknown_negative + unknown_undecided;
  }
  uint64_t errors() const;
  double error() const { return static_cast<double>(errors()) / static_cast<double>(total()); }
  // Error rate of always predicting the more frequent label.
  double majority_error() const;
  // Of label +1.
  Retrieval retrieval() const;
};

// The margin of a data set: the smallest y s / ||w|| of its examples, negative if one is
// misclassified. A plain value.
class DataMargin {
 public:
  // Adds an example; `distance` is the signed distance in its answer. Absent: the margin is
  // unknown.
  void Add(int actual, std::optional<float> distance);
  void Merge(const DataMargin& other);
  // Absent if unknown or without examples.
  std::optional<float> value() const { return known_ ? smallest_ : std::nullopt; }

 private:
  std::optional<float> smallest_;
  bool known_ = true;
};

// A prediction of one row with a label. Absent figures are those that the answer does not have.
struct LabelledPrediction {
  int actual = 0;
  int predicted = 0;
  float score = 0;
  std::optional<float> distance;
  std::optional<float> probability;
  // Several classes: of each; empty: not asked for.
  std::span<const float> class_probabilities = {};
};

// That of a row of an answer.
LabelledPrediction MakeLabelled(const perceptron::v1::PredictResponse& response, int row,
                                int actual);

// All that is evaluated of a model of two labels. A plain value.
struct TwoLabelEvaluation {
  Confusion confusion;
  DataMargin margin;
  RocArea roc;
  Calibration calibration;

  void Add(const LabelledPrediction& row, perceptron::v1::TieRule tie_rule);
  void Merge(const TwoLabelEvaluation& other);
  // Precondition of these: confusion.total() > 0.
  std::string Text(const std::vector<std::string>& names) const;
  void AddTo(JsonObject& json) const;
};

struct PredictSummary {
  std::vector<std::string> label_names;
  perceptron::v1::TieRule tie_rule = perceptron::v1::TIE_RULE_MISTAKE;
  // Classes that are known to exist; they can tie from two on.
  int classes_known = 0;
  uint64_t examples = 0;
  // Examples with a validation error.
  uint64_t row_errors = 0;
  uint64_t bad_lines = 0;
  // Rows whose label is none of the model's.
  uint64_t unknown_labels = 0;
  int64_t revision = 0;
  // The model of that revision, if it is not the one that the run began with.
  std::string later_model;
  TwoLabelEvaluation labelled;
  // Rows with label 0, which means -1 if the others are all +1: see DecideZeroLabels().
  TwoLabelEvaluation zero_labelled;
  // For multiclass models, instead of these.
  ClassConfusion classes;
  // Of the predicted class.
  Calibration class_calibration;
  // Of all classes, for rows with their probabilities.
  ClassScores class_scores;
  // The run ended before the end of the input.
  bool partial = false;

  // Adds a row with a label, which may be kUnknownClass, to what it belongs to.
  void AddTwoLabels(const LabelledPrediction& row);
  void AddClass(const LabelledPrediction& row);
  // Call once after the last row. Counts label 0 as -1 if the other labels are +1 and there are
  // some, else as no label. Returns what it did, for a notice; empty: there was no label 0.
  std::string DecideZeroLabels();

  // For texts, call after that: what is before a tab is text if no line has a label of the model there.
  void DropLabelsIfAllAreUnknown();

  std::string Text() const;
  std::string Json() const;
};

}  // namespace perceptrond::client
