#include "tests/bench/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perceptrond::bench {
namespace {

std::vector<double> Ratios(const Figure& row) {
  std::vector<double> ratios;
  for (size_t i = 0; i < row.values.size(); ++i)
    ratios.push_back(row.values[i] / row.references[i]);
  return ratios;
}

}  // namespace

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double Figure::value() const { return Median(values); }
double Figure::reference() const { return Median(references); }
double Figure::ratio() const { return Median(Ratios(*this)); }

double Figure::spread() const {
  const std::vector<double> ratios = Ratios(*this);
  if (ratios.empty()) return 0;
  const auto [smallest, largest] = std::minmax_element(ratios.begin(), ratios.end());
  return (*largest - *smallest) / ratio();
}

bool Figure::met() const { return direction == Goal::kAtLeast ? ratio() >= goal : ratio() <= goal; }

std::string Figure::goal_text() const {
  return absl::StrFormat("%s %.2f", direction == Goal::kAtLeast ? ">=" : "<=", goal);
}

std::string Table(const std::vector<Figure>& rows) {
  std::string text = absl::StrFormat("%-42s %12s %12s %-10s %6s %7s %8s  %s\n", "name", "value",
                                     "reference", "unit", "ratio", "spread", "goal", "met");
  for (const Figure& row : rows) {
    absl::StrAppendFormat(&text, "%-42s %12.5g %12.5g %-10s %6.2f %6.0f%% %8s  %s\n", row.name,
                          row.value(), row.reference(), row.unit, row.ratio(), 100 * row.spread(),
                          row.goal_text(), row.met() ? "yes" : "no");
  }
  return text;
}

std::string Json(const std::vector<Figure>& rows) {
  std::string text;
  for (const Figure& row : rows) {
    absl::StrAppendFormat(&text,
                          "{\"name\": \"%s\", \"value\": %.9g, \"reference\": %.9g, "
                          "\"ratio\": %.6g, \"spread\": %.6g, \"goal\": \"%s\", \"met\": %s, "
                          "\"unit\": \"%s\"}\n",
                          row.name, row.value(), row.reference(), row.ratio(), row.spread(),
                          row.goal_text(), row.met() ? "true" : "false", row.unit);
  }
  return text;
}

}  // namespace perceptrond::bench
