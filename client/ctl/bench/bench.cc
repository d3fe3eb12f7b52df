#include "client/ctl/bench/bench.h"

#include <unistd.h>
#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/connection.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "client/ctl/terminal.h"
#include "client/learn_stream.h"

namespace perceptrond::client {
namespace {

// Fraction of this machine's memory; the server needs some too.
constexpr double kShare = 0.25;

double MachineBytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Bytes of the messages in flight of one stream with a full window.
double BytesInFlight(const LoadOptions& load, double row_bytes) {
  const double message = row_bytes * static_cast<double>(load.rows_per_message);
  if (load.work == LoadOptions::Work::kCall) return message;
  const LearnOptions stream;
  const double sent =
      std::max(row_bytes, std::min(message, static_cast<double>(stream.bytes_per_message)));
  return std::max(sent, std::min(sent * static_cast<double>(load.window),
                                 static_cast<double>(stream.window_bytes)));
}

std::string Bytes(double bytes) {
  constexpr double kGiB = 1 << 30;
  return bytes < kGiB ? absl::StrFormat("%.0f MiB", bytes / (1 << 20))
                      : absl::StrFormat("%.1f GiB", bytes / kGiB);
}

double BytesOfLoads(const LoadOptions& load, const SyntheticRowsOptions& rows, size_t streams) {
  const auto row_bytes = static_cast<double>(SyntheticRows::BytesOfOne(rows));
  const double made = row_bytes * static_cast<double>(SyntheticRows::Count(rows));
  return (made + BytesInFlight(load, row_bytes)) * static_cast<double>(streams);
}

}  // namespace

std::string CheckMemory(const LoadOptions& load, const SyntheticRowsOptions& rows, size_t streams) {
  const double bytes = BytesOfLoads(load, rows, streams);
  const double machine = MachineBytes();
  if (bytes <= kShare * machine) return "";
  return absl::StrFormat(
      "the examples and the messages in flight need %s, more than a quarter of this machine's "
      "memory (%s): use fewer --streams, a smaller --window or --batch, or fewer --features",
      Bytes(bytes), Bytes(kShare * machine));
}

namespace {

// Number of feature names; the model learns those it does not know.
constexpr uint32_t kNames = 1U << 20;

}  // namespace

Outcome BenchModel::Find() {
  shape_.kind = options_.dense   ? RowKind::kDense
                : options_.named ? RowKind::kNamed
                                 : RowKind::kSparse;
  shape_.size = options_.size;
  shape_.features = options_.Features();
  shape_.labels = options_.Work() == LoadOptions::Work::kLearn;
  shape_.mistakes = options_.mistakes;
  shape_.parts = static_cast<uint32_t>(options_.streams);
  name_ = options_.name.empty() ? absl::StrCat("bench-", RandomId().substr(0, 12)) : options_.name;
  if (options_.name.empty()) return {};
  const absl::StatusOr<v1::Model> model = client_.GetModel(name_);
  return model.ok() ? ReadShape(*model) : Failed("bench", model.status());
}

Outcome BenchModel::Create() {
  if (!options_.name.empty()) return {};
  v1::Model model;
  model.set_description("Temporary model of perceptronctl bench, deleted at the end of the run.");
  v1::FeatureSpace& space = *model.mutable_feature_space();
  if (options_.hash_bits.has_value()) {
    space.mutable_hashed()->set_bits(static_cast<uint32_t>(*options_.hash_bits));
  } else if (options_.named) {
    space.mutable_named()->set_max_features(options_.size);
  } else {
    space.mutable_dense()->set_dimension(options_.size);
  }
  // No bias: flipping examples must share no feature with the others.
  model.mutable_learner()->set_bias_input(0);
  const absl::StatusOr<v1::Model> created = client_.CreateModel(name_, model);
  created_ = created.ok();
  return created_ ? Outcome() : Failed("bench", created.status());
}

Outcome BenchModel::ReadShape(const v1::Model& model) {
  if (model.learner().has_classes() && shape_.labels) {
    return UsageError("bench: the synthetic examples have two labels, and " + name_ +
                      " is multiclass: use --work predict");
  }
  const v1::FeatureSpace& space = ExampleSpace(model.feature_space());
  if (space.has_text())
    return UsageError(absl::StrCat("bench: ", name_,
                                   " takes texts, and the synthetic examples have "
                                   "features"));
  if (space.has_dense() && options_.named)
    return UsageError(absl::StrCat("bench: ", name_, " takes no names: leave out --named"));
  if (space.has_dense()) {
    shape_.size = space.dense().dimension();
  } else if (space.has_hashed() && options_.named) {
    shape_.size = options_.size;
  } else if (space.has_hashed()) {
    shape_.size = 1U << std::min<uint32_t>(space.hashed().bits(), 31);
    shape_.kind = RowKind::kSparse;
  } else {
    shape_.size = kNames;
    shape_.kind = RowKind::kNamed;
  }
  shape_.features = std::min(shape_.features, shape_.size);
  return {};
}

void BenchModel::Delete() {
  if (!created_) return;
  created_ = false;
  RetryPolicy retry;
  retry.give_up_after = std::min(globals_.StreamTimeout(), absl::Seconds(3));
  // The random name makes it safe to repeat the deletion.
  const absl::Status status = CallWithRetry(Reconnecting(retry, client_.connection()), true,
                                            [this] { return client_.DeleteModel(name_); });
  if (status.ok() || absl::IsNotFound(status)) return;
  PrintStderr(absl::StrCat("could not delete the temporary model (", std::string(status.message()),
                           "): delete it with 'perceptronctl delete ", name_, "'"));
}

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
  std::string text = absl::StrCat("  ", Counted(report.tally.mistakes, "mistakes"), ", ",
                                  Percent(report.mistake_share()),
                                  " (requested: ", Percent(report.requested_mistakes), "); ",
                                  Counted(report.tally.updates, "updates"), "\n");
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
  std::string text = absl::StrFormat(
      "%s %s: %s examples in %.1f s, %s/s", work, PrintableInLine(model), Grouped(answered()),
      seconds, Grouped(static_cast<uint64_t>(std::llround(examples_per_second()))));
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
