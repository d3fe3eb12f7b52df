#include "server/metrics/model_families.h"

#include <cmath>
#include <iterator>
#include <optional>

namespace perceptrond {
namespace {

// A family of one sample a model; no value, no sample.
struct ModelFamily {
  const char* name;
  const char* help;
  MetricKind kind;
  std::optional<double> (*value)(const ModelMetrics&);
};

using M = const ModelMetrics&;
using Value = std::optional<double>;
constexpr MetricKind kCounter = MetricKind::kCounter;
constexpr MetricKind kGauge = MetricKind::kGauge;

Value Flag(std::optional<bool> flag) { return flag ? Value(*flag ? 1 : 0) : Value(); }

const ModelFamily kModelFamilies[] = {
    {"perceptrond_model_examples_total",
     "Examples judged for learning; rejected and replayed ones are not among them.", kCounter,
     [](M m) { return Value(m.report.counters.examples); }},
    {"perceptrond_model_mistakes_total",
     "Examples found on the wrong side when they arrived, before the model could learn them.",
     kCounter, [](M m) { return Value(m.report.counters.mistakes); }},
    {"perceptrond_model_updates_total", "Changes to the weights.", kCounter,
     [](M m) { return Value(m.report.counters.updates); }},
    {"perceptrond_model_duplicates_total",
     "Examples whose number was accounted for already: acknowledged, not learned again.", kCounter,
     [](M m) { return Value(m.report.counters.duplicates); }},
    {"perceptrond_model_window_examples", "Examples in the window of the windowed error and risk.",
     kGauge, [](M m) { return m.in_memory ? Value(m.report.window_examples) : Value(); }},
    {"perceptrond_model_window_risk", "Perceptron risk per example, over the window.", kGauge,
     [](M m) { return m.report.window_risk; }},
    {"perceptrond_model_streak_examples",
     "Correct answers in a row since the last update, or since one that could not be made.", kGauge,
     [](M m) { return Value(m.report.counters.streak); }},
    {"perceptrond_model_weight_norm", "Euclidean norm of the weights.", kGauge,
     [](M m) { return m.report.weight_norm; }},
    {"perceptrond_model_radius", "Largest norm of an example judged: R of the convergence theorem.",
     kGauge, [](M m) { return Value(std::sqrt(m.report.counters.squared_radius)); }},
    {"perceptrond_model_margin_ceiling",
     "No weights separate the examples seen with a larger margin than this.", kGauge,
     [](M m) { return m.report.margin_ceiling; }},
    {"perceptrond_model_margin_floor",
     "Some weights have at least this margin on the data of the latest pass without a change, or, "
     "by "
     "an analysis, on all data seen.",
     kGauge, [](M m) { return m.report.margin_floor; }},
    {"perceptrond_model_bound_in_use_ratio",
     "How much of the convergence theorem's room for updates is in use, at most 1.", kGauge,
     [](M m) { return m.report.bound_in_use; }},
    {"perceptrond_model_update_bound",
     "No run over the data behind the margin floor makes more updates than this. Absent where the "
     "theorem does not bind the model's own run.",
     kGauge, [](M m) { return m.report.update_bound; }},
    {"perceptrond_model_updates_left",
     "Updates that may still come before the model has converged on the data seen, by the latest "
     "analysis.",
     kGauge, [](M m) { return m.report.updates_left ? Value(*m.report.updates_left) : Value(); }},
    {"perceptrond_model_analysis_margin_lower",
     "Margin that a separator of the examples of the latest analysis is proven to have.", kGauge,
     [](M m) {
       const auto& analysis = m.report.counters.analysis;
       return analysis && analysis->margin_lower > 0 ? Value(analysis->margin_lower) : Value();
     }},
    {"perceptrond_model_analysis_margin_upper",
     "No separator of the examples of the latest analysis has a larger margin than this.", kGauge,
     [](M m) {
       const auto& analysis = m.report.counters.analysis;
       const bool known = analysis && analysis->separability != Separability::kNotSeparable &&
                          std::isfinite(analysis->margin_upper);
       return known ? Value(analysis->margin_upper) : Value();
     }},
    {"perceptrond_model_analysis_timestamp_seconds",
     "When the examples of the latest analysis were taken, since the Unix epoch.", kGauge,
     [](M m) {
       const auto& analysis = m.report.counters.analysis;
       return analysis ? Value(1e-9 * static_cast<double>(analysis->unix_nanos)) : Value();
     }},
    {"perceptrond_model_retained_examples",
     "Examples that the model retains, those that caused updates and the sample together.", kGauge,
     [](M m) { return m.retained ? Value(m.retained->updates + m.retained->sampled) : Value(); }},
    {"perceptrond_model_sample_complete",
     "1 if the sample is everything that the model ever judged, else 0. Absent without a sample.",
     kGauge,
     [](M m) {
       const bool samples = m.retained && (m.retained->sampled > 0 || m.retained->complete);
       return samples ? Flag(m.retained->complete) : Value();
     }},
    {"perceptrond_model_margin_refuted",
     "1 if the examples are proven not separable with the model's margin of interest, else 0.",
     kGauge, [](M m) { return Flag(m.report.margin_refuted); }},
    {"perceptrond_model_not_separable",
     "1 if the examples are proven to have no separator, else 0.", kGauge,
     [](M m) { return Flag(m.report.not_separable); }},
    {"perceptrond_model_error_ceiling_ratio",
     "With 95 % confidence the model errs on at most this share of examples like those of the "
     "streak. Absent where that is not proven.",
     kGauge, [](M m) { return m.report.error_ceiling; }},
    {"perceptrond_model_mean_loss", "The learner's own loss per example judged.", kGauge,
     [](M m) { return m.report.mean_loss; }},
    {"perceptrond_model_drifts_total", "How often the error was found to have risen.", kCounter,
     [](M m) { return Value(m.report.counters.drift.detected); }},
    {"perceptrond_model_drift_window_examples",
     "Answers over which the drift detector sees the error stand still.", kGauge,
     [](M m) { return m.in_memory ? Value(m.report.drift_window_examples) : Value(); }},
    {"perceptrond_model_last_pass_mistakes", "Mistakes of the latest pass that a producer marked.",
     kGauge,
     [](M m) {
       const auto& pass = m.report.counters.last_pass;
       return pass ? Value(pass->mistakes) : Value();
     }},
    {"perceptrond_model_last_pass_risk",
     "Perceptron risk of the latest pass that a producer marked: the sum of max(0, -y s) over it.",
     kGauge,
     [](M m) {
       const auto& pass = m.report.counters.last_pass;
       return pass ? Value(pass->risk) : Value();
     }},
    {"perceptrond_model_last_pass_converged",
     "1 if the latest pass that a producer marked changed nothing, else 0.", kGauge,
     [](M m) {
       const auto& pass = m.report.counters.last_pass;
       return pass ? Flag(pass->converged) : Value();
     }},
    {"perceptrond_model_revision", "The model's revision: names a state of the weights exactly.",
     kGauge, [](M m) { return Value(m.revision); }},
    {"perceptrond_model_journal_bytes", "Bytes journaled since the last snapshot.", kGauge,
     [](M m) { return m.journal_bytes ? Value(*m.journal_bytes) : Value(); }},
    {"perceptrond_model_snapshot_timestamp_seconds",
     "When the last snapshot was taken, since the Unix epoch.", kGauge,
     [](M m) {
       return m.snapshot_time == absl::InfinitePast()
                  ? Value()
                  : Value(absl::ToDoubleSeconds(m.snapshot_time - absl::UnixEpoch()));
     }},
    {"perceptrond_model_memory_bytes", "Memory that the model takes.", kGauge,
     [](M m) { return Value(m.memory_bytes); }},
    {"perceptrond_model_in_memory", "1 if the model is loaded, 0 if it is on disk only.", kGauge,
     [](M m) { return Flag(m.in_memory); }},
};

MetricFamily RejectedFamily(const std::vector<ModelMetrics>& models) {
  MetricFamily family{"perceptrond_model_rejected_total",
                      "Examples refused, by the reason their error gave.", kCounter};
  for (const ModelMetrics& model : models) {
    for (size_t code = 0; code < kValidationCodes; ++code) {
      const uint64_t rejected = model.report.counters.rejected[code];
      if (rejected == 0) continue;
      family.Add(
          {{"model_name", model.id}, {"reason", ReasonName(static_cast<ValidationCode>(code))}},
          static_cast<double>(rejected));
    }
  }
  return family;
}

// One series a model and state: 1 for the state it is in.
MetricFamily StateFamily(const std::vector<ModelMetrics>& models) {
  constexpr const char* kStates[] = {"learning", "converged", "refuted", "not_separable",
                                     "drifting"};
  MetricFamily family{"perceptrond_model_state", "1 for the state that the model is in, else 0.",
                      kGauge};
  for (const ModelMetrics& model : models) {
    if (!model.report.state) continue;
    for (size_t i = 0; i < std::size(kStates); ++i) {
      const bool here = static_cast<size_t>(*model.report.state) == i;
      family.Add({{"model_name", model.id}, {"state", kStates[i]}}, here ? 1 : 0);
    }
  }
  return family;
}

MetricFamily ErrorFamily(const std::vector<ModelMetrics>& models) {
  MetricFamily family{"perceptrond_model_progressive_error_ratio",
                      "Mistakes per example judged, over the model's lifetime and over "
                      "the window.",
                      kGauge};
  for (const ModelMetrics& model : models) {
    const auto sample = [&](const char* scope, Value value) {
      if (value) family.Add({{"model_name", model.id}, {"scope", scope}}, *value);
    };
    sample("lifetime", model.report.progressive_error);
    sample("window", model.report.window_error);
  }
  return family;
}

}  // namespace

void AppendModelFamilies(const std::vector<ModelMetrics>& models, MetricFamilies& families) {
  for (const ModelFamily& description : kModelFamilies) {
    MetricFamily family{description.name, description.help, description.kind};
    for (const ModelMetrics& model : models) {
      if (const Value value = description.value(model)) {
        family.Add({{"model_name", model.id}}, *value);
      }
    }
    Append(std::move(family), families);
  }
  Append(RejectedFamily(models), families);
  Append(ErrorFamily(models), families);
  Append(StateFamily(models), families);
}

}  // namespace perceptrond
