#include <utility>

#include "server/metrics/family.h"
#include "server/rpc/connections.h"

namespace perceptrond {

void AppendTransportFamilies(const Connections::Stats& stats, MetricFamilies& families) {
  const auto number = [](uint64_t value) { return static_cast<double>(value); };
  AppendSingle("perceptrond_connections_open", "Connections that are open.", MetricKind::kGauge,
               number(stats.open), families);
  AppendSingle("perceptrond_connections_accepted_total",
               "Connections that were accepted and not refused.", MetricKind::kCounter,
               number(stats.accepted), families);
  MetricFamily refused{"perceptrond_connections_refused_total",
                       "Connections that were refused because a limit was reached.",
                       MetricKind::kCounter};
  for (size_t i = 0; i < kRefusalReasons; ++i) {
    refused.Add({{"reason", RefusalReasonName(static_cast<RefusalReason>(i))}},
                number(stats.refused[i]));
  }
  Append(std::move(refused), families);
  MetricFamily closed{"perceptrond_connections_closed_total",
                      "Connections that were closed for sending too much without a message.",
                      MetricKind::kCounter};
  for (size_t i = 0; i < kCloseReasons; ++i) {
    closed.Add({{"reason", CloseReasonName(static_cast<CloseReason>(i))}}, number(stats.closed[i]));
  }
  Append(std::move(closed), families);
  MetricFamily calls{"perceptrond_calls_refused_total",
                     "Calls that were refused because too many were in flight.",
                     MetricKind::kCounter};
  calls.Add({{"reason", "max_streams_per_connection"}}, number(stats.streams_refused_connection));
  calls.Add({{"reason", "max_streams"}}, number(stats.streams_refused_all));
  Append(std::move(calls), families);
}

}  // namespace perceptrond
