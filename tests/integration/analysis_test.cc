// AnalysisService over a real connection: proofs, replaced weights, cancelling, stored examples, and what
// of all that survives a restart.
#include <algorithm>
#include <cmath>
#include <random>

#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class AnalysisTest : public ServerTest {
 protected:
  AnalysisTest() { ConnectAnalysis(); }
  void ConnectAnalysis() { analysis_ = v1::AnalysisService::NewStub(channel_); }

  void CreateSampling(const std::string& id, uint32_t dimension, uint32_t sample = 100'000) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(dimension);
    settings.mutable_stored_examples()->set_max_sample(sample);
    Create(id, settings);
  }
  void Teach(const std::string& id, const std::vector<v1::Example>& examples) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const v1::Example& example : examples) *request.add_examples() = example;
    const grpc::Status status = Learn(request);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  static v1::AnalyzeRequest Request(const std::string& id, bool replace = false) {
    v1::AnalyzeRequest request;
    request.set_model("models/" + id);
    request.set_replace_weights(replace);
    return request;
  }
  grpc::Status Analyze(const v1::AnalyzeRequest& request, v1::AnalysisResult* result = nullptr) {
    grpc::ClientContext context;
    const auto stream = analysis_->Analyze(&context, request);
    v1::AnalyzeResponse response;
    while (stream->Read(&response)) {
      if (response.has_result() && result != nullptr) *result = response.result();
    }
    return stream->Finish();
  }
  std::vector<v1::StoredExample> List(const std::string& id, int page_size, int* pages) {
    std::vector<v1::StoredExample> examples;
    v1::ListStoredExamplesRequest request;
    request.set_model("models/" + id);
    request.set_page_size(page_size);
    do {
      grpc::ClientContext context;
      v1::ListStoredExamplesResponse response;
      const grpc::Status status = analysis_->ListStoredExamples(&context, request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      examples.insert(examples.end(), response.examples().begin(), response.examples().end());
      request.set_page_token(response.next_page_token());
      ++*pages;
    } while (!request.page_token().empty());
    return examples;
  }
  // The model "noise", of random labels on random rows: nothing separates them, and the proof takes many seconds.
  void CreateNoise() {
    constexpr int kDimension = 700;
    CreateSampling("noise", kDimension);
    std::mt19937 random(1);
    std::normal_distribution<float> normal;
    std::vector<v1::Example> examples(3 * kDimension);
    for (v1::Example& example : examples) {
      example.set_label(random() % 2 == 0 ? 1 : -1);
      for (int i = 0; i < kDimension; ++i) example.mutable_dense()->add_values(normal(random));
    }
    Teach("noise", examples);
  }

  const std::vector<v1::Example> and_ = {SparseExample(-1, {}), SparseExample(-1, {{1, 1}}),
                                         SparseExample(-1, {{0, 1}}),
                                         SparseExample(1, {{0, 1}, {1, 1}})};
  std::unique_ptr<v1::AnalysisService::Stub> analysis_;
};

TEST_F(AnalysisTest, TheBestMarginOfAConjunctionIsWhatGeometrySays) {
  CreateSampling("and", 2);
  for (int pass = 0; pass < 20; ++pass) Teach("and", and_);
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(Request("and"), &result).ok());
  // (2, 2, -3) / sqrt(17) is right by 1 / sqrt(17) on three of the rows, augmented by 1.
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_SEPARABLE);
  EXPECT_NEAR(result.analysis().margin_lower(), 1 / std::sqrt(17.0), 1e-6);
  EXPECT_GE(result.analysis().margin_upper(), result.analysis().margin_lower());
  EXPECT_TRUE(result.analysis().complete());
  EXPECT_EQ(result.analysis().examples(), 4U);
  EXPECT_NEAR(result.update_bound(), 3 * 17, 1e-3);
  EXPECT_EQ(result.support_vectors_size(), 3);
  EXPECT_THAT(result.separator().vectors(0).indices(), ::testing::ElementsAre(0, 1));
  EXPECT_NEAR(result.separator().vectors(0).values(0), 2, 1e-4);
  EXPECT_NEAR(result.separator().vectors(0).values(1), 2, 1e-4);
  EXPECT_NEAR(result.separator().vectors(0).bias(), -3, 1e-4);

  const v1::Model model = Get("and");
  EXPECT_TRUE(model.report().analysis().current());
  EXPECT_NEAR(model.report().margin_floor(), 1 / std::sqrt(17.0), 1e-6);
  EXPECT_EQ(model.report().updates_left() + model.report().updates(), 51U);
  EXPECT_EQ(model.stored_examples().sample(), 4U);
  EXPECT_TRUE(model.stored_examples().complete());
}

TEST_F(AnalysisTest, AReplacingSeparatorIsThereAfterARestartAndAKill) {
  CreateSampling("and", 2);
  Teach("and", and_);
  v1::AnalyzeRequest request = Request("and", true);
  request.set_expected_revision(Get("and").revision() + 1);
  grpc::Status row_errors = Analyze(request);
  EXPECT_EQ(row_errors.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(row_errors), "REVISION_MISMATCH");
  request.set_expected_revision(Get("and").revision());
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(request, &result).ok());
  EXPECT_EQ(result.new_revision(), request.expected_revision() + 1);
  const v1::Model replaced = Get("and");
  EXPECT_EQ(replaced.revision(), result.new_revision());
  EXPECT_EQ(replaced.weights().SerializeAsString(), result.separator().SerializeAsString());
  EXPECT_FALSE(replaced.report().has_updates_left());
  server_.Kill();
  Restart();
  ConnectAnalysis();
  const v1::Model killed = Get("and");
  EXPECT_EQ(killed.weights().SerializeAsString(), replaced.weights().SerializeAsString());
  EXPECT_EQ(killed.report().analysis().margin_lower(), replaced.report().analysis().margin_lower());
  EXPECT_EQ(server_.Terminate(), 0);
  Restart();
  EXPECT_EQ(Get("and").weights().SerializeAsString(), replaced.weights().SerializeAsString());
}

TEST_F(AnalysisTest, TheSampleOutlivesARestartAsAWhole) {
  CreateSampling("and", 2);
  for (int pass = 0; pass < 20; ++pass) Teach("and", and_);
  ASSERT_TRUE(Analyze(Request("and")).ok());
  EXPECT_EQ(server_.Terminate(), 0);
  Restart();
  const v1::Model model = Get("and");
  EXPECT_TRUE(model.stored_examples().complete());
  EXPECT_EQ(model.stored_examples().sample(), 4U);
  EXPECT_TRUE(model.report().analysis().current());
  EXPECT_TRUE(model.report().has_updates_left());
}

TEST_F(AnalysisTest, XorIsProvenNotSeparableFromItsUpdatesAlone) {
  CreateDense("xor", 2);
  const std::vector<v1::Example> xor_ = {
      SparseExample(1, {{0, -1}, {1, -1}}), SparseExample(1, {{0, 1}, {1, 1}}),
      SparseExample(-1, {{0, -1}, {1, 1}}), SparseExample(-1, {{0, 1}, {1, -1}})};
  Teach("xor", xor_);
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(Request("xor"), &result).ok());
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_NOT_SEPARABLE);
  ASSERT_EQ(result.certificate_size(), 4);
  for (const v1::CertificateEntry& entry : result.certificate()) EXPECT_EQ(entry.multiplier(), "1");
  EXPECT_FALSE(result.has_separator());
  EXPECT_EQ(Get("xor").report().state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
  const grpc::Status status = Analyze(Request("xor", true));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "NO_SEPARATOR");
}

TEST_F(AnalysisTest, RefusalsSayWhy) {
  grpc::Status status = Analyze(Request("none"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Reason(status), "MODEL_NOT_FOUND");
  CreateDense("empty", 2);
  status = Analyze(Request("empty"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "NOTHING_STORED");
  v1::AnalyzeRequest request = Request("empty");
  request.set_relative_gap(2);
  status = Analyze(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(BadField(status), "relative_gap");
  request = Request("empty");
  request.set_expected_revision(3);
  EXPECT_EQ(BadField(Analyze(request)), "expected_revision");
  grpc::ClientContext context;
  v1::ListStoredExamplesRequest list;
  list.set_model("models/empty");
  list.set_page_token("nonsense");
  v1::ListStoredExamplesResponse response;
  status = analysis_->ListStoredExamples(&context, list, &response);
  EXPECT_EQ(BadField(status), "page_token");
}

TEST_F(AnalysisTest, ALearnerWithoutReplaceableWeightsIsAnalyzedAndKeepsThem) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  settings.mutable_stored_examples()->set_max_sample(10);
  settings.mutable_learner()->mutable_batch_perceptron();
  Create("batch", settings);
  Teach("batch", and_);
  const int64_t revision = Get("batch").revision();
  const grpc::Status status = Analyze(Request("batch", true));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(Reason(status), "NOT_REPLACEABLE");
  EXPECT_EQ(Get("batch").revision(), revision);
  EXPECT_TRUE(Get("batch").report().has_analysis());
}

TEST_F(AnalysisTest, AFrozenModelIsAnalyzedButKeepsItsWeights) {
  CreateDense("frozen", 2);
  Teach("frozen", and_);
  grpc::ClientContext context;
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/frozen");
  v1::Model model;
  ASSERT_TRUE(models_->FreezeModel(&context, freeze, &model).ok());
  EXPECT_EQ(Reason(Analyze(Request("frozen", true))), "MODEL_FROZEN");
  EXPECT_TRUE(Analyze(Request("frozen")).ok());
}

// The second analysis of the model waits for it, and goes on once
// the first is cancelled.
TEST_F(AnalysisTest, CancellingAnAnalysisLetsTheNextOneOfTheModelRun) {
  CreateNoise();
  grpc::ClientContext first_context;
  const auto first = analysis_->Analyze(&first_context, Request("noise"));
  v1::AnalyzeResponse response;
  ASSERT_TRUE(first->Read(&response));  // it runs
  ASSERT_TRUE(response.has_progress());
  grpc::ClientContext second_context;
  const auto second = analysis_->Analyze(&second_context, Request("noise"));
  v1::AnalyzeResponse waiting;
  ASSERT_TRUE(second->Read(&waiting));
  EXPECT_EQ(waiting.progress().stage(), v1::ANALYSIS_STAGE_WAITING);
  EXPECT_EQ(waiting.progress().queue_position(), 1U);
  first_context.TryCancel();
  do {
    ASSERT_TRUE(second->Read(&waiting));
  } while (waiting.progress().stage() == v1::ANALYSIS_STAGE_WAITING);
  second_context.TryCancel();
  while (first->Read(&response)) EXPECT_FALSE(response.has_result());
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (second->Read(&response)) EXPECT_FALSE(response.has_result());
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(Get("noise", v1::MODEL_VIEW_BASIC).report().has_analysis());
}

TEST_F(AnalysisTest, AShortAnalysisIsDoneWhileALongOneRuns) {
  CreateNoise();
  CreateDense("and", 2);
  Teach("and", and_);
  grpc::ClientContext context;
  const auto running = analysis_->Analyze(&context, Request("noise"));
  v1::AnalyzeResponse response;
  ASSERT_TRUE(running->Read(&response));
  EXPECT_TRUE(Analyze(Request("and")).ok());
  ASSERT_TRUE(running->Read(&response));
  EXPECT_TRUE(response.has_progress()) << "it ended before the short one";
  context.TryCancel();
  while (running->Read(&response)) continue;
}

TEST_F(AnalysisTest, ATimeLimitEndsTheAnalysisWithWhatIsProvenByThen) {
  CreateNoise();
  v1::AnalyzeRequest request = Request("noise");
  request.mutable_time_limit()->set_nanos(200'000'000);
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(request, &result).ok());
  EXPECT_EQ(result.end_reason(), "the time limit is reached");
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_UNDECIDED);
  request.mutable_time_limit()->set_seconds(-1);
  EXPECT_EQ(Reason(Analyze(request)), "INVALID_FIELD");
  request.mutable_time_limit()->set_seconds(3600);
  EXPECT_EQ(Reason(Analyze(request)), "ANALYSIS_TIME");
}

TEST_F(AnalysisTest, TheDeadlineOfTheCallIsATimeLimitToo) {
  CreateNoise();
  grpc::Status status;
  v1::AnalyzeResponse response;
  // The answer has a tenth of the time: that is little on a busy machine.
  for (std::chrono::seconds time(2); time.count() < 20; time *= 3) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + time);
    const auto stream = analysis_->Analyze(&context, Request("noise"));
    while (stream->Read(&response)) continue;
    status = stream->Finish();
    if (status.ok()) break;
  }
  EXPECT_TRUE(status.ok()) << status.error_message();
  ASSERT_TRUE(response.has_result());
  EXPECT_EQ(response.result().end_reason(), "the time limit is reached");
}

TEST_F(AnalysisTest, AServerThatStopsEndsTheAnalysis) {
  CreateNoise();
  grpc::ClientContext context;
  const auto stream = analysis_->Analyze(&context, Request("noise"));
  v1::AnalyzeResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(server_.Terminate(), 0);
  while (stream->Read(&response)) {
  }
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AnalysisTest, PagesTogetherAreEverythingStoredOnce) {
  CreateSampling("and", 2);
  Teach("and", and_);
  Teach("and", and_);
  int one_page = 0;
  const std::vector<v1::StoredExample> all = List("and", 0, &one_page);
  EXPECT_EQ(one_page, 1);
  int pages = 0;
  const std::vector<v1::StoredExample> paged = List("and", 1, &pages);
  EXPECT_EQ(pages, static_cast<int>(all.size()));
  ASSERT_EQ(paged.size(), all.size());
  const auto updates = static_cast<size_t>(Get("and").revision());
  ASSERT_EQ(all.size(), updates + 4);
  for (size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(paged[i].SerializeAsString(), all[i].SerializeAsString());
    EXPECT_EQ(all[i].update_revision(), i < updates ? static_cast<int64_t>(i) + 1 : 0);
  }
  EXPECT_EQ(all[0].score(), 0);
  EXPECT_EQ(all[0].example().label(), -1);
}

TEST_F(AnalysisTest, APageTokenOfAnotherModelIsNone) {
  for (const char* id : {"and", "other"}) {
    CreateSampling(id, 2);
    Teach(id, and_);
  }
  const auto ask = [&](const std::string& id, const std::string& token, std::string* next) {
    grpc::ClientContext context;
    v1::ListStoredExamplesRequest request;
    request.set_model("models/" + id);
    request.set_page_size(1);
    request.set_page_token(token);
    v1::ListStoredExamplesResponse response;
    const grpc::Status status = analysis_->ListStoredExamples(&context, request, &response);
    if (next != nullptr) *next = response.next_page_token();
    return status;
  };
  std::string token;
  ASSERT_TRUE(ask("and", "", &token).ok());
  EXPECT_TRUE(ask("and", token, nullptr).ok());
  EXPECT_EQ(BadField(ask("other", token, nullptr)), "page_token");
  // "u1", as a token once was.
  EXPECT_EQ(BadField(ask("and", "dTE", nullptr)), "page_token");
}

TEST_F(AnalysisTest, SeveralClassesAreAnalyzedByKeslersConstruction) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  settings.mutable_learner()->mutable_classes()->set_max_classes(3);
  Create("several", settings);
  Teach("several", {SparseExample(2, {{0, 1}})});
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(Request("several"), &result).ok());
  // The rows are x = (1, 0, 1) in the block of class 2 and -x in that of class 0 or 1. Weights of
  // norm 1 in the direction of (-x, -x, 2 x) have the largest margin, sqrt(3), on both.
  EXPECT_NEAR(result.analysis().margin_lower(), std::sqrt(3.0), 1e-6);
  EXPECT_NEAR(result.update_bound(), 2 * 2 / 3.0, 1e-6);
  EXPECT_EQ(result.separator().vectors_size(), 3);
  ASSERT_EQ(result.support_vectors_size(), 2);
  EXPECT_EQ(result.support_vectors(0).rival(), 0);
  EXPECT_EQ(result.support_vectors(1).rival(), 1);
}

TEST_F(AnalysisTest, NamedFeaturesAreListedAndReplacedByName) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  settings.add_label_names("ham");
  settings.add_label_names("spam");
  settings.mutable_stored_examples()->set_max_sample(100);
  Create("spam", settings);
  Teach("spam",
        {NamedExample("spam", {{"prize", 1}, {"win", 2}}),
         NamedExample("spam", {{"prize", 3}, {"new", 1}}), NamedExample("ham", {{"see", 1}})});
  v1::AnalysisResult result;
  ASSERT_TRUE(Analyze(Request("spam", true), &result).ok());
  EXPECT_THAT(result.separator().vectors(0).names(), ::testing::Contains("see"));
  EXPECT_TRUE(result.analysis().complete());
  const v1::Model model = Get("spam");
  EXPECT_EQ(model.weights().vectors(0).names_size(), result.separator().vectors(0).names_size());
  int pages = 0;
  bool found = false;
  for (const v1::StoredExample& one : List("spam", 2, &pages)) {
    const auto& names = one.example().named().names();
    found = found || std::find(names.begin(), names.end(), "new") != names.end();
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace perceptrond::testing
