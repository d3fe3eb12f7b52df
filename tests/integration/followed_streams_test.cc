// Streams to a server of a fleet that does not write their model: its answers are those of one server, and the writer
// counts what was evaluated elsewhere.
#include "tests/integration/followed_rules.h"
#include "tests/integration/followed_streams_fixture.h"

namespace perceptrond::testing {
namespace {

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
    // A server by itself has no writers.
    EXPECT_GT(results[i].epoch(), 0);
    results[i].clear_epoch();
    // By bytes: a score may be NaN.
    ASSERT_EQ(results[i].SerializeAsString(), expected[i].SerializeAsString())
        << "message " << i << ": " << results[i].ShortDebugString() << "\nnot "
        << expected[i].ShortDebugString();
  }
}

TEST_P(FollowedStreams, AreAnsweredAsByOneServer) {
  const Rule& rule = GetParam();
  const Messages all(rule);
  CreateComponents(servers().alone(), rule);
  CreateComponents(servers().members()[0], rule);
  ASSERT_TRUE(servers().alone().Create(rule.name, SettingsOf(rule)).ok());
  const std::vector<v1::LearnResult> expected =
      Learn(servers().alone(), rule.name, rule, all.messages, all.messages.size());
  const v1::ModelView view = rule.weights ? v1::MODEL_VIEW_WEIGHTS : v1::MODEL_VIEW_UNSPECIFIED;
  const v1::Model one = servers().alone().Get(rule.name, view);
  // One message at a time is evaluated wherever it can be; a stream that is ahead of its answers forwards more.
  for (const size_t window : {size_t{1}, size_t{5}, all.messages.size()}) {
    const std::string id = absl::StrCat(rule.name, "-", window);
    servers().CreateInFleet(id, SettingsOf(rule));
    Member& follower = servers().FollowerOf(id);
    const double before = follower.Metric(kEvaluatedHere);
    ExpectEqual(Learn(follower, id, rule, all.messages, window), expected);
    const double evaluated = follower.Metric(kEvaluatedHere) - before;
    if (!rule.evaluated_anywhere) {
      EXPECT_EQ(evaluated, 0);
    } else if (window == 1) {
      EXPECT_GT(evaluated, 0);
    }
    const v1::Model there = follower.Get(id, view);
    EXPECT_EQ(there.weights().SerializeAsString(), one.weights().SerializeAsString());
    EXPECT_EQ(there.revision(), one.revision());
    EXPECT_EQ(there.report().examples(), one.report().examples());
    EXPECT_LE(static_cast<double>(there.report().examples_elsewhere()), evaluated);
    EXPECT_EQ(there.report().examples_elsewhere() > 0, evaluated > 0);
    EXPECT_EQ(there.report().mistakes(), one.report().mistakes());
    EXPECT_EQ(there.report().duplicates(), one.report().duplicates());
    EXPECT_EQ(there.report().streak(), one.report().streak());
    EXPECT_EQ(there.report().radius(), one.report().radius());
    EXPECT_NEAR(there.report().mean_loss(), one.report().mean_loss(), 1e-9);
    EXPECT_EQ(there.report().drift().SerializeAsString(), one.report().drift().SerializeAsString());
    EXPECT_EQ(there.report().drift().detections() > 0, rule.drifts);
    EXPECT_EQ(there.stored_examples().updates(), one.stored_examples().updates());
    EXPECT_EQ(there.stored_examples().sample(), one.stored_examples().sample());
  }
}

// Every rule of the catalogue, and what else a model may have.
std::vector<Rule> Rules() {
  std::vector<Rule> rules = LearnerRules();
  const std::vector<Rule> others = {
      {.name = "updates_alone", .set = [](v1::Model&) {}, .detail = false},
      {.name = "texts", .set = [](v1::Model&) {}, .texts = true},
      {.name = "classes", .set = [](v1::Model&) {}, .classes = 4},
      {.name = "named_classes_averaged",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_averaged(); },
       .named = true,
       .classes = 3},
      {.name = "class_weights",
       .set =
           [](v1::Model& model) {
             model.mutable_learner()->add_class_weights(1);
             model.mutable_learner()->add_class_weights(3);
           }},
      // What the writer alone can do. The examples of a batch have an order, which answers do not tell
      // of streams at several servers.
      {.name = "batch_perceptron",
       .set = [](v1::Model& model) { model.mutable_learner()->mutable_batch_perceptron(); },
       .evaluated_anywhere = false},
      {.name = "mini_batches",
       .set =
           [](v1::Model& model) {
             model.mutable_learner()->mutable_batch_perceptron()->set_mini_batch(64);
           },
       .evaluated_anywhere = false},
  };
  rules.insert(rules.end(), others.begin(), others.end());
  return rules;
}

INSTANTIATE_TEST_SUITE_P(Rules, FollowedStreams, ::testing::ValuesIn(Rules()),
                         [](const auto& info) { return info.param.name; });

using FollowedStreamsTest = FollowedStreams;

TEST_F(FollowedStreamsTest, InRelaxedOrderEveryRowIsCountedOnce) {
  const Rule rule{.name = "relaxed", .set = [](v1::Model&) {}, .order = v1::STREAM_ORDER_RELAXED};
  servers().CreateInFleet("relaxed", SettingsOf(rule));
  Member& follower = servers().FollowerOf("relaxed");
  const Messages all(rule);
  uint64_t examples = 0;
  uint64_t updates = 0;
  uint64_t duplicates = 0;
  for (const v1::LearnResult& result : Learn(follower, "relaxed", rule, all.messages, 5)) {
    examples += result.examples();
    updates += result.updates();
    duplicates += result.duplicates();
  }
  const v1::Model model = follower.Get("relaxed");
  EXPECT_EQ(model.report().examples(), examples);
  EXPECT_EQ(model.report().updates(), updates);
  EXPECT_EQ(duplicates, kRows);
  EXPECT_EQ(static_cast<int64_t>(examples) + model.report().row_errors().at("NON_FINITE_VALUE"),
            all.rows);
}

TEST_F(FollowedStreamsTest, TheWriterKnowsOfRowsEvaluatedElsewhereWhileTheirStreamIsIdle) {
  const Rule rule{.name = "idle", .set = [](v1::Model&) {}};
  servers().CreateInFleet("idle", SettingsOf(rule));
  Member& follower = servers().FollowerOf("idle");
  Member& writer = servers().WriterOf("idle");
  RawLearnStream stream(*follower.learning, "idle", "producer");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(stream.Ask(request).updates(), 1U);
  uint64_t rows = 1;
  const auto ask = [&] {
    EXPECT_EQ(stream.Ask(request).updates(), 0U);
    ++rows;
  };
  // Rows are forwarded until the follower's copy has the update.
  const double first = follower.Metric(kEvaluatedHere);
  double before = first;
  for (const absl::Time end = absl::Now() + kLong; before == first && absl::Now() < end;) {
    ask();
    before = follower.Metric(kEvaluatedHere);
  }
  for (int i = 0; i < 10; ++i) ask();
  EXPECT_EQ(follower.Metric(kEvaluatedHere) - before, 10);
  uint64_t examples = 0;
  for (const absl::Time end = absl::Now() + kLong; examples < rows && absl::Now() < end;)
    examples = writer.Get("idle").report().examples();
  EXPECT_EQ(examples, rows);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FollowedStreamsTest, AProducersNewerStreamEndsItsOlderOneOnAnotherServer) {
  const Rule rule{.name = "superseded", .set = [](v1::Model&) {}};
  servers().CreateInFleet("superseded", SettingsOf(rule));
  RawLearnStream older(*servers().FollowerOf("superseded").learning, "superseded", "producer");
  older.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(older.Ask(request).updates(), 1U);
  EXPECT_EQ(older.Ask(request).updates(), 0U);
  RawLearnStream newer(*servers().WriterOf("superseded").learning, "superseded", "producer");
  const int64_t next = newer.Open().next_offset();
  // The second row may not have been counted yet.
  EXPECT_THAT(next, ::testing::AnyOf(1, 2));
  // Ends while the client could still send; a stream that its client ends first may end without error.
  EXPECT_FALSE(older.Read());
  const grpc::Status ended = older.Finish();
  EXPECT_EQ(ended.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(ended), "PRODUCER_SUPERSEDED");
  request.set_first_offset(next);
  EXPECT_EQ(newer.Ask(request).acknowledged_offset(), next);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(FollowedStreamsTest, AStreamThatIsMostlyForwardedGoesOnAtTheWriterIfItsClientKnowsThat) {
  constexpr int kNoise = 200'000;
  const Rule rule{.name = "preferred", .set = [](v1::Model&) {}};
  servers().CreateInFleet("preferred", SettingsOf(rule));
  Member& follower = servers().FollowerOf("preferred");
  Member& writer = servers().WriterOf("preferred");
  std::minstd_rand random;
  std::string rows;
  for (int i = 0; i < kNoise; ++i) rows += random() % 2 == 0 ? "1 1:1\n" : "-1 1:1\n";
  const auto learn = [&](const std::string& servers, int first) {
    const double before = follower.Metric(kEvaluatedByWriter);
    const CommandResult learned = RunCommand(
        absl::StrCat(
            PERCEPTRONCTL_BINARY, " --server ", servers,
            " -o json learn preferred - --format svmlight --index-base 1 --batch 100 --producer p"
            " --start-offset ",
            first, " 2>&1"),
        rows);
    EXPECT_EQ(learned.exit_code, 0) << learned.out;
    EXPECT_EQ(writer.Get("preferred").report().examples(), static_cast<uint64_t>(first + kNoise));
    return follower.Metric(kEvaluatedByWriter) - before;
  };
  EXPECT_LT(learn(absl::StrCat(follower.process.address(), ",", writer.process.address()), 0),
            kNoise / 2);
  // A client of one server stays there.
  EXPECT_GT(learn(follower.process.address(), kNoise), kNoise / 2);
}

TEST_F(FollowedStreamsTest, AListSaysWhenTheStateOfAModelThatAnotherServerWritesWasSo) {
  const Rule rule{.name = "aged", .set = [](v1::Model&) {}};
  servers().CreateInFleet("aged", SettingsOf(rule));
  const auto listed = [](Member& member) {
    grpc::ClientContext context;
    v1::ListModelsRequest request;
    request.set_page_size(1000);
    v1::ListModelsResponse response;
    EXPECT_TRUE(member.models->ListModels(&context, request, &response).ok());
    const auto found =
        std::find_if(response.models().begin(), response.models().end(),
                     [](const v1::Model& model) { return model.name() == "models/aged"; });
    return found == response.models().end() ? v1::Model() : *found;
  };
  EXPECT_FALSE(listed(servers().WriterOf("aged")).has_stale_since());
  const v1::Model model = listed(servers().FollowerOf("aged"));
  ASSERT_TRUE(model.has_stale_since());
  const absl::Duration age = absl::Now() - absl::FromUnixSeconds(model.stale_since().seconds());
  EXPECT_GE(age, absl::ZeroDuration());
  EXPECT_LT(age, kLong);
  // What is asked of one model is relayed to the writer.
  EXPECT_FALSE(servers().FollowerOf("aged").Get("aged").has_stale_since());
}

TEST_F(FollowedStreamsTest, AFrozenModelLearnsNothingAnywhere) {
  const Rule rule{.name = "frozen", .set = [](v1::Model&) {}};
  servers().CreateInFleet("frozen", SettingsOf(rule));
  Member& follower = servers().FollowerOf("frozen");
  RawLearnStream stream(*follower.learning, "frozen");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(stream.Ask(request).updates(), 1U);
  EXPECT_EQ(stream.Ask(request).examples(), 1U);
  {
    grpc::ClientContext context;
    v1::FreezeModelRequest freeze;
    freeze.set_name("models/frozen");
    v1::Model frozen;
    ASSERT_TRUE(follower.models->FreezeModel(&context, freeze, &frozen).ok());
  }
  // Each server hears of it a moment later.
  v1::LearnResult result;
  for (const absl::Time end = absl::Now() + kLong; !result.has_error() && absl::Now() < end;)
    result = stream.Ask(request);
  EXPECT_EQ(Reason(result.error()), "MODEL_FROZEN");
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FollowedStreamsTest, APredictionWaitsForTheRevisionThatItAsksFor) {
  const Rule rule{.name = "awaited", .set = [](v1::Model&) {}};
  servers().CreateInFleet("awaited", SettingsOf(rule));
  Member& follower = servers().FollowerOf("awaited");
  RawLearnStream stream(*servers().WriterOf("awaited").learning, "awaited");
  stream.Open();
  v1::PredictRequest request;
  request.set_model("models/awaited");
  *request.add_examples() = SparseExample(1, {{0, 1}});
  v1::PredictResponse response;
  const auto predict_at = [&](Member& server, absl::Duration limit) {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + limit));
    return server.predictions->Predict(&context, request, &response);
  };
  const auto predict = [&](absl::Duration limit) { return predict_at(follower, limit); };
  for (int i = 0; i < 50; ++i) {
    v1::LearnStreamRequest wrong;
    *wrong.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1}});
    *wrong.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1}});
    const int64_t revision = stream.Ask(wrong).revision();
    request.set_min_revision(revision);
    const grpc::Status status = predict(kLong);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_GE(response.revision(), revision);
  }
  request.set_min_revision(1'000'000);
  EXPECT_EQ(predict(absl::Milliseconds(100)).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  // Also the first request for a model that is not in memory.
  servers().CreateInFleet("unloaded", SettingsOf(rule));
  request.set_model("models/unloaded");
  EXPECT_EQ(predict_at(servers().FollowerOf("unloaded"), absl::Seconds(2)).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FollowedStreamsTest, MessagesOfAPredictionStreamWaitForMinRevisionToo) {
  const Rule rule{.name = "awaited_in_stream", .set = [](v1::Model&) {}};
  servers().CreateInFleet("awaited_in_stream", SettingsOf(rule));
  RawLearnStream learning(*servers().WriterOf("awaited_in_stream").learning, "awaited_in_stream");
  learning.Open();
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kLong));
  const auto stream =
      servers().FollowerOf("awaited_in_stream").predictions->PredictStream(&context);
  v1::PredictRequest request;
  request.set_model("models/awaited_in_stream");
  *request.add_examples() = SparseExample(1, {{0, 1}});
  v1::PredictResponse response;
  int64_t revision = 0;
  for (int i = 0; i < 20; ++i) {
    // Asked for before it exists; the message after it keeps its place.
    request.set_min_revision(++revision);
    ASSERT_TRUE(stream->Write(request));
    request.set_min_revision(0);
    ASSERT_TRUE(stream->Write(request));
    v1::LearnStreamRequest wrong;
    *wrong.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1}});
    *wrong.add_examples() = SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1}});
    const int64_t learned = learning.Ask(wrong).revision();
    ASSERT_GE(learned, revision);
    for (int answer = 0; answer < 2; ++answer) {
      ASSERT_TRUE(stream->Read(&response));
      EXPECT_FALSE(response.has_error()) << response.error().message();
      EXPECT_GE(response.revision(), revision);
    }
    revision = learned;
  }
  // A stream that is cancelled does not wait.
  request.set_min_revision(1'000'000);
  ASSERT_TRUE(stream->Write(request));
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_TRUE(learning.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
