#include "client/ctl/bench_report.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"
#include "client/ctl/progress.h"

namespace perceptrond::client {
namespace {

struct Point {
  const char* name;
  double percent;
};
constexpr Point kPoints[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};

std::string Time(absl::Duration time) {
  const double micros = absl::ToDoubleMicroseconds(time);
  if (micros < 1e3) return absl::StrFormat("%.0f us", micros);
  if (micros < 1e6) return absl::StrFormat("%.3g ms", micros / 1e3);
  return absl::StrFormat("%.3g s", micros / 1e6);
}

std::string Latencies(const LatencyHistogram& latency) {
  std::string text;
  for (const Point& point : kPoints)
    absl::StrAppend(&text, point.name, " ", Time(latency.Percentile(point.percent)), ", ");
  return absl::StrCat(text, "max ", Time(latency.max()));
}

}  // namespace

double BenchReport::examples_per_second() const {
  return seconds > 0 ? static_cast<double>(tally.examples + tally.refused) / seconds : 0;
}

bool BenchReport::kept_up() const { return rate == 0 || examples_per_second() >= 0.99 * rate; }

std::string BenchReport::Text() const {
  std::string text =
      absl::StrFormat("%s %s: %s examples in %.1f s, %.0f/s", work, PrintableInLine(model),
                      Grouped(tally.examples + tally.refused), seconds, examples_per_second());
  if (rate > 0) absl::StrAppendFormat(&text, " of the %.0f/s asked for", rate);
  absl::StrAppendFormat(&text, "; %d stream%s, %d a message\n", streams, streams == 1 ? "" : "s",
                        batch);
  if (work == "learn") {
    absl::StrAppend(&text, "  ", Grouped(tally.mistakes), " mistakes, ", Grouped(tally.updates),
                    " updates\n");
  }
  if (tally.refused > 0) absl::StrAppend(&text, "  ", Grouped(tally.refused), " refused\n");
  if (tally.reconnects > 0) {
    absl::StrAppend(&text, "  the connection broke ", tally.reconnects, " times; ",
                    Grouped(tally.lost), " more examples are in no figure\n");
  }
  if (tally.messages == 0) return text + "  no answer in the time that is counted\n";
  absl::StrAppend(&text, "  latency of a message: ", Latencies(tally.latency), "\n");
  absl::StrAppend(&text, rate > 0
                             ? "  each from when it was due, whether or not it could be sent then\n"
                             : "  each from when it was sent: without --rate a server that is slow "
                               "is sent less, and looks better\n");
  if (!kept_up()) {
    absl::StrAppend(
        &text,
        "  not all that was due could be sent: the server, or this machine, is too slow "
        "for that rate\n");
  }
  return text;
}

std::string BenchReport::Json() const {
  JsonObject latency;
  for (const Point& point : kPoints) {
    latency.Number(point.name, absl::ToDoubleMicroseconds(tally.latency.Percentile(point.percent)));
  }
  latency.Number("max", absl::ToDoubleMicroseconds(tally.latency.max()));
  JsonObject json;
  json.Text("work", work)
      .Text("model", model)
      .Integer("streams", static_cast<int64_t>(streams))
      .Integer("batch", static_cast<int64_t>(batch))
      .Number("seconds", seconds);
  if (rate > 0) json.Number("rate", rate);
  json.Number("examplesPerSecond", examples_per_second())
      .Bool("keptUp", kept_up())
      .Integer("messages", static_cast<int64_t>(tally.messages))
      .Integer("examples", static_cast<int64_t>(tally.examples))
      .Integer("refused", static_cast<int64_t>(tally.refused))
      .Integer("mistakes", static_cast<int64_t>(tally.mistakes))
      .Integer("updates", static_cast<int64_t>(tally.updates))
      .Integer("reconnects", static_cast<int64_t>(tally.reconnects))
      .Integer("lostAnswers", static_cast<int64_t>(tally.lost));
  if (tally.messages > 0) json.Raw("latencyMicroseconds", latency.str());
  return json.str();
}

}  // namespace perceptrond::client
