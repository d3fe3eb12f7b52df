// Errors as a client receives them over gRPC: code, reason and what to do, for the cases that a
// program handles by more than showing the message.
#include <rocksdb/db.h>

#include <functional>
#include <limits>
#include <memory>

#include "core/journal/keys.h"
#include "core/journal/rocksdb_journal.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/journals.h"

namespace perceptrond::testing {
namespace {

class ErrorDetailsTest : public ServerTest {
 protected:
  ErrorDetailsTest() : ServerTest({"--max-example-features", "3"}) {}

  static v1::LearnRequest Request(const std::string& id, const v1::Example& example) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    *request.add_examples() = example;
    return request;
  }
  const v1::Example wide_ = SparseExample(1, {{0, 1}, {1, 1}, {2, 1}, {3, 1}});
};

TEST_F(ErrorDetailsTest, ACallWithAnExampleOfTooManyFeaturesIsRefusedAndLearnsNothing) {
  CreateDense("m", 10);
  v1::LearnRequest request = Request("m", SparseExample(1, {{0, 1}, {1, 1}, {2, 1}}));
  *request.add_examples() = wide_;
  const grpc::Status status = Learn(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "TOO_MANY_FEATURES");
  EXPECT_THAT(BadField(status), ::testing::HasSubstr("examples[1]"));
  EXPECT_EQ(Get("m").revision(), 0);
}

TEST_F(ErrorDetailsTest, APredictionOfTooManyFeaturesIsRefused) {
  CreateDense("m", 10);
  v1::PredictRequest request;
  request.set_model("models/m");
  *request.add_examples() = wide_;
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "TOO_MANY_FEATURES");
  EXPECT_NE(BadField(status), "");
}

TEST_F(ErrorDetailsTest, AStreamGoesOnAfterAnExampleOfTooManyFeatures) {
  CreateDense("m", 10);
  RawLearnStream stream(*learning_, "m", "p");
  stream.Open();
  v1::LearnStreamRequest request;
  *request.add_examples() = wide_;
  const v1::LearnResult refused = stream.Ask(request);
  ASSERT_EQ(refused.row_errors_size(), 1);
  EXPECT_EQ(Reason(refused.row_errors(0).status()), "TOO_MANY_FEATURES");
  EXPECT_EQ(refused.row_errors(0).status().code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  request.clear_examples();
  *request.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(stream.Ask(request).updates(), 1);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ErrorDetailsTest, ALearnerWithoutExampleWeightsRefusesTheMessageThatHasThem) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  settings.mutable_learner()->mutable_passive_aggressive();
  Create("m", settings);
  v1::LearnRequest request = Request("m", SparseExample(1, {{0, 1}}));
  *request.add_examples() = SparseExample(-1, {{1, 1}});
  request.mutable_examples(1)->set_weight(2);
  grpc::Status status = Learn(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "WEIGHTS_NOT_TAKEN");
  EXPECT_EQ(BadField(status), "examples.weight");
  request.clear_examples();
  request.mutable_columns()->set_dense_width(2);
  for (const float value : {1.0F, 0.0F}) request.mutable_columns()->add_values(value);
  request.mutable_columns()->add_labels(1);
  request.mutable_columns()->add_weights(2);
  status = Learn(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(status), "WEIGHTS_NOT_TAKEN");
  EXPECT_EQ(BadField(status), "columns.weights");
  EXPECT_EQ(Get("m").revision(), 0);
}

TEST_F(ErrorDetailsTest, AnExampleWhoseWeightIsNotAboveZeroAndFiniteIsNotLearned) {
  CreateDense("m", 2);
  RawLearnStream stream(*learning_, "m", "p");
  stream.Open();
  for (const float weight : {0.0F, -1.0F, std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()}) {
    v1::Example example = SparseExample(1, {{0, 1}});
    example.set_weight(weight);
    const grpc::Status status = Learn(Request("m", example));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << weight;
    EXPECT_EQ(Reason(status), "BAD_WEIGHT") << weight;
    EXPECT_EQ(BadField(status), "examples[0].weight") << weight;
    v1::LearnStreamRequest request;
    *request.add_examples() = example;
    const v1::LearnResult refused = stream.Ask(request);
    ASSERT_EQ(refused.row_errors_size(), 1) << weight;
    EXPECT_EQ(Reason(refused.row_errors(0).status()), "BAD_WEIGHT") << weight;
  }
  EXPECT_EQ(Get("m").revision(), 0);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ErrorDetailsTest, AModelThatIsFullSaysWhenToTryAgain) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named()->set_max_features(1);
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  Create("full", settings);
  v1::LearnResult result;
  ASSERT_TRUE(
      Learn(Request("full", NamedExample("spam", {{"win", 1}, {"free", 1}})), &result).ok());
  ASSERT_EQ(result.row_errors_size(), 1);
  const google::rpc::Status& status = result.row_errors(0).status();
  EXPECT_EQ(status.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "FEATURE_CAP");
  EXPECT_EQ(RetryDelay(status), absl::Hours(24));
}

TEST_F(ErrorDetailsTest, AModelWhoseJournalIsDamagedIsDataLossAndOthersServe) {
  CreateDense("damaged", 10);
  CreateDense("sound", 10);
  const v1::Example example = SparseExample(1, {{0, 1}});
  ASSERT_TRUE(Learn(Request("damaged", example)).ok());
  ASSERT_TRUE(Learn(Request("sound", example)).ok());
  ASSERT_EQ(server_.Terminate(), 0);
  {
    RocksDbJournal::Options options;
    options.directory = dir_.path() + "/data";
    const auto journal = RocksDbJournal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    const auto header = (*journal)->Find("models/damaged");
    ASSERT_TRUE(header.ok()) << header.status();
    // Revisions 2 to 99 are nowhere.
    ASSERT_TRUE(CommitOne(**journal, MakeEntry(header->id(), {MakeRecord(100, 1)})).ok());
  }
  Restart();
  const auto expect_data_loss = [](const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS) << status.error_message();
    EXPECT_EQ(Reason(status), "JOURNAL_CORRUPT");
    EXPECT_EQ(RetryDelay(status), std::nullopt) << "waiting does not repair a journal";
  };
  expect_data_loss(Learn(Request("damaged", example)));
  v1::PredictRequest predict;
  predict.set_model("models/damaged");
  *predict.add_examples() = example;
  v1::PredictResponse response;
  expect_data_loss(Predict(predict, &response));
  RawLearnStream stream(*learning_, "damaged");
  v1::LearnStreamRequest first;
  first.set_model("models/damaged");
  stream.Send(first);
  expect_data_loss(stream.Finish());
  EXPECT_TRUE(Learn(Request("sound", example)).ok());
}

TEST_F(ErrorDetailsTest, AListNamesADamagedModelAndHasTheOthers) {
  CreateDense("damaged", 3);
  CreateDense("sound", 3);
  ASSERT_EQ(server_.Terminate(), 0);
  const std::string directory = dir_.path() + "/data";
  uint64_t id = 0;
  {
    RocksDbJournal::Options options;
    options.directory = directory;
    id = RocksDbJournal::Open(options).value()->Find("models/damaged")->id();
  }
  {
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), directory, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), keys::Counters(id), "no counters").ok());
    ASSERT_TRUE(db->Close().ok());
  }
  Restart();
  grpc::ClientContext context;
  v1::ListModelsResponse listed;
  ASSERT_TRUE(models_->ListModels(&context, v1::ListModelsRequest(), &listed).ok());
  ASSERT_EQ(listed.models_size(), 1);
  EXPECT_EQ(listed.models(0).name(), "models/sound");
  ASSERT_EQ(listed.unreachable_size(), 1);
  EXPECT_EQ(listed.unreachable(0), "models/damaged");
  const std::string page =
      RunCommand("curl -s http://127.0.0.1:" + std::to_string(server_.metrics_port()) +
                 "/api/models")
          .out;
  EXPECT_THAT(page, ::testing::HasSubstr("\"unreachable\":[\"models/damaged\"]"));
}

TEST_F(ErrorDetailsTest, ARevisionThatIsYetToComeSaysWhenToAskAgain) {
  CreateDense("m", 3);
  v1::PredictRequest request;
  request.set_model("models/m");
  request.set_min_revision(1);
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(Reason(status), "REVISION_TOO_OLD");
  EXPECT_EQ(RetryDelay(status), absl::Seconds(1));
}

}  // namespace
}  // namespace perceptrond::testing
