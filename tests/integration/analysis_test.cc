// AnalysisService over a real connection: proofs, replaced weights, stored examples, what of all that
// survives a kill, and analyses that take long.
#include <cmath>
#include <random>
#include <set>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

// AND, without its row of zeros; and XOR.
constexpr char kAnd[] =
    " examples { label: -1 } examples { sparse { indices: 1 values: 1 } label: -1 } "
    "examples { sparse { indices: 0 values: 1 } label: -1 } "
    "examples { sparse { indices: [0, 1] values: [1, 1] } label: 1 }";
constexpr char kXor[] =
    " examples { dense { values: [-1, -1] } label: 1 } examples { dense { values: [1, 1] } label: "
    "1 } "
    "examples { dense { values: [-1, 1] } label: -1 } "
    "examples { dense { values: [1, -1] } label: -1 }";

class AnalysisTest : public ServerTest {
 protected:
  void CreateAndTeach(const std::string& id, const std::string& settings,
                      const std::string& examples, int times = 1) {
    Create(id, settings);
    for (int i = 0; i < times; ++i) Teach(id, examples);
  }
  v1::AnalysisResult Analyze(const std::string& id, const std::string& more = "") {
    const auto last = AnswerOf<v1::AnalyzeResponse>(
        "AnalysisService/Analyze", absl::StrCat("model: 'models/", id, "' ", more));
    EXPECT_TRUE(last.has_result());
    return last.result();
  }
  std::string Refused(const std::string& id, const std::string& more) {
    return Call("AnalysisService/Analyze", absl::StrCat("model: 'models/", id, "' ", more));
  }
  std::vector<v1::StoredExample> List(const std::string& id, int page_size, int* pages) {
    std::vector<v1::StoredExample> examples;
    std::string token;
    do {
      const auto page = AnswerOf<v1::ListStoredExamplesResponse>(
          "AnalysisService/ListStoredExamples",
          absl::StrCat("model: 'models/", id, "' page_size: ", page_size, " page_token: '", token,
                       "'"));
      examples.insert(examples.end(), page.examples().begin(), page.examples().end());
      token = page.next_page_token();
      ++*pages;
    } while (!token.empty());
    return examples;
  }

  const std::string plane_ =
      "feature_space { dense { dimension: 2 } } stored_examples { max_sample: 100 }";
};

TEST_F(AnalysisTest, TheBestMarginOfAConjunctionIsWhatGeometrySaysAndOutlivesAKill) {
  CreateAndTeach("and", plane_, kAnd, 20);
  const v1::AnalysisResult result = Analyze("and");
  // (2, 2, -3) / sqrt(17) is right by 1 / sqrt(17) on three of the rows, augmented by 1.
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_SEPARABLE);
  EXPECT_NEAR(result.analysis().margin_lower(), 1 / std::sqrt(17.0), 1e-6);
  EXPECT_GE(result.analysis().margin_upper(), result.analysis().margin_lower());
  EXPECT_TRUE(result.analysis().complete());
  EXPECT_EQ(result.analysis().examples(), 4U);
  EXPECT_NEAR(result.update_bound(), 3 * 17, 1e-3);
  EXPECT_EQ(result.support_vectors_size(), 3);
  EXPECT_THAT(result.separator().vectors(0).indices(), ElementsAre(0, 1));
  EXPECT_NEAR(result.separator().vectors(0).values(0), 2, 1e-4);
  EXPECT_NEAR(result.separator().vectors(0).values(1), 2, 1e-4);
  EXPECT_NEAR(result.separator().vectors(0).bias(), -3, 1e-4);
  for (const bool restarted : {false, true}) {
    if (restarted) {
      EXPECT_EQ(server_.Terminate(), 0);
      Restart();
    }
    const v1::Model model = Get("and");
    EXPECT_TRUE(model.report().analysis().current());
    EXPECT_NEAR(model.report().margin_floor(), 1 / std::sqrt(17.0), 1e-6);
    EXPECT_EQ(model.report().updates_left() + model.report().updates(), 51U);
    EXPECT_EQ(model.stored_examples().sample(), 4U);
    EXPECT_TRUE(model.stored_examples().complete());
  }
  const int64_t revision = Get("and").revision();
  const auto expecting = [](int64_t of) {
    return absl::StrCat("replace_weights: true expected_revision: ", of);
  };
  EXPECT_EQ(Refused("and", expecting(revision + 1)), "ABORTED REVISION_MISMATCH");
  const v1::AnalysisResult replacing = Analyze("and", expecting(revision));
  EXPECT_EQ(replacing.new_revision(), revision + 1);
  for (const bool killed : {false, true}) {
    if (killed) {
      server_.Kill();
      Restart();
    }
    const v1::Model replaced = Get("and");
    EXPECT_EQ(replaced.revision(), revision + 1);
    EXPECT_EQ(replaced.weights().SerializeAsString(), replacing.separator().SerializeAsString());
    EXPECT_EQ(replaced.report().analysis().margin_lower(), replacing.analysis().margin_lower());
    EXPECT_FALSE(replaced.report().has_updates_left());
  }
}

TEST_F(AnalysisTest, XorIsProvenNotSeparableFromItsUpdatesAlone) {
  CreateAndTeach("xor", "feature_space { dense { dimension: 2 } }", kXor);
  const v1::AnalysisResult result = Analyze("xor");
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_NOT_SEPARABLE);
  ASSERT_EQ(result.certificate_size(), 4);
  for (const v1::CertificateEntry& entry : result.certificate()) EXPECT_EQ(entry.multiplier(), "1");
  EXPECT_FALSE(result.has_separator());
  EXPECT_EQ(Get("xor").report().state(), v1::CONVERGENCE_STATE_NOT_SEPARABLE);
  EXPECT_EQ(Refused("xor", "replace_weights: true"), "FAILED_PRECONDITION NO_SEPARATOR");
}

TEST_F(AnalysisTest, ExamplesOfNamedClassesAreListedWithTheirNames) {
  const std::string tea = " examples { dense { values: [1, 0] } label_name: 'tea' }";
  CreateAndTeach("drinks",
                 plane_ + " learner { classes { max_classes: 2 new_classes: NEW_CLASSES_NAMED } }",
                 tea + " examples { dense { values: [0, 1] } label_name: 'rum' }");
  int pages = 0;
  std::set<std::string> names;
  for (const v1::StoredExample& one : List("drinks", 0, &pages))
    names.insert(one.example().label_name());
  EXPECT_THAT(names, ElementsAre("rum", "tea"));
}

TEST_F(AnalysisTest, PagesTogetherAreEverythingStoredOnceAndTheirTokensAreTheModels) {
  for (const char* id : {"and", "other"}) CreateAndTeach(id, plane_, kAnd, 2);
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
  const std::string token =
      AnswerOf<v1::ListStoredExamplesResponse>("AnalysisService/ListStoredExamples",
                                               "model: 'models/and' page_size: 1")
          .next_page_token();
  EXPECT_EQ(Call("AnalysisService/ListStoredExamples",
                 absl::StrCat("model: 'models/other' page_token: '", token, "'")),
            "INVALID_ARGUMENT INVALID_FIELD page_token");
}

// Random labels on random rows: nothing separates them, and the proof takes many seconds. A call that
// waited for it would return after it has ended, each time that it is tried.
TEST_F(AnalysisTest, ALongAnalysisHoldsUpNobodyAndEndsWhenItIsCancelledOrTheServerStops) {
  constexpr int kDimension = 700;
  Create("noise", absl::StrCat("feature_space { dense { dimension: ", kDimension,
                               " } } stored_examples { max_sample: 100000 }"));
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  v1::LearnRequest noise;
  noise.set_model("models/noise");
  noise.mutable_columns()->set_dense_width(kDimension);
  for (int n = 0; n < 3 * kDimension; ++n) {
    noise.mutable_columns()->add_labels(random() % 2 == 0 ? 1 : -1);
    for (int i = 0; i < kDimension; ++i) noise.mutable_columns()->add_values(normal(random));
  }
  ASSERT_TRUE(Learn(noise).ok());
  EXPECT_EQ(Analyze("noise", "time_limit { nanos: 1 }").analysis().separability(),
            v1::SEPARABILITY_UNDECIDED);

  const auto request = FromText<v1::AnalyzeRequest>("model: 'models/noise'");
  const auto analysis = v1::AnalysisService::NewStub(channel_);
  std::optional<grpc::ClientContext> first_context;
  std::unique_ptr<grpc::ClientReader<v1::AnalyzeResponse>> first;
  v1::AnalyzeResponse running;
  do {
    first_context.emplace();
    first = analysis->Analyze(&*first_context, request);
    ASSERT_TRUE(first->Read(&running));
    Teach("noise", "examples { label: 1 }");
    ASSERT_TRUE(first->Read(&running));
  } while (!running.has_progress());

  grpc::ClientContext second_context;
  const auto second = analysis->Analyze(&second_context, request);
  v1::AnalyzeResponse waiting;
  ASSERT_TRUE(second->Read(&waiting));
  EXPECT_EQ(waiting.progress().stage(), v1::ANALYSIS_STAGE_WAITING);
  EXPECT_EQ(waiting.progress().queue_position(), 1U);
  first_context->TryCancel();
  while (first->Read(&running)) EXPECT_FALSE(running.has_result());
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::CANCELLED);
  do {
    ASSERT_TRUE(second->Read(&waiting));
  } while (waiting.progress().stage() == v1::ANALYSIS_STAGE_WAITING);
  EXPECT_EQ(server_.Terminate(), 0);
  while (second->Read(&waiting)) EXPECT_FALSE(waiting.has_result());
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace perceptrond::testing
