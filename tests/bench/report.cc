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

std::string Number(double value) { return value == 0 ? "-" : absl::StrFormat("%.4g", value); }

}  // namespace

std::string Table(const std::vector<Figure>& rows) {
  std::string text = absl::StrFormat("%-40s %10s %10s %10s %-10s %6s %6s %6s %6s %6s %8s  %s\n",
                                     "name", "ours", "reference", "null", "unit", "cpu ns",
                                     "server", "bytes", "ratio", "worst", "goal", "met");
  for (const Figure& row : rows) {
    std::vector<double> ratios;
    for (size_t i = 0; i < row.values.size(); ++i)
      ratios.push_back(row.values[i] / row.references[i]);
    const auto [smallest, largest] = std::minmax_element(ratios.begin(), ratios.end());
    const bool is_floor = row.direction == Goal::kAtLeast;
    const double worst = is_floor ? *smallest : *largest;
    const bool met = is_floor ? worst >= row.goal : worst <= row.goal;
    absl::StrAppendFormat(&text, "%-40s %10s %10s %10s %-10s %6s %6s %6s %6.2f %6.2f %s %.2f  %s\n",
                          row.name, Number(Median(row.values)), Number(Median(row.references)),
                          Number(Median(row.nulls)), row.unit, Number(Median(row.costs)),
                          Number(Median(row.server_costs)), Number(row.bytes), Median(ratios),
                          worst, is_floor ? " >=" : " <=", row.goal, met ? "yes" : "no");
  }
  return text;
}

}  // namespace perceptrond::bench
