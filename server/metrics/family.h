// Metric families, before they take any library's form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace perceptrond {

struct MetricHistogram {
  struct Bucket {
    // Inclusive.
    double upper_bound = 0;
    uint64_t cumulative_count = 0;
  };
  std::vector<Bucket> buckets;
  double sum = 0;
};

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

struct MetricSample {
  MetricLabels labels;
  // Of a counter or a gauge.
  double value = 0;
  MetricHistogram histogram;
};

enum class MetricKind : uint8_t { kCounter, kGauge, kHistogram };

struct MetricFamily {
  // With its unit, as Prometheus names them.
  std::string name;
  // One sentence.
  std::string help;
  MetricKind kind = MetricKind::kGauge;
  std::vector<MetricSample> samples = {};

  void Add(MetricLabels labels, double value) { samples.push_back({std::move(labels), value, {}}); }
};

using MetricFamilies = std::vector<MetricFamily>;

// Families without a sample are left out.
inline void Append(MetricFamily family, MetricFamilies& families) {
  if (!family.samples.empty()) families.push_back(std::move(family));
}

// A family of one sample without labels; no value, no family.
inline void AppendSingle(const char* name, const char* help, MetricKind kind,
                         std::optional<double> value, MetricFamilies& families) {
  MetricFamily family{name, help, kind};
  if (value) family.Add({}, *value);
  Append(std::move(family), families);
}

}  // namespace perceptrond
