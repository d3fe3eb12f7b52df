#include "server/metrics/model_families.h"

#include <optional>
#include <utility>

#include "server/metrics/report_families.h"

namespace perceptrond {
namespace {

// A gauge with one sample a model; no value, no sample.
struct ModelFamily {
  const char* name;
  const char* help;
  std::optional<double> (*value)(const ModelMetrics&);
};

using M = const ModelMetrics&;
using Value = std::optional<double>;

Value Flag(bool flag) { return Value(flag ? 1 : 0); }

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
       return samples ? Flag(m.stored_examples->complete) : Value();
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
    {"perceptrond_model_in_memory", "1 if the model is loaded, 0 if it is on disk only.",
     [](M m) { return Flag(m.in_memory); }},
};

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
}

}  // namespace perceptrond
