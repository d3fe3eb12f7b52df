#include <google/protobuf/message.h>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/report/figures.h"
#include "server/metrics/family.h"
#include "server/metrics/stats.h"

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

namespace {

// A gauge with one sample a model; no value, no sample.
struct ModelFamily {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const ModelMetrics&);
};

using M = const ModelMetrics&;
using Value = std::optional<double>;

Value Indicator(bool flag) { return Value(flag ? 1 : 0); }

// What is no figure of the report.
const ModelFamily kModelFamilies[] = {
    {"perceptrond_model_stored_examples",
     "Examples that the model stores, those that caused updates and the sample together.",
     [](M m) {
       return m.stored_examples ? Value(m.stored_examples->updates + m.stored_examples->sampled)
                                : Value();
     }},
    {"perceptrond_model_sample_complete",
     "1 if the sample is everything that the model ever evaluated, else 0. Absent without a "
     "sample.",
     [](M m) {
       const bool samples =
           m.stored_examples && (m.stored_examples->sampled > 0 || m.stored_examples->complete);
       return samples ? Indicator(m.stored_examples->complete) : Value();
     }},
    {"perceptrond_model_revision", "The model's revision: names a state of the weights exactly.",
     [](M m) { return Value(m.revision); }},
    {"perceptrond_model_journal_bytes", "Bytes journaled since the last snapshot.",
     [](M m) { return m.journal_bytes ? Value(*m.journal_bytes) : Value(); }},
    {"perceptrond_model_snapshot_timestamp_seconds",
     "When the last snapshot was taken, since the Unix epoch.",
     [](M m) {
       return m.snapshot_time == absl::InfinitePast()
                  ? Value()
                  : Value(absl::ToDoubleSeconds(m.snapshot_time - absl::UnixEpoch()));
     }},
    {"perceptrond_model_memory_bytes", "Memory that the model takes.",
     [](M m) { return Value(m.memory_bytes); }},
    {"perceptrond_model_in_memory", "1 if the model is in memory, 0 if it is on disk only.",
     [](M m) { return Indicator(m.in_memory); }},
    {"perceptrond_model_written",
     "1 if this server writes the model. 0 if another one of its fleet does, whose figures these "
     "follow.",
     [](M m) { return Indicator(m.written); }},
};

// Of the learner auto's members, whose names are fixed: at most eight series a model.
void AppendMemberFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families) {
  MetricFamily mistakes{"perceptrond_model_member_mistakes_total",
                        "Updates on which a member of the learner auto had the wrong label, until "
                        "it was retired.",
                        MetricKind::kCounter};
  MetricFamily votes{"perceptrond_model_member_vote_ratio",
                     "A member's part of all votes of the learner auto; 0 once it is retired.",
                     MetricKind::kGauge};
  for (const ModelMetrics& model : models) {
    for (const ::perceptron::v1::Member& member : model.members) {
      const MetricLabels labels = {{kModelLabel, model.id}, {"member", member.learner()}};
      mistakes.Add(labels, static_cast<double>(member.mistakes()));
      votes.Add(labels, member.vote());
    }
  }
  Append(std::move(mistakes), families);
  Append(std::move(votes), families);
}

}  // namespace

void AppendModelFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families) {
  std::vector<NamedReport> reports;
  reports.reserve(models.size());
  for (const ModelMetrics& model : models) reports.push_back({model.id, model.report});
  AppendReportFamilies(reports, families);
  for (const ModelFamily& description : kModelFamilies) {
    MetricFamily family{description.name, description.help, MetricKind::kGauge};
    for (const ModelMetrics& model : models) {
      if (const Value value = description.value(model)) {
        family.Add({{"model_name", model.id}}, *value);
      }
    }
    Append(std::move(family), families);
  }
  AppendMemberFamilies(models, families);
}

}  // namespace perceptrond
