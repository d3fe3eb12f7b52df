#include "client/ctl/bench/report.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/json.h"
#include "client/ctl/output.h"
#include "client/ctl/terminal.h"

namespace perceptrond::client {
namespace {

struct Percentile {
  const char* name;
  double percent;
};
constexpr Percentile kPercentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};

// Difference from the requested share of mistakes that needs an explanation.
constexpr double kMistakesTolerance = 0.01;

std::string Time(absl::Duration time) {
  const double micros = absl::ToDoubleMicroseconds(time);
  if (micros < 1e3) return absl::StrFormat("%.0f us", micros);
  if (micros < 1e6) return absl::StrFormat("%.3g ms", micros / 1e3);
  return absl::StrFormat("%.3g s", micros / 1e6);
}

std::string Latencies(const LatencyHistogram& latency) {
  std::string text;
  for (const Percentile& percentile : kPercentiles)
    absl::StrAppend(&text, percentile.name, " ", Time(latency.Percentile(percentile.percent)),
                    ", ");
  return absl::StrCat(text, "max ", Time(latency.max()));
}

std::string Mistakes(const BenchReport& report) {
  std::string text = absl::StrCat("  ", Grouped(report.tally.mistakes), " mistakes, ",
                                  Percent(report.mistake_share()),
                                  " (requested: ", Percent(report.requested_mistakes), "); ",
                                  Grouped(report.tally.updates), " updates\n");
  if (std::abs(report.mistake_share() - report.requested_mistakes) > kMistakesTolerance) {
    absl::StrAppend(
        &text,
        "  the share of mistakes differs from --mistakes: the model was still learning (raise "
        "--warmup), or its dimension is too small (raise --size)\n");
  }
  return text;
}

std::string Disconnects(const BenchReport& report) {
  std::string text = absl::StrCat(
      "  ", "connection lost ",
      report.tally.disconnects == 1 ? "once" : absl::StrCat(report.tally.disconnects, " times"));
  if (report.tally.lost > 0) {
    absl::StrAppend(&text, "; ", Grouped(report.tally.lost),
                    " examples have no known result and are not counted");
  }
  return text + "\n";
}

}  // namespace

double BenchReport::examples_per_second() const {
  return seconds > 0 ? static_cast<double>(answered()) / seconds : 0;
}

double BenchReport::mistake_share() const {
  return tally.examples == 0
             ? 0
             : static_cast<double>(tally.mistakes) / static_cast<double>(tally.examples);
}

bool BenchReport::kept_up() const {
  return static_cast<double>(answered() + tally.lost) >= 0.99 * rate * seconds;
}

std::string BenchReport::Text() const {
  std::string text =
      absl::StrFormat("%s %s: %s examples in %.1f s, %.0f/s", work, PrintableInLine(model),
                      Grouped(answered()), seconds, examples_per_second());
  if (rate > 0) absl::StrAppendFormat(&text, " of %.6g/s requested", rate);
  absl::StrAppendFormat(&text, "; %d stream%s, %d per message\n", streams, streams == 1 ? "" : "s",
                        batch);
  if (work == "learn" && tally.examples > 0) absl::StrAppend(&text, Mistakes(*this));
  if (tally.row_errors > 0)
    absl::StrAppend(&text, "  ", Grouped(tally.row_errors), " with validation errors\n");
  if (tally.disconnects > 0) absl::StrAppend(&text, Disconnects(*this));
  if (tally.messages == 0) return text + "  no answer in the measured time\n";
  absl::StrAppend(&text, "  latency per message: ", Latencies(tally.latency), "\n");
  absl::StrAppend(&text,
                  rate > 0 ? "  measured from the time each message was due\n"
                           : "  measured from sending: without --rate a slow server receives less "
                             "and looks faster\n");
  if (!kept_up()) {
    absl::StrAppend(
        &text,
        "  the server did not keep up: it, or this machine, is too slow for the requested "
        "rate\n");
  }
  return text;
}

std::string BenchReport::Json() const {
  JsonObject latency;
  for (const Percentile& percentile : kPercentiles) {
    latency.Number(percentile.name,
                   absl::ToDoubleMicroseconds(tally.latency.Percentile(percentile.percent)));
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
      .Integer("rowErrors", static_cast<int64_t>(tally.row_errors))
      .Integer("mistakes", static_cast<int64_t>(tally.mistakes))
      .Integer("updates", static_cast<int64_t>(tally.updates))
      .Integer("overdue", static_cast<int64_t>(tally.overdue))
      .Integer("reconnects", static_cast<int64_t>(tally.disconnects))
      .Integer("lostAnswers", static_cast<int64_t>(tally.lost));
  if (work == "learn" && tally.examples > 0)
    json.Number("requestedMistakes", requested_mistakes).Number("mistakeShare", mistake_share());
  if (tally.messages > 0) json.Raw("latencyMicroseconds", latency.str());
  return json.str();
}

}  // namespace perceptrond::client
