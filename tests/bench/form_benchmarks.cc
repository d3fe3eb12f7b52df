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
};

constexpr WordForm kForms[] = {
    {"index", Form::kPacked, false, 0.90},
    {"name_hashed", Form::kPackedNames, false, 0.75},
    {"name_named", Form::kPackedNames, true, 0.75},
    {"table_hashed", Form::kTableNames, false, 0.75},
    {"table_named", Form::kTableNames, true, 0.75},
    {"table_compact", Form::kTableCompact, true},
    {"nested_index", Form::kNested, false, 0.80},
    {"nested_name", Form::kNestedNames, true},
    {"text", Form::kText, true},
    {"texts", Form::kTexts, false},
};

StreamCase CaseOf(const WordForm& form, const char* work_name, Work work) {
  const double goal = work == Work::kLearn ? form.goal : 0;
  return {.name = absl::StrCat(work_name, "_", form.name),
          .direction = goal > 0 ? Goal::kAtLeast : Goal::kNone,
          .goal = goal,
          .work = work,
          .form = form.form,
          .words = true,
          .named_space = form.named_space};
}

// New names in a named space: the first pass beside its floor, and beside the second pass.
Benchmark FirstPass(const WordForm& form, const Options& options) {
  const StreamCase stream = CaseOf(form, "first_pass", Work::kFirstPass);
  const auto run = std::make_shared<StreamRun>(stream, options);
  return {{stream.figure(), {stream.name + "_of_second", "examples/s", Goal::kAtLeast, 0.50}},
          [run](int rep, std::vector<Figure>& figures) {
            const StreamRates measured = run->Measure(rep);
            measured.AddTo(figures[0]);
            Add(figures[1], measured.ours, measured.second_pass);
          }};
}

// One prediction at a time on a stream, in microseconds.
Benchmark OneAtATime(const WordForm& form, const Options& options) {
  const auto messages = std::make_shared<std::unique_ptr<Messages[]>>();
  const std::string name = absl::StrCat("predict_one_", form.name);
  const auto prepare = [form, name, messages, &options] {
    const Rows rows = ZipfRows(options.tiny ? 200 : 2000, 100'000, 1);
    const std::string id = "bench-" + name;
    Servers::Get().CreateModel(id, ModelFor(form.form, form.named_space, 20));
    Messages learn = LearnMessages(rows, "models/" + id, form.form, 100);
    Servers::Get().Converge(learn, 0);
    *messages = std::make_unique<Messages[]>(2);
    for (int i = 0; i < 2; ++i)
      (*messages)[i] = PredictMessages(rows, "models/" + id, form.form, 1);
  };
  return {{{name + "_p50", "us", Goal::kAtMost, 1.15}, {name + "_p99", "us", Goal::kAtMost, 1.15}},
          [messages, prepare, &options](int rep, std::vector<Figure>& figures) {
            if (*messages == nullptr) prepare();
            const auto measure = [&](Server server) {
              return StreamPredict(Servers::Get().channel(server),
                                   (*messages)[static_cast<int>(server)], options.seconds);
            };
            AddLatencies(rep, measure, figures[0], figures[1]);
          }};
}

}  // namespace

std::vector<Benchmark> FormBenchmarks(const Options& options) {
  std::vector<Benchmark> benchmarks;
  for (const auto& [work_name, work] :
       {std::pair{"learn", Work::kLearn}, {"erring", Work::kErring}, {"predict", Work::kPredict}}) {
    for (const WordForm& form : kForms)
      benchmarks.push_back(StreamBenchmark(CaseOf(form, work_name, work), options));
  }
  for (const WordForm& form : kForms) {
    // A table whose names were all sent has no first pass.
    if (form.named_space && form.form != Form::kTableNames && form.form != Form::kTableCompact)
      benchmarks.push_back(FirstPass(form, options));
    benchmarks.push_back(OneAtATime(form, options));
  }
  return benchmarks;
}

}  // namespace perceptrond::bench
