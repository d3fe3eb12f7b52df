#include "client/ctl/explanation.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/output.h"
#include "client/ctl/prediction.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

constexpr double kBarColumns = 20;

std::string Bar(double contribution, double largest) {
  if (contribution == 0 || !(largest > 0)) return "";
  const double columns = std::round(kBarColumns * std::abs(contribution) / largest);
  // What is there is seen.
  return std::string(static_cast<size_t>(std::max(1.0, columns)), contribution > 0 ? '+' : '-');
}

double Largest(const v1::Explanation& explanation) {
  double largest = std::max(std::abs(explanation.offset()), std::abs(explanation.rest()));
  for (const v1::Contribution& one : explanation.contributions())
    largest = std::max(largest, std::abs(one.contribution()));
  return largest;
}

std::string Line(double contribution, double largest, const std::string& value,
                 const std::string& weight, const std::string& feature) {
  return absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", absl::StrFormat("%+.6g", contribution),
                         Bar(contribution, largest), value, weight, feature);
}

double LargestOfMistakes(const v1::Explanation& explanation) {
  double largest = std::max(std::abs(explanation.other_mistakes()), std::abs(explanation.origin()));
  for (const v1::PastMistake& one : explanation.mistakes())
    largest = std::max(largest, std::abs(one.contribution()));
  return largest;
}

std::string DescribeOrigin(const v1::Explanation& explanation, double largest) {
  if (!explanation.has_origin()) return "";
  return Line(
      explanation.origin(), largest, "", "",
      explanation.origin_revision() == 0
          ? std::string("(the weights it started from)")
          : absl::StrCat("(the weights adopted at revision ", explanation.origin_revision(), ")"));
}

// What is left of the score.
std::string DescribeLost(const v1::Explanation& explanation, double largest, double sum) {
  if (explanation.mistakes_complete()) return "";
  const bool adopted = explanation.origin_revision() > 0;
  return Line(explanation.score() - sum, largest, "", "",
              absl::StrCat("(", adopted ? "weights adopted, and " : "",
                           "what is no longer retained: see create --retain-updates)"));
}

std::string DescribeMistakes(const v1::Explanation& explanation,
                             const std::vector<std::string>& label_names) {
  if (!explanation.mistakes_absent().empty())
    return absl::StrCat("  (not by past mistakes: ", explanation.mistakes_absent(), ")\n");
  if (explanation.mistakes().empty() && explanation.mistakes_complete() &&
      !explanation.has_origin())
    return "";
  const double largest = LargestOfMistakes(explanation);
  std::string text = absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", "contribution", "", "label",
                                     "similarity", "past mistake");
  double sum = explanation.other_mistakes() + explanation.origin();
  for (const v1::PastMistake& one : explanation.mistakes()) {
    sum += one.contribution();
    text += Line(one.contribution(), largest, PrintableInLine(LabelName(one.label(), label_names)),
                 absl::StrFormat("%.6g", one.similarity()),
                 absl::StrCat("that made revision ", one.revision()));
  }
  if (explanation.other_mistakes_count() > 0) {
    text += Line(explanation.other_mistakes(), largest, "", "",
                 absl::StrCat("(", explanation.other_mistakes_count(), " more: see --top)"));
  }
  text += DescribeOrigin(explanation, largest);
  return text + DescribeLost(explanation, largest, sum);
}

std::string DescribeFeatures(const v1::Explanation& explanation) {
  if (!explanation.contributions_absent().empty())
    return absl::StrCat("  (not by features: ", explanation.contributions_absent(), ")\n");
  const double largest = Largest(explanation);
  std::string text = absl::StrFormat("  %12s  %-20s  %12s  %12s  %s\n", "contribution", "",
                                     "= value", "x weight", "feature");
  for (const v1::Contribution& one : explanation.contributions()) {
    const std::string name = one.name().empty() ? absl::StrCat(one.index()) : one.name();
    text += Line(one.contribution(), largest, Shortest(one.value()),
                 absl::StrFormat("%.6g", one.weight()), PrintableInLine(name));
  }
  if (explanation.rest_features() > 0) {
    text += Line(explanation.rest(), largest, "", "",
                 absl::StrCat("(", explanation.rest_features(), " more: see --top)"));
  }
  return text + Line(explanation.offset(), largest, "", "", "(offset)");
}

}  // namespace

std::string DescribeExplanation(const std::string& where, const v1::Explanation& explanation,
                                int64_t revision, const std::vector<std::string>& label_names) {
  return absl::StrCat(absl::StrFormat("%s: %s, score %g at revision %d\n", PrintableInLine(where),
                                      PrintableInLine(LabelName(explanation.label(), label_names)),
                                      explanation.score(), revision),
                      DescribeFeatures(explanation), DescribeMistakes(explanation, label_names));
}

}  // namespace perceptrond::client
