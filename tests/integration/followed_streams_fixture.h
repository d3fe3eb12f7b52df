// The servers of a fleet, one by itself, and streams to learn from with any rule.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "tests/integration/fixture.h"
#include "tests/support/names.h"
#include "tests/support/nats_cluster.h"
#include "tests/support/own_port.h"

namespace perceptrond::testing {

inline constexpr absl::Duration kLong = absl::Seconds(60);
inline constexpr int kFeatures = 30;
inline constexpr int kRows = 40;
inline constexpr int kMessages = 150;
inline constexpr int kPartitions = 8;
// A server that is not heard of for this time is taken for dead: longer than a busy machine stands still.
inline constexpr char kFleetTimeout[] = "4s";
// Without a take-over for this time, none follows: a new server waits 1.5 times that long for its share.
inline constexpr absl::Duration kQuiet = absl::Seconds(7);

// A server, and what is called on it.
struct Member {
  explicit Member(const std::string& data, std::vector<std::string> flags)
      : process(data, std::move(flags)),
        channel(grpc::CreateChannel(process.address(), grpc::InsecureChannelCredentials())),
        models(v1::ModelService::NewStub(channel)),
        learning(v1::LearningService::NewStub(channel)),
        predictions(v1::PredictionService::NewStub(channel)) {}

  grpc::Status Create(const std::string& id, const v1::Model& settings) {
    grpc::ClientContext context;
    v1::CreateModelRequest request;
    request.set_model_id(id);
    *request.mutable_model() = settings;
    v1::Model created;
    return models->CreateModel(&context, request, &created);
  }
  v1::Model Get(const std::string& id, v1::ModelView view = v1::MODEL_VIEW_UNSPECIFIED) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    request.set_view(view);
    v1::Model model;
    const grpc::Status status = models->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }
  // The value of a metric, as it is written; NaN if there is none.
  double Metric(const std::string& sample) const {
    const CommandResult page =
        RunCommand(absl::StrCat("curl -sf http://127.0.0.1:", process.metrics_port(), "/metrics"));
    std::istringstream lines(page.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(sample + " ", 0) == 0)
        return std::strtod(line.c_str() + sample.size(), nullptr);
    }
    return NAN;
  }

  ServerProcess process;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::LearningService::Stub> learning;
  std::unique_ptr<v1::PredictionService::Stub> predictions;
};

// Waits until the servers, which are Members or like them, have shared the partitions out: the first had all of them and
// hands some over to the others, at about the same time.
template <typename Servers>
void AwaitShares(const Servers& servers, int partitions) {
  const auto of = [](const auto& server, const char* metric) {
    if constexpr (requires { server->Metric(metric); }) {
      return server->Metric(metric);
    } else {
      return server.Metric(metric);
    }
  };
  double take_overs = 0;
  const absl::Time end = absl::Now() + kLong;
  for (absl::Time since = absl::Now(); absl::Now() < end && absl::Now() < since + kQuiet;) {
    double written = 0;
    double now = 0;
    bool known = true;
    for (const auto& server : servers) {
      written += of(server, "perceptrond_fleet_partitions_written");
      now += of(server, "perceptrond_fleet_take_overs_total");
      known &= of(server, "perceptrond_fleet_servers") == static_cast<double>(servers.size());
    }
    if (now != take_overs || written != partitions || !known) since = absl::Now();
    take_overs = now;
  }
}

inline constexpr char kEvaluatedHere[] = "perceptrond_fleet_rows_total{evaluated=\"here\"}";
inline constexpr char kEvaluatedByWriter[] = "perceptrond_fleet_rows_total{evaluated=\"writer\"}";

// The servers of a fleet, which keeps its journal on all nats-servers, and one by itself.
class Servers {
 public:
  Servers(int members, int nats, std::string timeout = kFleetTimeout)
      : nats_(nats),
        timeout_(std::move(timeout)),
        alone_(dir_.path() + "/alone", {"--journal", "memory"}) {
    for (int i = 0; i < members; ++i)
      members_.emplace_back(absl::StrCat(dir_.path(), "/", i), Flags());
    AwaitShares(members_, kPartitions);
  }

  Member& alone() { return alone_; }
  std::vector<Member>& members() { return members_; }
  void CreateInFleet(const std::string& id, const v1::Model& settings) {
    const grpc::Status created = members_[0].Create(id, settings);
    ASSERT_TRUE(created.ok()) << created.error_message();
  }
  // Which of them writes the model, and one that does not. Waits until one does, and the others know it.
  Member& WriterOf(const std::string& id) { return members_[FindWriter(id)]; }
  Member& FollowerOf(const std::string& id) {
    return members_[(FindWriter(id) + 1) % members_.size()];
  }

 private:
  std::vector<std::string> Flags() const {
    return {"--journal",          absl::StrJoin(nats_.urls(), ","),
            "--fleet-replicas",   absl::StrCat(nats_.size()),
            "--fleet-partitions", absl::StrCat(kPartitions),
            "--fleet-timeout",    timeout_,
            "--fleet-address",    absl::StrCat("127.0.0.1:", OwnPort())};
  }
  size_t FindWriter(const std::string& id) {
    const std::string written = absl::StrCat("perceptrond_model_written{model_name=\"", id, "\"}");
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      for (Member& member : members_) (void)member.Get(id);
      for (size_t i = 0; i < members_.size(); ++i) {
        if (members_[i].Metric(written) == 1) return i;
      }
    }
    ADD_FAILURE() << id << " has no writer";
    return 0;
  }

  const TempDir dir_;
  const NatsCluster nats_;
  const std::string timeout_;
  Member alone_;
  std::vector<Member> members_;
};

struct Rule {
  std::string name;
  std::function<void(v1::Model&)> set;
  // Features by name, numbered by a table of the stream's.
  bool named = false;
  // Texts instead of vectors.
  bool texts = false;
  // Classes, each introduced by its name; 0: two labels.
  int classes = 0;
  bool detail = true;
  v1::StreamOrder order = v1::STREAM_ORDER_UNSPECIFIED;
  // It has a weight vector.
  bool weights = true;
  // A copy can evaluate its rows.
  bool evaluated_anywhere = true;
  // The models of which it is a composition: perceptrons of fixed weights. CreateComponents makes them.
  int components = 0;
  // In the middle of each stream all labels change.
  bool drifts = false;
};

inline void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

inline std::string ComponentOf(const Rule& rule, int i) {
  return absl::StrCat(rule.name, "-component-", i);
}

// Creates what a composition is made of, on this server and those that are of one fleet with it.
inline void CreateComponents(Member& member, const Rule& rule) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  for (int i = 0; i < rule.components; ++i) {
    v1::Model component;
    component.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
    v1::WeightVector& weights =
        *component.mutable_learner()->mutable_starting_weights()->add_vectors();
    for (uint32_t f = 0; f < kFeatures; ++f) {
      weights.add_indices(f);
      weights.add_values(normal(random));
    }
    const grpc::Status created = member.Create(ComponentOf(rule, i), component);
    ASSERT_TRUE(created.ok()) << created.error_message();
  }
}

inline v1::Model SettingsOf(const Rule& rule) {
  v1::Model settings;
  if (rule.components > 0) {
    for (int i = 0; i < rule.components; ++i) {
      v1::FeatureSpace::Composition::Input& input =
          *settings.mutable_feature_space()->mutable_composition()->add_inputs();
      input.set_model("models/" + ComponentOf(rule, i));
      input.set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
    }
  } else if (rule.named) {
    settings.mutable_feature_space()->mutable_named();
  } else if (rule.texts) {
    settings.mutable_feature_space()->mutable_text()->set_bits(12);
    settings.mutable_feature_space()->mutable_text()->set_max_words(1);
  } else {
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
  }
  if (rule.classes > 0) {
    v1::Classes& classes = *settings.mutable_learner()->mutable_classes();
    classes.set_max_classes(static_cast<uint32_t>(rule.classes));
    classes.set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  }
  rule.set(settings);
  return settings;
}

// The messages of one stream: rows of a teacher with one wrong label in 200, invalid ones among them; a replay, a gap, a
// malformed message and one without rows; three passes.
class Messages {
 public:
  explicit Messages(const Rule& rule) : rule_(rule), numbers_(kFeatures, -1) {
    std::normal_distribution<float> normal;
    const size_t vectors = rule.classes == 0 ? 1 : static_cast<size_t>(rule.classes);
    teacher_.resize(vectors * kFeatures);
    for (float& weight : teacher_) weight = normal(random_);
    for (int i = 0; i < kMessages; ++i) Add(i);
  }

  std::vector<v1::LearnStreamRequest> messages;
  int64_t rows = 0;

 private:
  void Add(int i) {
    v1::LearnStreamRequest message;
    v1::ExampleColumns& columns = *message.mutable_columns();
    if (rule_.named) columns.mutable_stream_names();
    if (rule_.classes > 0) {
      for (int k = 0; k < rule_.classes; ++k) columns.add_label_names(absl::StrCat("class ", k));
    }
    if (i != 80) {
      for (int row = 0; row < kRows; ++row) AddRow(columns, row == 7 && i % 10 == 3);
    }
    if (i % 50 == 49) message.set_completed_pass(i / 50 + 1);
    rows += columns.labels_size();
    if (i == 60) {
      v1::LearnStreamRequest gap = message;
      gap.mutable_columns()->clear_stream_names();
      if (rule_.named) gap.mutable_columns()->mutable_stream_names();
      gap.set_first_offset(rows + 1000);
      messages.push_back(gap);
    }
    if (i == 70) messages.emplace_back().mutable_columns()->add_labels(1);
    messages.push_back(message);
    if (i == 55) {
      messages.push_back(message);
      messages.back().set_first_offset(rows - kRows);
      messages.back().mutable_columns()->clear_stream_names();
      if (rule_.named) messages.back().mutable_columns()->mutable_stream_names();
    }
  }

  void AddRow(v1::ExampleColumns& columns, bool invalid) {
    std::normal_distribution<float> normal;
    std::vector<float> values(kFeatures);
    for (int f = 0; f < kFeatures; ++f) {
      if (random_() % 4 == 0) values[static_cast<size_t>(f)] = normal(random_);
    }
    const bool changed = rule_.drifts && messages.size() >= kMessages / 2;
    if (rule_.texts) {
      for (float& value : values) value = value == 0 ? 0 : std::copysign(1.0F, value);
    }
    columns.add_labels(changed ? -LabelOf(values) : LabelOf(values));
    if (rule_.texts) return AddText(values, columns);
    for (uint32_t f = 0; f < kFeatures; ++f) {
      if (values[f] == 0) continue;
      columns.add_indices(rule_.named ? NumberOf(f, columns) : f);
      columns.add_values(invalid ? INFINITY : values[f]);
    }
    columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  }

  static void AddText(const std::vector<float>& values, v1::ExampleColumns& columns) {
    std::string& text = *columns.add_texts();
    for (size_t f = 0; f < values.size(); ++f) {
      if (values[f] != 0) absl::StrAppend(&text, values[f] > 0 ? "Up" : "D\u00f6wn", f, ", ");
    }
  }

  uint32_t NumberOf(uint32_t feature, v1::ExampleColumns& columns) {
    int& number = numbers_[feature];
    if (number < 0) {
      number = names_++;
      name_columns::AppendName(absl::StrCat("feature ", feature), *columns.mutable_stream_names());
    }
    return static_cast<uint32_t>(number);
  }

  int32_t LabelOf(const std::vector<float>& values) {
    const bool wrong = random_() % 200 == 0;
    std::vector<float> scores;
    for (size_t begin = 0; begin < teacher_.size(); begin += kFeatures) {
      float score = 0;
      for (size_t f = 0; f < kFeatures; ++f) score += teacher_[begin + f] * values[f];
      scores.push_back(score);
    }
    if (rule_.classes == 0) return (scores[0] > 0) == wrong ? -1 : 1;
    const auto best = std::max_element(scores.begin(), scores.end()) - scores.begin();
    return static_cast<int32_t>(wrong ? (best + 1) % rule_.classes : best);
  }

  const Rule& rule_;
  std::mt19937 random_{17};
  std::vector<float> teacher_;
  // By feature, in the stream's table.
  std::vector<int> numbers_;
  int names_ = 0;
};

inline void SortDetails(google::rpc::Status* status) {
  std::sort(status->mutable_details()->begin(), status->mutable_details()->end(),
            [](const google::protobuf::Any& one, const google::protobuf::Any& other) {
              return one.type_url() < other.type_url();
            });
}

// What a server answers to a whole stream, of which `window` messages at most have no answer.
inline std::vector<v1::LearnResult> Learn(Member& member, const std::string& id, const Rule& rule,
                                          const std::vector<v1::LearnStreamRequest>& messages,
                                          size_t window, const std::string& producer = "producer") {
  RawLearnStream stream(*member.learning, id, producer);
  if (rule.named) stream.first().set_name_table_size(64);
  if (!rule.detail) stream.first().set_result_detail(v1::RESULT_DETAIL_UPDATES);
  stream.first().set_order(rule.order);
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

class FollowedStreams : public ::testing::TestWithParam<Rule> {
 protected:
  static Servers& servers() {
    static Servers servers(2, 1);
    return servers;
  }
};

}  // namespace perceptrond::testing
