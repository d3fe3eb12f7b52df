#include "client/ctl/draw_names.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

// As many as fit on a line or two.
constexpr size_t kShown = 8;

std::set<std::string> NamesOf(const std::vector<Row>& rows) {
  std::set<std::string> names;
  for (const Row& row : rows) {
    if (row.kind != RowKind::kNamed) continue;
    for (size_t i = 0; i < row.feature_count(); ++i) names.insert(std::string(row.name(i)));
  }
  return names;
}

std::string List(const std::set<std::string>& names) {
  std::string text;
  size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == kShown) return absl::StrCat(text, ", ...");
    absl::StrAppend(&text, shown++ == 0 ? "" : ", ", PrintableInLine(name));
  }
  return text;
}

}  // namespace

// perceptron.v1.FeatureMap says how products are called.
std::vector<std::string> FactorsOf(std::string_view weight, const v1::FeatureMap& map) {
  if (!map.has_polynomial() && !map.has_products()) return {std::string(weight)};
  std::vector<std::string> factors(1);
  for (size_t i = 0; i < weight.size(); ++i) {
    if (weight[i] == '*') {
      factors.emplace_back();
      continue;
    }
    if (weight[i] == '\\' && i + 1 < weight.size()) ++i;
    factors.back() += weight[i];
  }
  return factors;
}

absl::Status CheckName(const std::string& name, const std::vector<Row>& rows,
                       const v1::FeatureMap& map, const v1::Weights* weights) {
  std::set<std::string> known = NamesOf(rows);
  bool derived = false;
  if (weights != nullptr) {
    for (const std::string& weight : weights->names()) {
      std::vector<std::string> factors = FactorsOf(weight, map);
      derived = derived || (factors.size() > 1 && weight == name);
      for (std::string& factor : factors) known.insert(std::move(factor));
    }
  }
  if (known.contains(name)) return absl::OkStatus();
  const std::string quoted = absl::StrCat("\"", PrintableInLine(name), "\"");
  const std::string others =
      known.empty() ? "" : absl::StrCat("; there are ", List(known), " (see --x and --y)");
  if (derived) {
    return absl::InvalidArgumentError(
        absl::StrCat(quoted,
                     " is what the model's feature map makes of an example's features, and cannot "
                     "be chosen without them: take features that examples have",
                     others));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no feature ", quoted, ": ",
                   weights != nullptr ? "no example has it, nor has the model a weight for it"
                                      : "no example that is drawn has it",
                   others));
}

}  // namespace perceptrond::client
