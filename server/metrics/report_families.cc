#include "server/metrics/report_families.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/report/figures.h"

namespace perceptrond {
namespace {

namespace pb = ::google::protobuf;

constexpr char kModelLabel[] = "model_name";

// One series for each value of the enum: 1 for the one that holds.
void AddValues(const NamedReport& named, const Figure& figure, double number,
               MetricFamily& family) {
  const pb::EnumDescriptor& type = *figure.field().enum_type();
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string& name = TextOf(*type.value(i)).name();
    if (name.empty()) continue;
    family.Add({{kModelLabel, named.model},
                {figure.options->metric_label(), absl::StrReplaceAll(name, {{" ", "_"}})}},
               type.value(i)->number() == number ? 1 : 0);
  }
}

void AddSamples(const NamedReport& named, const Figure& figure, MetricFamily& family) {
  if (figure.field().is_map()) {
    for (const auto& [key, value] : EntriesOf(named.report, figure))
      family.Add({{kModelLabel, named.model}, {figure.options->metric_label(), key}}, value);
    return;
  }
  const std::optional<double> value = ValueOf(named.report, figure);
  if (!value.has_value()) return;
  if (figure.field().cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM) {
    AddValues(named, figure, *value, family);
  } else {
    family.Add({{kModelLabel, named.model}}, *value);
  }
}

}  // namespace

void AppendReportFamilies(const std::vector<NamedReport>& reports, MetricFamilies& families) {
  if (reports.empty()) return;
  for (const Figure& figure : ListFigures(*reports.front().report.GetDescriptor())) {
    if (figure.options->metric().empty()) continue;
    MetricFamily family{
        absl::StrCat("perceptrond_model_", figure.metric), figure.options->help(),
        absl::EndsWith(figure.metric, "_total") ? MetricKind::kCounter : MetricKind::kGauge};
    for (const NamedReport& named : reports) AddSamples(named, figure, family);
    Append(std::move(family), families);
  }
}

}  // namespace perceptrond
