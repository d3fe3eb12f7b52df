// Analyses of models of several classes over a real connection.
#include <cmath>

#include "perceptron/v1/analysis_service.grpc.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ClassAnalysisTest : public ServerTest {
 protected:
  ClassAnalysisTest() { ConnectAnalysis(); }
  void ConnectAnalysis() { analysis_ = v1::AnalysisService::NewStub(channel_); }

  // Three classes and three features, without a bias.
  void CreateAxes(const std::string& id) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(3);
    settings.mutable_stored_examples()->set_max_sample(1000);
    settings.mutable_learner()->set_bias_input(0);
    settings.mutable_learner()->mutable_classes()->set_max_classes(3);
    Create(id, settings);
  }
  void Teach(const std::string& id, const std::vector<v1::Example>& examples) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const v1::Example& example : examples) *request.add_examples() = example;
    const grpc::Status status = Learn(request);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  v1::AnalysisResult Analyze(const std::string& id, bool replace_weights = false) {
    v1::AnalyzeRequest request;
    request.set_model("models/" + id);
    request.set_replace_weights(replace_weights);
    grpc::ClientContext context;
    const auto stream = analysis_->Analyze(&context, request);
    v1::AnalyzeResponse response;
    v1::AnalysisResult result;
    while (stream->Read(&response)) {
      if (response.has_result()) result = response.result();
    }
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return result;
  }

  const std::vector<v1::Example> axes_ = {SparseExample(0, {{0, 1}}), SparseExample(1, {{1, 1}}),
                                          SparseExample(2, {{2, 1}})};
  std::unique_ptr<v1::AnalysisService::Stub> analysis_;
};

TEST_F(ClassAnalysisTest, TheSeparatorHasAVectorForEachClassAndSurvivesAKillWhenItReplacesThem) {
  CreateAxes("axes");
  Teach("axes", axes_);
  const v1::AnalysisResult result = Analyze("axes", true);
  // I - 1/3, whose Frobenius norm is sqrt(2), with s_y - s_r = 1 everywhere.
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_SEPARABLE);
  EXPECT_NEAR(result.analysis().margin_lower(), std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(result.update_bound(), 4, 1e-5);
  ASSERT_EQ(result.support_vectors_size(), 6);
  for (const v1::SupportVector& one : result.support_vectors()) {
    ASSERT_TRUE(one.has_rival());
    EXPECT_NE(one.rival(), one.example().example().label());
  }
  ASSERT_EQ(result.separator().vectors_size(), 3);
  for (int k = 0; k < 3; ++k) {
    const v1::WeightVector& vector = result.separator().vectors(k);
    ASSERT_THAT(vector.indices(), ::testing::ElementsAre(0, 1, 2));
    for (int j = 0; j < 3; ++j) EXPECT_NEAR(vector.values(j), (j == k ? 2 : -1) / 3.0, 1e-5);
  }
  const v1::Model replaced = Get("axes");
  EXPECT_EQ(replaced.revision(), result.new_revision());
  EXPECT_EQ(replaced.weights().SerializeAsString(), result.separator().SerializeAsString());
  server_.Kill();
  Restart();
  ConnectAnalysis();
  EXPECT_EQ(Get("axes").weights().SerializeAsString(), result.separator().SerializeAsString());
}

TEST_F(ClassAnalysisTest, AnExampleOfTwoClassesIsAProofThatNamesThem) {
  CreateAxes("axes");
  Teach("axes", axes_);
  Teach("axes", {SparseExample(2, {{0, 1}})});
  const v1::AnalysisResult result = Analyze("axes");
  EXPECT_EQ(result.analysis().separability(), v1::SEPARABILITY_NOT_SEPARABLE);
  ASSERT_EQ(result.certificate_size(), 2);
  for (const v1::CertificateEntry& one : result.certificate()) {
    EXPECT_EQ(one.multiplier(), "1");
    EXPECT_EQ(one.rival(), 2 - one.example().example().label());
  }
  EXPECT_TRUE(Get("axes").report().not_separable());
  EXPECT_FALSE(result.has_update_bound());
}

}  // namespace
}  // namespace perceptrond::testing
