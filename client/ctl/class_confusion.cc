#include "client/ctl/class_confusion.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/classes.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"

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

}  // namespace perceptrond::client
