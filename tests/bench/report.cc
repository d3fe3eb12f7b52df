#include "tests/bench/report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perceptrond::bench {
namespace {

// 0 of nothing.
double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

std::vector<double> Figure::Ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < values.size(); ++i) ratios.push_back(values[i] / references[i]);
  return ratios;
}

double Figure::worst() const {
  const std::vector<double> ratios = Ratios();
  if (ratios.empty()) return 0;
  const auto [smallest, largest] = std::minmax_element(ratios.begin(), ratios.end());
  return direction == Goal::kAtMost ? *largest : *smallest;
}

bool Figure::met() const { return direction == Goal::kAtLeast ? worst() >= goal : worst() <= goal; }

std::string Figure::goal_text() const {
  return absl::StrFormat("%s %.2f", direction == Goal::kAtLeast ? ">=" : "<=", goal);
}

std::string Table(const std::vector<Figure>& rows) {
  const auto number = [](double value) {
    return value == 0 ? std::string("-") : absl::StrFormat("%.4g", value);
  };
  std::string text = absl::StrFormat("%-40s %10s %10s %10s %-10s %6s %6s %6s %6s %6s %8s  %s\n",
                                     "name", "ours", "reference", "null", "unit", "cpu ns",
                                     "server", "bytes", "ratio", "worst", "goal", "met");
  for (const Figure& row : rows) {
    absl::StrAppendFormat(&text, "%-40s %10s %10s %10s %-10s %6s %6s %6s %6.2f %6.2f %8s  %s\n",
                          row.name, number(Median(row.values)), number(Median(row.references)),
                          number(Median(row.nulls)), row.unit, number(Median(row.costs)),
                          number(Median(row.server_costs)), number(row.bytes), Median(row.Ratios()),
                          row.worst(), row.goal_text(), row.met() ? "yes" : "no");
  }
  return text;
}

}  // namespace perceptrond::bench
