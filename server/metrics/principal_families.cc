#include <array>
#include <utility>

#include "server/access/principal_usage.h"
#include "server/metrics/family.h"

namespace perceptrond {

void AppendPrincipalFamilies(const std::vector<PrincipalMetrics>& principals,
                             MetricFamilies& families) {
  static constexpr std::array<const char*, 3> kOutcomes = {"ok", "error", "denied"};
  MetricFamily calls{"perceptrond_principal_calls_total", "Calls that ended, by principal.",
                     MetricKind::kCounter};
  MetricFamily examples{"perceptrond_principal_examples_total",
                        "Examples that were read from requests, by principal.",
                        MetricKind::kCounter};
  MetricFamily limited{"perceptrond_principal_limited_total",
                       "Calls refused and streams paused for their principal's rate of examples.",
                       MetricKind::kCounter};
  for (const PrincipalMetrics& principal : principals) {
    const MetricLabels labels = {{"principal", principal.name}};
    for (size_t i = 0; i < kOutcomes.size(); ++i) {
      MetricLabels with_outcome = labels;
      with_outcome.emplace_back("outcome", kOutcomes[i]);
      calls.Add(std::move(with_outcome), static_cast<double>(principal.calls[i]));
    }
    examples.Add(labels, static_cast<double>(principal.examples));
    limited.Add(labels, static_cast<double>(principal.limited));
  }
  Append(std::move(calls), families);
  Append(std::move(examples), families);
  Append(std::move(limited), families);
}

}  // namespace perceptrond
