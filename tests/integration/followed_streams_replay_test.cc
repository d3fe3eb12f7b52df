// What a fleet answered to streams at all of its servers, replayed on one server in the order of the
// log: each row belongs at the revision that its answer names, and has the same answer there.
#include "tests/integration/followed_rules.h"
#include "tests/integration/followed_streams_fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kServers = 3;
constexpr int kStreamRows = 300;

// Each server has one of each kind.
struct StreamKind {
  // The part of its labels that are wrong. Above an eighth a stream forwards without waiting.
  double wrong = 0;
  // Messages without an answer.
  size_t window = 0;
};
constexpr StreamKind kKinds[] = {{0.01, 1}, {0.01, 20}, {0.25, 5}};

// Rows of one teacher for all streams, one a message, so that each answer is of one row.
std::vector<v1::LearnStreamRequest> MakeRows(const Rule& rule, uint32_t seed, double wrong) {
  std::mt19937 teacher(29);
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_real_distribution<> uniform;
  const int classes = std::max(rule.classes, 2);
  std::vector<std::vector<float>> weights(static_cast<size_t>(classes));
  for (std::vector<float>& one : weights) {
    for (int f = 0; f < kFeatures; ++f) one.push_back(normal(teacher));
  }
  std::vector<v1::LearnStreamRequest> messages(kStreamRows);
  for (v1::LearnStreamRequest& message : messages) {
    v1::Example& example = *message.add_examples();
    std::vector<float> scores(weights.size());
    for (int f = 0; f < kFeatures; ++f) {
      if (random() % 3 != 0) continue;
      const float value = normal(random);
      if (rule.named) {
        example.mutable_named()->add_names(absl::StrCat("feature ", f));
        example.mutable_named()->add_values(value);
      } else {
        example.mutable_sparse()->add_indices(static_cast<uint32_t>(f));
        example.mutable_sparse()->add_values(value);
      }
      for (size_t k = 0; k < scores.size(); ++k)
        scores[k] += weights[k][static_cast<size_t>(f)] * value;
    }
    auto label = static_cast<int>(std::max_element(scores.begin(), scores.end()) - scores.begin());
    if (rule.drifts && &message - messages.data() >= kStreamRows / 2) label = (label + 1) % classes;
    if (uniform(random) < wrong) label = (label + 1) % classes;
    if (rule.classes > 0) {
      example.set_label_name(absl::StrCat("class ", label));
    } else {
      example.set_label(label == 0 ? -1 : 1);
    }
  }
  return messages;
}

struct Answered {
  v1::LearnStreamRequest message;
  v1::LearnResult result;
};

// Streams at all servers at once, by thread, and what each was answered.
std::vector<std::vector<Answered>> LearnEverywhere(Servers& servers, const std::string& id,
                                                   const Rule& rule) {
  std::vector<std::vector<Answered>> streams(kServers * std::size(kKinds));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < streams.size(); ++i) {
    threads.emplace_back([&, i] {
      const StreamKind& kind = kKinds[i / kServers];
      const std::vector<v1::LearnStreamRequest> rows =
          MakeRows(rule, static_cast<uint32_t>(i), kind.wrong);
      const std::vector<v1::LearnResult> results =
          Learn(servers.members()[i % kServers], id, rule, rows, kind.window, absl::StrCat("p", i));
      for (size_t row = 0; row < rows.size(); ++row)
        streams[i].push_back({rows[row], results[row]});
    });
  }
  for (std::thread& thread : threads) thread.join();
  return streams;
}

// In the order of the log: the update that made a revision, then the rows that were evaluated on it.
std::vector<Answered> Sort(const std::vector<std::vector<Answered>>& streams) {
  std::vector<Answered> all;
  for (const std::vector<Answered>& stream : streams)
    all.insert(all.end(), stream.begin(), stream.end());
  std::stable_sort(all.begin(), all.end(), [](const Answered& one, const Answered& other) {
    return std::pair(one.result.revision(), one.result.updates() == 0) <
           std::pair(other.result.revision(), other.result.updates() == 0);
  });
  return all;
}

// Of an answer what does not depend on the stream that the row came on.
std::string AnswerOf(v1::LearnResult result) {
  result.clear_message_number();
  result.clear_acknowledged_offset();
  // A server by itself has no writers.
  result.clear_epoch();
  return result.SerializeAsString();
}

class FleetReplay : public FollowedStreams {
 protected:
  static Servers& fleet() {
    static Servers fleet(kServers, kServers);
    return fleet;
  }
};

TEST_P(FleetReplay, OnOneServerInTheOrderOfTheLogGivesTheSameAnswersRowByRow) {
  const Rule& rule = GetParam();
  const std::string id = absl::StrCat(rule.name, "-replayed");
  CreateComponents(fleet().members()[0], rule);
  CreateComponents(fleet().alone(), rule);
  fleet().CreateInFleet(id, SettingsOf(rule));
  Member& writer = fleet().WriterOf(id);
  std::vector<double> before;
  for (const Member& member : fleet().members()) before.push_back(member.Metric(kEvaluatedHere));
  const std::vector<std::vector<Answered>> streams = LearnEverywhere(fleet(), id, rule);
  for (size_t i = 0; i < kServers; ++i) {
    const Member& member = fleet().members()[i];
    EXPECT_EQ(member.Metric(kEvaluatedHere) - before[i] > 0,
              rule.evaluated_anywhere && &member != &writer);
  }
  for (const std::vector<Answered>& stream : streams) {
    // A stream in strict order never sees an older state than before.
    EXPECT_TRUE(
        std::is_sorted(stream.begin(), stream.end(), [](const auto& one, const auto& other) {
          return one.result.revision() < other.result.revision();
        }));
  }
  const std::vector<Answered> history = Sort(streams);
  std::vector<v1::LearnStreamRequest> messages;
  for (const Answered& row : history) messages.push_back(row.message);

  Member& alone = fleet().alone();
  ASSERT_TRUE(alone.Create(id, SettingsOf(rule)).ok());
  const std::vector<v1::LearnResult> replayed = Learn(alone, id, rule, messages, 100);
  for (size_t i = 0; i < history.size(); ++i) {
    ASSERT_EQ(AnswerOf(history[i].result), AnswerOf(replayed[i]))
        << "row " << i << ": " << history[i].result.ShortDebugString() << "\nnot "
        << replayed[i].ShortDebugString();
  }
  const v1::ModelView view = rule.weights ? v1::MODEL_VIEW_WEIGHTS : v1::MODEL_VIEW_UNSPECIFIED;
  const v1::Model one = alone.Get(id, view);
  const v1::Model many = writer.Get(id, view);
  EXPECT_EQ(many.revision(), one.revision());
  EXPECT_GT(one.revision(), kStreamRows / 10);
  EXPECT_EQ(many.weights().SerializeAsString(), one.weights().SerializeAsString());
}

std::vector<Rule> ReplayedRules() {
  std::vector<Rule> rules = LearnerRules();
  // Weights for predictions that are a mean over the examples, or of the longest run of correct ones,
  // which the writer counts when it hears of them, are not compared. Rows that are learned are
  // evaluated on the other weights.
  for (Rule& rule : rules) rule.weights &= rule.name != "averaged" && rule.name != "pocket";
  rules.push_back({.name = "named_classes", .set = [](v1::Model&) {}, .named = true, .classes = 4});
  return rules;
}

INSTANTIATE_TEST_SUITE_P(Rules, FleetReplay, ::testing::ValuesIn(ReplayedRules()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond::testing
