// How long a stream lasts: models frozen, deleted, out of memory; newer streams; drains and
// crashes.
#include <atomic>
#include <thread>

#include "tests/integration/learn_stream_fixture.h"

namespace perceptrond::testing {
namespace {

TEST_F(LearnStreamTest, AFrozenModelRefusesInBandAndGoesOnWhenUnfrozen) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::Model model;
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/line");
  grpc::ClientContext freezing;
  ASSERT_TRUE(models_->FreezeModel(&freezing, freeze, &model).ok());
  EXPECT_EQ(model.state(), v1::MODEL_STATE_FROZEN);
  const v1::LearnResult row_errors = stream.Ask(Line());
  EXPECT_EQ(row_errors.error().code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(row_errors.error()), "MODEL_FROZEN");
  v1::UnfreezeModelRequest unfreeze;
  unfreeze.set_name("models/line");
  grpc::ClientContext unfreezing;
  ASSERT_TRUE(models_->UnfreezeModel(&unfreezing, unfreeze, &model).ok());
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, EndsWhenTheModelIsDeleted) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  Delete("line");
  stream.Send(Line());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
}

TEST_F(LearnStreamTest, EndsWhenTheModelIsDeletedAlsoIfNothingIsSent) {
  RawLearnStream numbered(*learning_, "line", "p");
  numbered.Open();
  RawLearnStream unnumbered(*learning_, "line");
  unnumbered.Open();
  Delete("line");
  for (RawLearnStream* stream : {&numbered, &unnumbered}) {
    // The server ends the stream by itself: nothing was half-closed.
    EXPECT_FALSE(stream->Read());
    const grpc::Status status = stream->Finish();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
  }
}

TEST_F(LearnStreamTest, DoesNotGoOnInAnotherModelOfTheSameName) {
  RawLearnStream numbered(*learning_, "line", "p");
  numbered.Open();
  EXPECT_EQ(numbered.Ask(Line()).examples(), 4);
  RawLearnStream unnumbered(*learning_, "line");
  unnumbered.Open();
  Delete("line");
  CreateDense("line", 1);
  for (RawLearnStream* stream : {&numbered, &unnumbered}) {
    stream->Send(Line());
    EXPECT_EQ(Reason(stream->Finish()), "MODEL_NOT_FOUND");
  }
  EXPECT_EQ(Get("line").report().examples(), 0);
}

TEST_F(LearnStreamTest, AFrozenModelAcknowledgesAReplay) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  v1::LearnStreamRequest request = Line();
  request.set_first_offset(0);
  stream.Ask(request);
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/line");
  grpc::ClientContext context;
  v1::Model model;
  ASSERT_TRUE(models_->FreezeModel(&context, freeze, &model).ok());
  const v1::LearnResult again = stream.Ask(request);
  EXPECT_EQ(again.error().code(), grpc::StatusCode::OK);
  EXPECT_EQ(again.duplicates(), 4);
  EXPECT_EQ(again.acknowledged_offset(), 3);
  request.set_first_offset(1);
  const v1::LearnResult more = stream.Ask(request);
  EXPECT_EQ(Reason(more.error()), "MODEL_FROZEN");
  EXPECT_EQ(more.acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LearnStreamTest, ANewerStreamEndsAnOlderThatSendsNothing) {
  RawLearnStream older(*learning_, "line", "p");
  older.Open();
  RawLearnStream newer(*learning_, "line", "p");
  newer.Open();
  EXPECT_FALSE(older.Read());
  EXPECT_EQ(Reason(older.Finish()), "PRODUCER_SUPERSEDED");
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(LearnStreamTest, ANewerStreamOfTheSameProducerEndsTheOlder) {
  RawLearnStream older(*learning_, "line", "p");
  older.Open();
  RawLearnStream newer(*learning_, "line", "p");
  newer.Open();
  older.Send(Line());
  const grpc::Status status = older.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "PRODUCER_SUPERSEDED");
  EXPECT_EQ(newer.Ask(Line()).examples(), 4);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(LearnStreamTest, DrainingAnswersWhatWasTakenAndThenSaysWhy) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  EXPECT_EQ(stream.Ask(Line()).examples(), 4);
  server_.Signal(SIGTERM);
  // The server ends the stream by itself: nothing was half-closed.
  while (stream.Read()) {
  }
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Reason(status), "DRAINING");
  EXPECT_EQ(RetryDelay(status), absl::Milliseconds(100));
  EXPECT_EQ(server_.Wait(), 0);
  Restart();
  EXPECT_EQ(Get("line").report().examples(), 4);
}

TEST_F(LearnStreamTest, StateCountersAndPassSurviveASigkill) {
  std::string before;
  {
    RawLearnStream stream(*learning_, "line", "p");
    stream.Open();
    v1::LearnStreamRequest request = Line();
    request.set_first_offset(0);
    request.set_completed_pass(1);
    stream.Ask(request);
    // In the middle of the second pass.
    v1::LearnStreamRequest half = Columns({{1, 1}, {2, 1}});
    half.set_first_offset(4);
    stream.Ask(half);
    v1::Model model = Get("line");
    model.mutable_report()->mutable_drift()->clear_window_examples();
    model.mutable_report()->mutable_drift()->clear_window_error();
    before = model.DebugString();
    server_.Kill();
  }
  Restart();
  v1::Model model = Get("line");
  model.mutable_report()->mutable_drift()->clear_window_examples();
  EXPECT_EQ(model.DebugString(), before);
  RawLearnStream stream(*learning_, "line", "p");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.next_offset(), 6);
  EXPECT_EQ(opened.passes(), 1);
  v1::LearnStreamRequest rest = Columns({{3, -1}, {4, -1}});
  rest.set_first_offset(6);
  rest.set_completed_pass(2);
  EXPECT_EQ(stream.Ask(rest).completed_pass().examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
}

// Each of its models takes most of the memory there is: whatever nobody is using leaves when
// another is used.
class CrowdedTest : public ServerTest {
 protected:
  static constexpr uint32_t kDimension = 250'000;

  CrowdedTest() : ServerTest({"--memory-budget", "4MiB"}) {
    CreateDense("one", kDimension);
    CreateDense("other", kDimension);
    CreateDense("third", kDimension);
  }
  static v1::LearnStreamRequest Row() {
    v1::LearnStreamRequest request;
    *request.add_examples() = SparseExample(1, {{0, 1}});
    return request;
  }
  void Use(const std::string& id) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    *request.add_examples() = SparseExample(0, {{0, 1}});
    v1::PredictResponse response;
    // Waits while both others are in use, for the moment that a commit or an answer takes.
    EXPECT_TRUE(Predict(request, &response).ok());
  }
  // What makes the model that was used leave memory, which has room for two.
  void Evict() {
    Use("other");
    Use("third");
  }
};

TEST_F(CrowdedTest, AnOlderStreamDoesNotSupersedeTheNewerBecauseTheModelWasAway) {
  RawLearnStream older(*learning_, "one", "p");
  older.Open();
  RawLearnStream newer(*learning_, "one", "p");
  newer.Open();
  Evict();
  older.Send(Row());
  EXPECT_EQ(Reason(older.Finish()), "PRODUCER_SUPERSEDED");
  EXPECT_EQ(newer.Ask(Row()).examples(), 1);
  EXPECT_TRUE(newer.Finish().ok());
}

TEST_F(CrowdedTest, StreamsGoOnInAModelThatWasAwayAndHearOfItsDeletion) {
  RawLearnStream numbered(*learning_, "one", "p");
  numbered.Open();
  RawLearnStream unnumbered(*learning_, "one");
  unnumbered.Open();
  for (int i = 0; i < 3; ++i) {
    Evict();
    EXPECT_EQ(numbered.Ask(Row()).acknowledged_offset(), i);
    EXPECT_EQ(unnumbered.Ask(Row()).examples(), 1);
  }
  Evict();
  grpc::ClientContext context;
  v1::DeleteModelRequest request;
  request.set_name("models/one");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
  for (RawLearnStream* stream : {&numbered, &unnumbered}) {
    EXPECT_FALSE(stream->Read());
    EXPECT_EQ(Reason(stream->Finish()), "MODEL_NOT_FOUND");
  }
}

TEST_F(CrowdedTest, AResumedStreamKeepsItsPositionWhileModelsComeAndGo) {
  const std::string uid = Get("one").uid();
  std::atomic<bool> stop = false;
  std::thread others([&] {
    while (!stop) Evict();
  });
  for (int i = 0; i < 50; ++i) {
    RawLearnStream stream(*learning_, "one", "p" + std::to_string(i));
    v1::Producer::Resume& resume = *stream.first().mutable_producer()->mutable_resume();
    resume.set_model_uid(uid);
    resume.set_acknowledged_offset(9);
    resume.set_acknowledged_revision(0);
    EXPECT_EQ(stream.Open().next_offset(), 10);
    v1::LearnStreamRequest request = Row();
    request.set_first_offset(10);
    const v1::LearnResult result = stream.Ask(request);
    EXPECT_EQ(Reason(result.error()), "");
    EXPECT_EQ(result.acknowledged_offset(), 10);
    EXPECT_TRUE(stream.Finish().ok());
  }
  stop = true;
  others.join();
}

}  // namespace
}  // namespace perceptrond::testing
