// Streams of every rule at servers that do not write their model: a server that evaluates rows on its copy answers as the
// writer does, and what all servers answered is one run of the rule.
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "tests/server/fleet/fleet_nodes.h"
#include "tests/support/names.h"

namespace perceptrond::followed_streams_test {
namespace {

using namespace ::perceptrond::fleet_server_test;

constexpr int kFeatures = 30;

struct Rule {
  std::string name;
  // The model's settings beside its feature space, in text format.
  std::string settings = {};
  // Features by name, numbered by a table of the stream's.
  bool named = false;
  // Texts instead of vectors.
  bool texts = false;
  // Classes, each introduced by its name; 0: two labels.
  int classes = 0;
  // The models, perceptrons of fixed weights, of which it is a composition.
  int components = 0;
  // In the middle of each stream all labels change.
  bool drifts = false;
  // A copy can evaluate its rows.
  bool evaluated_anywhere = true;
  // It has a weight vector.
  bool weights = true;
  // Its weights for predictions depend on the rows evaluated elsewhere, of which the writer hears later.
  bool weighs_rows = false;
  bool detail = true;
  // The answers of streams at several servers do not tell the order of their rows.
  bool batches = false;
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

std::vector<Rule> Rules() {
  return {
      {.name = "perceptron"},
      {.name = "averaged", .settings = "learner { averaged {} }", .weighs_rows = true},
      {.name = "pocket", .settings = "learner { pocket {} }", .weighs_rows = true},
      {.name = "voted", .settings = "learner { voted {} }", .weights = false},
      {.name = "margin_perceptron",
       .settings = "learner { margin_perceptron { margin_slack: 0.5 } }"},
      {.name = "passive_aggressive", .settings = "learner { passive_aggressive {} }"},
      {.name = "passive_aggressive_i", .settings = "learner { passive_aggressive_i {} }"},
      {.name = "passive_aggressive_ii", .settings = "learner { passive_aggressive_ii {} }"},
      {.name = "arow", .settings = "learner { arow {} }"},
      {.name = "soft_confidence_weighted", .settings = "learner { soft_confidence_weighted {} }"},
      {.name = "logistic_regression",
       .settings = "learner { logistic_regression { update_threshold: 0.25 } }"},
      {.name = "kernel",
       .settings = "learner { kernel_perceptron { budget: 200 } }",
       .weights = false},
      {.name = "automatic", .settings = "learner { auto {} }", .weights = false},
      {.name = "names", .named = true},
      {.name = "texts", .texts = true},
      {.name = "classes", .classes = 4},
      {.name = "named_classes_averaged",
       .settings = "learner { averaged {} }",
       .named = true,
       .classes = 3,
       .weighs_rows = true},
      {.name = "class_weights", .settings = "learner { class_weights: [ 1, 3 ] }"},
      {.name = "drift", .drifts = true},
      {.name = "updates_alone", .detail = false},
      // Each row is an update.
      {.name = "logistic_regression_without_threshold",
       .settings = "learner { logistic_regression {} }",
       .evaluated_anywhere = false},
      // Only the writer can evaluate rows of these.
      {.name = "sample",
       .settings = "stored_examples { max_sample: 10 }",
       .evaluated_anywhere = false},
      {.name = "composition", .components = 6, .evaluated_anywhere = false},
      {.name = "batch_perceptron",
       .settings = "learner { batch_perceptron {} }",
       .evaluated_anywhere = false,
       .batches = true},
      {.name = "mini_batches",
       .settings = "learner { batch_perceptron { mini_batch: 64 } }",
       .evaluated_anywhere = false,
       .batches = true},
  };
}

std::string ComponentOf(int i) { return absl::StrCat("models/component-", i); }

v1::Model SettingsOf(const Rule& rule, const std::string& name) {
  auto settings = FromText<v1::Model>(rule.settings);
  settings.set_name(name);
  v1::FeatureSpace& space = *settings.mutable_feature_space();
  if (rule.named) {
    space.mutable_named();
  } else if (rule.texts) {
    space.mutable_text()->set_bits(12);
    space.mutable_text()->set_max_words(1);
  } else if (rule.components == 0) {
    space.mutable_dense()->set_dimension(kFeatures);
  }
  for (int i = 0; i < rule.components; ++i) {
    v1::FeatureSpace::Composition::Input& input = *space.mutable_composition()->add_inputs();
    input.set_model(ComponentOf(i));
    input.set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
  }
  if (rule.classes > 0) {
    v1::Classes& classes = *settings.mutable_learner()->mutable_classes();
    classes.set_max_classes(static_cast<uint32_t>(rule.classes));
    classes.set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  }
  return settings;
}

struct Row {
  std::vector<float> values;
  // A class, or -1 or +1.
  int label = 0;
};

// Rows of one teacher for all streams, of which a part has wrong labels.
class Teacher {
 public:
  Teacher(const Rule& rule, uint32_t seed, double wrong)
      : rule_(rule), random_(seed), wrong_(wrong), weights_(std::max(rule.classes, 2)) {
    std::mt19937 random(29);
    std::normal_distribution<float> normal;
    for (std::vector<float>& one : weights_) {
      for (int f = 0; f < kFeatures; ++f) one.push_back(normal(random));
    }
  }
  // `changed`: all labels are others.
  Row Next(bool changed) {
    std::normal_distribution<float> normal;
    Row row{std::vector<float>(kFeatures)};
    for (float& value : row.values) {
      if (random_() % 4 == 0) value = normal(random_);
      if (rule_.texts && value != 0) value = std::copysign(1.0F, value);
    }
    std::vector<float> scores;
    for (const std::vector<float>& one : weights_)
      scores.push_back(std::inner_product(one.begin(), one.end(), row.values.begin(), 0.0F));
    const auto classes = static_cast<int>(scores.size());
    int label = static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    if (changed) label = (label + 1) % classes;
    if (std::uniform_real_distribution<>()(random_) < wrong_) label = (label + 1) % classes;
    row.label = rule_.classes == 0 ? 2 * label - 1 : label;
    return row;
  }

 private:
  const Rule& rule_;
  std::mt19937 random_;
  const double wrong_;
  std::vector<std::vector<float>> weights_;
};

std::string TextOf(const Row& row) {
  std::string text;
  for (size_t f = 0; f < row.values.size(); ++f) {
    if (row.values[f] != 0) absl::StrAppend(&text, row.values[f] > 0 ? "Up" : "D\u00f6wn", f, ", ");
  }
  return text;
}

// The messages of one stream: invalid rows among them; a replay, a gap, a malformed message and one without rows; three
// passes.
class Messages {
 public:
  static constexpr int kMessages = 150;
  static constexpr int kRows = 40;

  explicit Messages(const Rule& rule) : rule_(rule), teacher_(rule, 17, 0.005) {
    for (int i = 0; i < kMessages; ++i) Add(i);
  }

  std::vector<v1::LearnStreamRequest> messages;

 private:
  void Add(int i) {
    v1::LearnStreamRequest message;
    v1::ExampleColumns& columns = *message.mutable_columns();
    if (rule_.named) columns.mutable_stream_names();
    for (int k = 0; k < rule_.classes; ++k) columns.add_label_names(absl::StrCat("class ", k));
    if (i != 80) {
      for (int row = 0; row < kRows; ++row)
        AddRow(teacher_.Next(rule_.drifts && i >= kMessages / 2), row == 7 && i % 10 == 3, columns);
    }
    // After a mark the rows are known data, in which no drift is sought.
    if (!rule_.drifts && i % 50 == 49) message.set_completed_pass(i / 50 + 1);
    rows_ += columns.labels_size();
    v1::LearnStreamRequest again = message;
    if (rule_.named) again.mutable_columns()->mutable_stream_names()->Clear();
    if (i == 60) {
      messages.push_back(again);
      messages.back().set_first_offset(rows_ + 1000);
    }
    if (i == 70) messages.emplace_back().mutable_columns()->add_labels(1);
    messages.push_back(message);
    if (i == 55) {
      messages.push_back(again);
      messages.back().set_first_offset(rows_ - kRows);
    }
  }
  void AddRow(const Row& row, bool invalid, v1::ExampleColumns& columns) {
    columns.add_labels(row.label);
    if (rule_.texts) {
      columns.add_texts(TextOf(row));
      return;
    }
    for (uint32_t f = 0; f < kFeatures; ++f) {
      if (row.values[f] == 0) continue;
      columns.add_indices(rule_.named ? NumberOf(f, columns) : f);
      columns.add_values(invalid ? INFINITY : row.values[f]);
    }
    columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  }
  // In the stream's table.
  uint32_t NumberOf(uint32_t feature, v1::ExampleColumns& columns) {
    const auto [found, is_new] =
        numbers_.try_emplace(feature, static_cast<uint32_t>(numbers_.size()));
    if (is_new)
      name_columns::AppendName(absl::StrCat("feature ", feature), *columns.mutable_stream_names());
    return found->second;
  }

  const Rule& rule_;
  Teacher teacher_;
  int64_t rows_ = 0;
  std::map<uint32_t, uint32_t> numbers_;
};

// Rows by themselves, so that each answer is of one, and any stream can send any of them.
std::vector<v1::LearnStreamRequest> SingleRows(const Rule& rule, uint32_t seed, double wrong) {
  constexpr int kRows = 120;
  Teacher teacher(rule, seed, wrong);
  std::vector<v1::LearnStreamRequest> messages(kRows);
  for (int i = 0; i < kRows; ++i) {
    const Row row = teacher.Next(rule.drifts && i >= kRows / 2);
    v1::Example& example = *messages[i].add_examples();
    if (rule.classes > 0) {
      example.set_label_name(absl::StrCat("class ", row.label));
    } else {
      example.set_label(row.label);
    }
    if (rule.texts) example.set_text(TextOf(row));
    for (uint32_t f = 0; !rule.texts && f < kFeatures; ++f) {
      if (row.values[f] == 0) continue;
      if (rule.named) {
        example.mutable_named()->add_names(absl::StrCat("feature ", f));
        example.mutable_named()->add_values(row.values[f]);
      } else {
        example.mutable_sparse()->add_indices(f);
        example.mutable_sparse()->add_values(row.values[f]);
      }
    }
  }
  return messages;
}

void SortDetails(google::rpc::Status* status) {
  std::sort(status->mutable_details()->begin(), status->mutable_details()->end(),
            [](const auto& one, const auto& other) { return one.type_url() < other.type_url(); });
}

// A server's answers to a whole stream, of which `window` messages at most have no answer.
std::vector<v1::LearnResult> LearnAll(Node& node, const std::string& model, const Rule& rule,
                                      const std::vector<v1::LearnStreamRequest>& messages,
                                      size_t window, const std::string& producer = "producer") {
  RowStream stream(node, model, producer);
  if (rule.named) stream.With("name_table_size: 64");
  if (!rule.detail) stream.With("result_detail: RESULT_DETAIL_UPDATES");
  EXPECT_EQ(stream.Open().next_offset(), 0);
  std::vector<v1::LearnResult> results;
  for (size_t sent = 0; results.size() < messages.size();) {
    for (; sent < std::min(messages.size(), results.size() + window); ++sent)
      stream.Send(messages[sent]);
    results.push_back(stream.Result());
    // In no particular order.
    for (v1::RowError& error : *results.back().mutable_row_errors())
      SortDetails(error.mutable_status());
    if (results.back().has_error()) SortDetails(results.back().mutable_error());
  }
  EXPECT_TRUE(stream.Finish().ok());
  return results;
}

void ExpectEqual(std::vector<v1::LearnResult> results, std::vector<v1::LearnResult> expected) {
  for (size_t i = 0; i < results.size(); ++i) {
    // Sums, which depend on what is added up first.
    if (expected[i].has_completed_pass()) {
      const v1::PassSummary& pass = expected[i].completed_pass();
      EXPECT_NEAR(results[i].completed_pass().loss(), pass.loss(), 1e-9 * pass.loss());
      EXPECT_NEAR(results[i].completed_pass().risk(), pass.risk(), 1e-9 * pass.risk());
      for (v1::LearnResult* result : {&results[i], &expected[i]}) {
        result->mutable_completed_pass()->clear_loss();
        result->mutable_completed_pass()->clear_risk();
      }
    }
    EXPECT_GT(results[i].epoch(), 0);
    // By bytes: a score may be NaN.
    ASSERT_EQ(results[i].SerializeAsString(), expected[i].SerializeAsString())
        << "message " << i << ": " << results[i].ShortDebugString() << "\nnot "
        << expected[i].ShortDebugString();
  }
}

class FollowedStreams : public ::testing::TestWithParam<Rule> {
 protected:
  FollowedStreams() {
    std::mt19937 random(11);
    std::normal_distribution<float> normal;
    for (int i = 0; i < rule_.components; ++i) {
      v1::Model component = DenseSettings(ComponentOf(i), kFeatures);
      v1::WeightVector& weights =
          *component.mutable_learner()->mutable_starting_weights()->add_vectors();
      for (uint32_t f = 0; f < kFeatures; ++f) {
        weights.add_indices(f);
        weights.add_values(normal(random));
      }
      nodes_.writer().Create(component);
    }
  }
  std::string Create(const std::string& id) {
    const std::string name = "models/" + id;
    nodes_.follower().Create(SettingsOf(rule_, name));
    return name;
  }
  v1::Model Get(Node& node, const std::string& name) {
    return node.Get(name, rule_.weights ? v1::MODEL_VIEW_WEIGHTS : v1::MODEL_VIEW_UNSPECIFIED);
  }

  const Rule& rule_ = GetParam();
  Nodes nodes_{3};
};

TEST_P(FollowedStreams, AreAnsweredAsByTheWriter) {
  const std::vector<v1::LearnStreamRequest> messages = Messages(rule_).messages;
  const std::string reference = Create("reference");
  const std::vector<v1::LearnResult> expected =
      LearnAll(nodes_.writer(), reference, rule_, messages, messages.size());
  const v1::Model one = Get(nodes_.writer(), reference);
  EXPECT_EQ(one.report().drift().detections() > 0, rule_.drifts);
  Node& follower = nodes_.follower();
  // One message at a time is evaluated wherever it can be; a stream that is ahead of its answers forwards more.
  for (const size_t window : {size_t{1}, size_t{20}}) {
    const std::string name = Create(absl::StrCat("m", window));
    const uint64_t before = follower.fleet->rows().first;
    ExpectEqual(LearnAll(follower, name, rule_, messages, window), expected);
    const uint64_t evaluated = follower.fleet->rows().first - before;
    if (!rule_.evaluated_anywhere) {
      EXPECT_EQ(evaluated, 0U);
    } else if (window == 1) {
      EXPECT_GT(evaluated, 0U);
    }
    const v1::Model there = Get(follower, name);
    EXPECT_EQ(there.weights().SerializeAsString(), one.weights().SerializeAsString());
    EXPECT_EQ(there.revision(), one.revision());
    EXPECT_EQ(there.report().examples(), one.report().examples());
    EXPECT_LE(there.report().examples_elsewhere(), evaluated);
    EXPECT_EQ(there.report().examples_elsewhere() > 0, evaluated > 0);
    EXPECT_EQ(there.report().mistakes(), one.report().mistakes());
    EXPECT_EQ(there.report().duplicates(), one.report().duplicates());
    EXPECT_EQ(there.report().streak(), one.report().streak());
    EXPECT_EQ(there.report().radius(), one.report().radius());
    EXPECT_NEAR(there.report().mean_loss(), one.report().mean_loss(), 1e-9);
    EXPECT_EQ(there.report().drift().SerializeAsString(), one.report().drift().SerializeAsString());
    EXPECT_EQ(there.stored_examples().updates(), one.stored_examples().updates());
    EXPECT_EQ(there.stored_examples().sample(), one.stored_examples().sample());
  }
}

// The answers to streams at all servers say where each row belongs: the update that made a revision, then the rows that
// were evaluated on it. In that order one server gives the same answers.
TEST_P(FollowedStreams, OfAllServersAreOneRunOfTheRule) {
  if (rule_.batches) return;
  // Labels that are wrong, and messages without an answer. Above an eighth a stream forwards without waiting.
  constexpr std::pair<double, size_t> kKinds[] = {{0.01, 1}, {0.01, 20}, {0.25, 5}};
  using Answered = std::pair<v1::LearnStreamRequest, v1::LearnResult>;
  const std::string name = Create("m");
  std::vector<std::vector<Answered>> streams(nodes_.all().size() * std::size(kKinds));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < streams.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto& [wrong, window] = kKinds[i / nodes_.all().size()];
      const auto rows = SingleRows(rule_, static_cast<uint32_t>(i), wrong);
      const auto results = LearnAll(*nodes_.all()[i % nodes_.all().size()], name, rule_, rows,
                                    window, absl::StrCat("p", i));
      for (size_t row = 0; row < rows.size(); ++row)
        streams[i].emplace_back(rows[row], results[row]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& node : nodes_.all()) {
    EXPECT_EQ(node->fleet->rows().first > 0,
              rule_.evaluated_anywhere && node.get() != &nodes_.writer());
  }
  std::vector<Answered> history;
  for (const std::vector<Answered>& stream : streams) {
    // A stream in strict order never sees an older state than before.
    EXPECT_TRUE(
        std::is_sorted(stream.begin(), stream.end(), [](const auto& one, const auto& other) {
          return one.second.revision() < other.second.revision();
        }));
    history.insert(history.end(), stream.begin(), stream.end());
  }
  std::stable_sort(history.begin(), history.end(), [](const auto& one, const auto& other) {
    return std::pair(one.second.revision(), one.second.updates() == 0) <
           std::pair(other.second.revision(), other.second.updates() == 0);
  });
  std::vector<v1::LearnStreamRequest> rows;
  for (const Answered& row : history) rows.push_back(row.first);
  const std::string again = Create("again");
  const std::vector<v1::LearnResult> replayed =
      LearnAll(nodes_.writer(), again, rule_, rows, rows.size());
  for (size_t i = 0; i < history.size(); ++i) {
    v1::LearnResult before = history[i].second;
    v1::LearnResult after = replayed[i];
    // These depend on the stream that the row came on.
    for (v1::LearnResult* result : {&before, &after}) {
      result->clear_message_number();
      result->clear_acknowledged_offset();
    }
    ASSERT_EQ(before.SerializeAsString(), after.SerializeAsString())
        << "row " << i << ": " << before.ShortDebugString() << "\nnot " << after.ShortDebugString();
  }
  const v1::Model many = Get(nodes_.writer(), name);
  const v1::Model one = Get(nodes_.writer(), again);
  EXPECT_EQ(many.revision(), one.revision());
  EXPECT_GT(one.revision(), 20);
  if (!rule_.weighs_rows) {
    EXPECT_EQ(many.weights().SerializeAsString(), one.weights().SerializeAsString());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, FollowedStreams, ::testing::ValuesIn(Rules()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond::followed_streams_test
