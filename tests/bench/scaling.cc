// What serialises when many streams learn: processor time by thread, and locks, at 1 to 8 streams
// on one model and on as many; and what follows for more processors than this machine has.
//   scaling [--reps N] [--seconds S] [--processors N] [--filter TITLE] [--tiny]
//
// Three real servers are measured in turn: on one processor with the client on another, on all
// processors with the client, and the same with its locks counted (lock_counts.h).
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "tests/bench/lock_counts.h"
#include "tests/bench/messages.h"
#include "tests/bench/report.h"
#include "tests/bench/scaling_model.h"
#include "tests/bench/server_usage.h"
#include "tests/bench/servers.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

struct Settings {
  int reps = 3;
  double seconds = 0.5;
  int processors = 8;
  std::string filter;
  bool tiny = false;
};

constexpr size_t kRowsAMessage = 100;
constexpr size_t kMostStreams = 8;

using Processors = std::vector<int>;

// That this thread, and the threads and processes that it starts from here on, may use.
void UseProcessors(const Processors& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::abort();
}

Processors OwnProcessors() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) std::abort();
  Processors processors;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) processors.push_back(i);
  }
  return processors;
}

double OwnNanos() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return 1e9 * static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec);
}

// Of all processors of this machine, so far.
double IdleSeconds() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0;
  double nice = 0;
  double system = 0;
  double idle = 0;
  double waiting = 0;
  file >> name >> user >> nice >> system >> idle >> waiting;
  return (idle + waiting) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

// What is learned: `rows` by streams that share one model, or that have one each.
struct Work {
  std::string name;
  bool one_model;
  bool errs;
};

constexpr int kWorks = 4;
const Work kWork[kWorks] = {{"one model", true, false},
                            {"a model for each stream", false, false},
                            {"one model, a tenth mistakes", true, true},
                            {"a model for each stream, a tenth mistakes", false, true}};

// The part of the rows that one of `streams` streams sends. A row that errs is in one part alone,
// with both of its labels.
Rows PartOf(const Rows& rows, size_t stream, size_t streams) {
  const size_t half = rows.size() / 2;
  const size_t begin = half * stream / streams;
  const size_t end = half * (stream + 1) / streams;
  Rows part = rows.Slice(begin, end);
  part.Append(rows.Slice(half + begin, half + end));
  return part;
}

// A real server with the models of each kind of work, which have learned their rows.
class Subject {
 public:
  Subject(const Processors& processors, const Processors& client, const Rows (&rows)[2],
          bool counts_locks)
      : client_(client), rows_(rows) {
    const std::string locks = dir_.path() + "/locks";
    if (counts_locks) {
      setenv("LD_PRELOAD", LOCK_COUNTS_LIBRARY, 1);
      setenv(kLockFileVariable, locks.c_str(), 1);
    }
    UseProcessors(processors);
    process_.emplace(ServerCommand(Server::kReal, dir_.path()));
    unsetenv("LD_PRELOAD");
    unsetenv(kLockFileVariable);
    if (counts_locks) locks_.emplace(locks);
    UseProcessors(client);
    for (size_t i = 0; i < kMostStreams; ++i)
      channels_.push_back(Connect(process_->addresses()[0]));
    for (size_t i = 0; i < kMostStreams; ++i) {
      for (const bool errs : {false, true}) MakeModel(i, errs);
    }
  }

  // `streams` streams at once. Of the messages of one work.
  ScalingPoint Measure(std::vector<Messages>& messages, double seconds) {
    UseProcessors(client_);
    StreamOptions run;
    run.seconds = seconds;
    const double client_before = OwnNanos();
    const double idle_before = IdleSeconds();
    const auto start = std::chrono::steady_clock::now();
    const auto threads_before = ThreadNanos(process_->pid());
    const LockUses locks_before = locks_.has_value() ? locks_->Read() : LockUses();
    std::vector<StreamOutcome> outcomes(messages.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < messages.size(); ++i) {
      threads.emplace_back([&, i] { outcomes[i] = RunStream(*channels_[i], messages[i], run); });
    }
    for (std::thread& thread : threads) thread.join();
    ScalingPoint point;
    point.streams = messages.size();
    double examples = 0;
    for (const StreamOutcome& outcome : outcomes) {
      point.rate += outcome.rate();
      examples += static_cast<double>(outcome.examples);
      point.mistakes += static_cast<double>(outcome.mistakes);
    }
    point.mistakes /= examples;
    point.client = (OwnNanos() - client_before) / examples;
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    point.idle = (IdleSeconds() - idle_before) / taken.count();
    auto before = threads_before;
    for (const auto& [name, nanos] : ThreadNanos(process_->pid()))
      point.AddThread(name, (nanos - before[name]) / examples);
    if (locks_.has_value()) {
      for (const auto& [kind, use] : locks_->Read()) {
        const auto found = locks_before.find(kind);
        const LockUse since = found == locks_before.end() ? use : use - found->second;
        point.locks[kind] = since / examples;
      }
    }
    return point;
  }

  // Of `streams` streams that do this work.
  std::vector<Messages> MessagesOf(const Work& work, size_t streams) const {
    std::vector<Messages> messages;
    for (size_t i = 0; i < streams; ++i) {
      const std::string model = ModelName(work.one_model ? 0 : i, work.errs);
      const Rows& rows = rows_[work.errs ? 1 : 0];
      messages.push_back(LearnMessages(work.one_model ? PartOf(rows, i, streams) : rows,
                                       "models/" + model, Form::kPacked, kRowsAMessage));
    }
    return messages;
  }

 private:
  static std::string ModelName(size_t i, bool errs) {
    return absl::StrCat(errs ? "erring-" : "learned-", i);
  }

  void MakeModel(size_t i, bool errs) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(ModelName(i, errs));
    request.mutable_model()->mutable_feature_space()->mutable_hashed()->set_bits(20);
    if (errs) request.mutable_model()->mutable_learner()->set_bias_input(0);
    v1::Model created;
    const grpc::Status status =
        v1::ModelService::NewStub(channels_[0])->CreateModel(&context, request, &created);
    if (!status.ok()) std::abort();
    const Rows& rows = rows_[errs ? 1 : 0];
    Messages messages =
        LearnMessages(rows, "models/" + ModelName(i, errs), Form::kPacked, kRowsAMessage);
    StreamOptions once;
    once.messages = messages.size();
    const uint64_t mistakes = errs ? rows.size() / 10 : 0;
    while (RunStream(*channels_[0], messages, once).mistakes > mistakes) {
    }
  }

  testing::TempDir dir_;
  const Processors client_;
  const Rows (&rows_)[2];
  std::optional<testing::Process> process_;
  std::optional<LockReader> locks_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
};

// The repetition with the median rate.
ScalingPoint MedianOf(std::vector<ScalingPoint> points) {
  const auto middle = points.begin() + static_cast<std::ptrdiff_t>(points.size() / 2);
  std::nth_element(points.begin(), middle, points.end(),
                   [](const ScalingPoint& a, const ScalingPoint& b) { return a.rate < b.rate; });
  return *middle;
}

void MeasureWork(const Work& work, const Settings& settings, Subject* (&subjects)[3]) {
  ScalingTable table(work.name, work.one_model, settings.processors);
  for (size_t streams = 1; streams <= (settings.tiny ? 2 : kMostStreams); streams *= 2) {
    std::vector<Messages> messages[3];
    std::vector<ScalingPoint> points[3];
    for (int i = 0; i < 3; ++i) messages[i] = subjects[i]->MessagesOf(work, streams);
    for (int rep = 0; rep < settings.reps; ++rep) {
      for (int i = 0; i < 3; ++i)
        points[i].push_back(subjects[i]->Measure(messages[i], settings.seconds));
    }
    table.Add(MedianOf(points[0]), MedianOf(points[1]), MedianOf(points[2]).locks);
    std::fprintf(stderr, "  %s: %zu streams\n", work.name.c_str(), streams);
  }
  table.Print();
}

int Main(const Settings& settings) {
  const Processors all = OwnProcessors();
  const size_t count = settings.tiny ? 500 : 8000;
  const Rows rows[2] = {SparseRows(2 * count, 1U << 20, 1), ErringRows(count, 1U << 20, 1)};
  // With one processor the client has the same.
  Subject one({all.front()}, {all.back()}, rows, false);
  Subject shared(all, all, rows, false);
  Subject counted(all, all, rows, true);
  Subject* subjects[3] = {&one, &shared, &counted};
  for (const Work& work : kWork) {
    if (absl::StrContains(work.name, settings.filter)) MeasureWork(work, settings, subjects);
  }
  return 0;
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::Settings settings;
  CLI::App app("What serialises when many streams learn", "scaling");
  app.add_option("--reps", settings.reps, "Repetitions; the median is shown")
      ->check(CLI::Range(1, 99));
  app.add_option("--seconds", settings.seconds, "Of each measurement")->check(CLI::PositiveNumber);
  app.add_option("--processors", settings.processors, "Of the machine that is modelled")
      ->check(CLI::Range(1, 1024));
  app.add_option("--filter", settings.filter, "Only the tables whose title contains this");
  app.add_flag("--tiny", settings.tiny, "Few points: shows that it runs, and nothing else");
  CLI11_PARSE(app, argc, argv);
  std::signal(SIGPIPE, SIG_IGN);
  return perceptrond::bench::Main(settings);
}
