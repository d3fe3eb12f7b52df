// The matrix of forms and work, for the perceptron: every form that a user can send, in every kind
// of work.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/messages.h"
#include "tests/bench/servers.h"
#include "tests/bench/stream_case.h"

namespace perceptrond::bench {
namespace {

// A form of words and the space that they are sent to. A new form is one more line.
struct WordForm {
  const char* name;
  Form form;
  bool named_space;
  // Of the floor, learning without mistakes; 0: none.
  double goal = 0;
  // The form that sends the same rows, which it is compared with, and the goal of the ratio.
  const char* base = nullptr;
  double goal_of_base = 0;
  // By the slots of the names.
  bool in_slots = false;
};

constexpr WordForm kForms[] = {
    {"index", Form::kPacked, false, 0.90},
    {"slot", Form::kPacked, false, 0.90, nullptr, 0, true},
    {"name_hashed", Form::kPackedNames, false, 0.75, "slot", 0.85},
    {"name_named", Form::kPackedNames, true, 0.75, "index", 0.85},
    {"table_hashed", Form::kTableNames, false, 0.75, "slot", 0.85},
    {"table_named", Form::kTableNames, true, 0.75, "index", 0.85},
    {"compact", Form::kCompact, false, 0, "index"},
    {"table_compact", Form::kTableCompact, true, 0, "table_named"},
    {"nested_index", Form::kNested, false, 0.80},
    {"nested_name", Form::kNestedNames, true, 0, "nested_index", 0.60},
    {"text", Form::kText, true, 0, "index", 0},
    {"texts", Form::kTexts, false, 0, "name_hashed"},
};

Goal AtLeastIf(double goal) { return goal > 0 ? Goal::kAtLeast : Goal::kNone; }

StreamCase CaseOf(const WordForm& form, const char* work_name, Work work, double goal) {
  return {.name = absl::StrCat(work_name, "_", form.name),
          .direction = AtLeastIf(goal),
          .goal = goal,
          .work = work,
          .form = form.form,
          .words = true,
          .in_slots = form.in_slots,
          .named_space = form.named_space};
}

// All forms in one kind of work, each measured in each repetition, and the ratios between them.
Benchmark AllForms(const char* work_name, Work work, const Options& options) {
  auto runs = std::make_shared<std::vector<std::unique_ptr<StreamRun>>>();
  Benchmark benchmark;
  // Positions in `runs` of each form and its base.
  std::vector<std::pair<size_t, size_t>> ratios;
  for (const WordForm& form : kForms) {
    const bool learns = work == Work::kLearn;
    const bool by_index = form.base == nullptr;
    const double goal = learns ? form.goal : (by_index && work == Work::kErring ? 0.60 : 0.0);
    const StreamCase stream = CaseOf(form, work_name, work, goal);
    benchmark.figures.push_back(stream.figure());
    runs->push_back(std::make_unique<StreamRun>(stream, options));
  }
  for (size_t i = 0; i < std::size(kForms); ++i) {
    if (kForms[i].base == nullptr) continue;
    size_t base = 0;
    while (std::string(kForms[base].name) != kForms[i].base) ++base;
    ratios.emplace_back(i, base);
    const double goal = work == Work::kLearn ? kForms[i].goal_of_base : 0.0;
    benchmark.figures.push_back(
        {absl::StrCat(work_name, "_", kForms[i].name, "_of_", kForms[i].base), "examples/s",
         AtLeastIf(goal), goal});
  }
  // Of a selection: its rows, and those that they are compared with.
  std::vector<bool> needed;
  for (const Figure& figure : benchmark.figures) needed.push_back(options.Selects(figure.name));
  for (size_t i = 0; i < ratios.size(); ++i) {
    if (needed[runs->size() + i]) needed[ratios[i].first] = needed[ratios[i].second] = true;
  }
  benchmark.measure = [runs, ratios, needed](int rep, std::vector<Figure>& figures) {
    std::vector<double> rates(runs->size());
    for (size_t i = 0; i < runs->size(); ++i) {
      if (!needed[i]) continue;
      const StreamRates measured = (*runs)[i]->Measure(rep);
      measured.AddTo(figures[i]);
      rates[i] = measured.ours;
    }
    for (size_t i = 0; i < ratios.size(); ++i) {
      if (!needed[runs->size() + i]) continue;
      Figure& figure = figures[runs->size() + i];
      figure.values.push_back(rates[ratios[i].first]);
      figure.references.push_back(rates[ratios[i].second]);
    }
  };
  return benchmark;
}

// New names in a named space: the first pass beside its floor, and beside the second pass.
Benchmark FirstPass(const WordForm& form, const Options& options) {
  const StreamCase stream = CaseOf(form, "first_pass", Work::kFirstPass, 0);
  const auto run = std::make_shared<StreamRun>(stream, options);
  return {{stream.figure(), {stream.name + "_of_second", "examples/s", Goal::kAtLeast, 0.50}},
          [run](int rep, std::vector<Figure>& figures) {
            const StreamRates measured = run->Measure(rep);
            measured.AddTo(figures[0]);
            figures[1].values.push_back(measured.ours);
            figures[1].references.push_back(measured.second_pass);
          }};
}

// One prediction at a time on a stream, in microseconds.
Benchmark OneAtATime(const WordForm& form, const Options& options) {
  struct State {
    Messages messages[3];
    bool ready = false;
  };
  const auto state = std::make_shared<State>();
  const std::string name = absl::StrCat("predict_one_", form.name);
  const auto prepare = [form, name, state, &options] {
    const Rows rows = ZipfRows(options.tiny ? 200 : 2000, 100'000, 1);
    const std::string id = "bench-" + name;
    ::perceptron::v1::Model model;
    if (form.form == Form::kTexts) {
      SetTextSpace(20, model);
    } else if (form.named_space) {
      model.mutable_feature_space()->mutable_named();
    } else {
      model.mutable_feature_space()->mutable_hashed()->set_bits(20);
    }
    Servers::Get().CreateModel(id, model);
    Messages learn = LearnMessages(rows, "models/" + id, form.form, 100);
    Servers::Get().Converge(learn, 0);
    for (Messages& messages : state->messages)
      messages = PredictMessages(rows, "models/" + id, form.form, 1);
    state->ready = true;
  };
  return {{{name + "_p50", "us", Goal::kAtMost, 1.15}, {name + "_p99", "us", Goal::kAtMost, 1.15}},
          [state, prepare, &options](int rep, std::vector<Figure>& figures) {
            if (!state->ready) prepare();
            const auto measure = [&](Server server) {
              return StreamPredict(Servers::Get().channel(server),
                                   state->messages[static_cast<int>(server)], options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

}  // namespace

std::vector<Benchmark> FormBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks;
  for (const uint32_t bits : {16U, 20U}) {
    for (const size_t size : {size_t{100}, size_t{1000}}) {
      const std::string suffix = absl::StrCat("_", bits, "_bits_", size);
      benchmarks.push_back(StreamBenchmark(
          {.name = "learn_packed" + suffix, .goal = 0.90, .size = size, .bits = bits}, options));
      benchmarks.push_back(StreamBenchmark({.name = "erring_packed" + suffix,
                                            .goal = 0.60,
                                            .work = Work::kErring,
                                            .size = size,
                                            .bits = bits},
                                           options));
    }
  }
  benchmarks.push_back(
      StreamBenchmark({.name = "learn_one_a_message", .goal = 0.95, .size = 1}, options));
  benchmarks.push_back(AllForms("learn", Work::kLearn, options));
  benchmarks.push_back(AllForms("erring", Work::kErring, options));
  for (const WordForm& form : kForms) {
    // A table whose names were all sent has no first pass.
    if (form.named_space && form.form != Form::kTableNames && form.form != Form::kTableCompact)
      benchmarks.push_back(FirstPass(form, options));
  }
  benchmarks.push_back(AllForms("predict", Work::kPredict, options));
  for (const WordForm& form : kForms) benchmarks.push_back(OneAtATime(form, options));
  return benchmarks;
}

}  // namespace perceptrond::bench
