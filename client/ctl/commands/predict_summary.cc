#include "client/ctl/commands/predict_summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"

namespace perceptrond::client {
namespace {

uint64_t Sum(const std::map<int, uint64_t>& counts) {
  uint64_t sum = 0;
  for (const auto& [predicted, count] : counts) sum += count;
  return sum;
}

std::string Shown(int number, const std::vector<std::string>& names) {
  return PrintableInLine(ClassName(number, names));
}

}  // namespace

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

std::string ClassConfusion::Text(const std::vector<std::string>& names) const {
  std::string text =
      absl::StrCat("wrong: ", errors_, " of ", total_, " (", Percent(error()),
                   "); always saying the most frequent class: ", Percent(majority_error()), "\n");
  for (const auto& [actual, counts] : counts_) {
    const auto right = counts.find(actual);
    absl::StrAppend(&text, "  ", Shown(actual, names), ": ",
                    right == counts.end() ? 0 : right->second, " right");
    for (const auto& [predicted, count] : counts) {
      if (predicted != actual)
        absl::StrAppend(&text, ", ", count, " taken for ", Shown(predicted, names));
    }
    absl::StrAppend(&text, "\n");
  }
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
  json.Integer("errors", static_cast<int64_t>(errors_))
      .Number("errorRate", error())
      .Number("majorityErrorRate", majority_error())
      .Raw("confusion", JsonArray(pairs));
}

namespace {

std::string InWords(const Confusion& confusion, const std::vector<std::string>& names) {
  const std::string negative = PrintableInLine(LabelName(-1, names));
  const std::string positive = PrintableInLine(LabelName(1, names));
  return absl::StrCat(
      "wrong: ", confusion.errors(), " of ", confusion.total(), " (", Percent(confusion.error()),
      "); always saying the more frequent label: ", Percent(confusion.majority_error()), "\n",
      absl::StrCat("  ", negative, ": ", confusion.right_negative, " right, ",
                   confusion.false_positive, " taken for ", positive, "\n"),
      absl::StrCat("  ", positive, ": ", confusion.right_positive, " right, ",
                   confusion.false_negative, " taken for ", negative, "\n"));
}

}  // namespace

void Confusion::Add(int actual, int predicted) {
  if (actual > 0) {
    ++(predicted > 0 ? right_positive : false_negative);
  } else {
    ++(predicted > 0 ? false_positive : right_negative);
  }
}

uint64_t Confusion::total() const {
  return right_positive + right_negative + false_positive + false_negative;
}

double Confusion::majority_error() const {
  const uint64_t positive = right_positive + false_negative;
  return static_cast<double>(std::min(positive, total() - positive)) / static_cast<double>(total());
}

void DataMargin::Add(int actual, std::optional<float> distance) {
  if (!distance.has_value() || std::isnan(*distance)) {
    known_ = false;
    return;
  }
  // A -1 on the boundary would make it -0.
  const float margin = (actual > 0 ? *distance : -*distance) + 0.0F;
  least_ = std::min(least_.value_or(margin), margin);
}

std::string PredictSummary::Text() const {
  if (examples == 0) return "nothing to predict: there are no examples in the input\n";
  std::string text =
      absl::StrCat(partial ? "partial: " : "", examples, " predicted at revision ", revision);
  if (refused > 0) absl::StrAppend(&text, ", ", refused, " of them refused");
  if (partial) absl::StrAppend(&text, "; not all of the input");
  absl::StrAppend(&text, "\n");
  if (confusion.total() > 0) absl::StrAppend(&text, InWords(confusion, label_names));
  if (const std::optional<float> least = margin.value())
    absl::StrAppend(&text, "margin ", Shortest(*least),
                    ": the least distance from the boundary, below 0 on the wrong side\n");
  if (classes.total() > 0) absl::StrAppend(&text, classes.Text(label_names));
  return text;
}

std::string PredictSummary::Json() const {
  JsonObject json;
  json.Integer("examples", static_cast<int64_t>(examples))
      .Integer("labelled", static_cast<int64_t>(confusion.total() + classes.total()))
      .Integer("refused", static_cast<int64_t>(refused))
      .Integer("badLines", static_cast<int64_t>(bad_lines))
      .Integer("revision", revision);
  if (partial) json.Bool("partial", true);
  if (classes.total() > 0) classes.AddTo(json, label_names);
  if (confusion.total() == 0) return json.str();
  json.Integer("errors", static_cast<int64_t>(confusion.errors()))
      .Number("errorRate", confusion.error())
      .Number("majorityErrorRate", confusion.majority_error())
      .Integer("truePositives", static_cast<int64_t>(confusion.right_positive))
      .Integer("trueNegatives", static_cast<int64_t>(confusion.right_negative))
      .Integer("falsePositives", static_cast<int64_t>(confusion.false_positive))
      .Integer("falseNegatives", static_cast<int64_t>(confusion.false_negative));
  if (const std::optional<float> least = margin.value()) json.Number("margin", *least);
  return json.str();
}

}  // namespace perceptrond::client
