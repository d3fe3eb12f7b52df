#include "client/ctl/classes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

// As many as fit on a line.
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
  if (number == kNoClassOfTheModel) return "(none of the model's)";
  const auto place = static_cast<size_t>(number);
  return place < names.size() ? names[place] : absl::StrCat(number);
}

std::string DescribeClasses(const v1::Model& model) {
  const v1::Classes& classes = model.learner().classes();
  switch (classes.new_classes()) {
    case v1::Classes::NEW_CLASSES_NUMBERED:
      return absl::StrCat("at most ", classes.max_classes(), ", new ones by number");
    case v1::Classes::NEW_CLASSES_NAMED:
      return absl::StrCat(model.label_names_size(), " of at most ", classes.max_classes(),
                          ", new ones by name", ListNames(model));
    default:
      return absl::StrCat(classes.max_classes(), ListNames(model));
  }
}

std::string ClassPredictionLine(const v1::PredictResponse& answer,
                                const std::vector<std::string>& names) {
  if (answer.errors_size() > 0) return "?\n";
  std::string line = absl::StrCat(
      PrintableInLine(ClassName(answer.labels(0), names)), "\t", Shortest(answer.scores(0)), "\t",
      answer.distances_size() > 0 ? Shortest(answer.distances(0)) : std::string("-"));
  if (answer.probabilities_size() > 0)
    absl::StrAppend(&line, "\t", Shortest(answer.probabilities(0)));
  return line + "\n";
}

}  // namespace perceptrond::client
