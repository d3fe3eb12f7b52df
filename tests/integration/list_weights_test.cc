// ListWeights: a model's weights in pages of one revision.
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ListWeightsTest : public ServerTest {
 protected:
  ListWeightsTest() {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_hashed()->set_bits(20);
    Create("m", settings);
  }

  // Gives the first `count` features weights.
  void Fill(uint32_t count, int label = 1) {
    constexpr uint32_t kAtOnce = 100'000;
    for (uint32_t begin = 0; begin < count; begin += kAtOnce, label = -label) {
      v1::LearnRequest request;
      request.set_model("models/m");
      v1::ExampleColumns& columns = *request.mutable_columns();
      for (uint32_t i = begin; i < std::min(count, begin + kAtOnce); ++i) {
        columns.add_indices(i);
        columns.add_values(1 + static_cast<float>(i % 7));
      }
      columns.add_row_ends(columns.indices_size());
      columns.add_labels(label);
      ASSERT_TRUE(Learn(request).ok());
    }
  }
  // The page after `token`.
  grpc::Status List(const std::string& token, int size, v1::ListWeightsResponse& page) {
    grpc::ClientContext context;
    v1::ListWeightsRequest request;
    request.set_model("models/m");
    request.set_page_size(size);
    request.set_page_token(token);
    return models_->ListWeights(&context, request, &page);
  }
};

TEST_F(ListWeightsTest, PagesHaveEveryWeightOnceOfOneRevision) {
  Fill(5'000);
  const v1::Model whole = Get("m");
  ASSERT_EQ(whole.weights().vectors_size(), 1);
  v1::WeightVector all;
  v1::ListWeightsResponse page;
  int pages = 0;
  do {
    const std::string token = page.next_page_token();
    page.Clear();
    const grpc::Status status = List(token, 1'500, page);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(page.revision(), whole.revision());
    EXPECT_EQ(page.vectors(), 1U);
    EXPECT_LE(page.weights().vectors(0).values_size(), 1'500);
    all.MergeFrom(page.weights().vectors(0));
    ++pages;
  } while (!page.next_page_token().empty());
  EXPECT_GE(pages, 4);
  EXPECT_EQ(all.SerializeAsString(), whole.weights().vectors(0).SerializeAsString());
  EXPECT_EQ(List("no token", 1'500, page).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ListWeightsTest, PagesOfAModelThatLearnsAreAborted) {
  Fill(100);
  v1::ListWeightsResponse page;
  ASSERT_TRUE(List("", 10, page).ok());
  Fill(1, -1);
  const grpc::Status status = List(page.next_page_token(), 10, page);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
  EXPECT_EQ(Reason(status), "REVISION_MISMATCH");
}

TEST_F(ListWeightsTest, WeightsTooLargeForOneAnswerAreLeftToPages) {
  Fill(700'000);
  grpc::ClientContext context;
  v1::GetModelRequest request;
  request.set_name("models/m");
  request.set_view(v1::MODEL_VIEW_WEIGHTS);
  v1::Model model;
  const grpc::Status status = models_->GetModel(&context, request, &model);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Reason(status), "ANSWER_TOO_LARGE");
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("ListWeights"));
}

}  // namespace
}  // namespace perceptrond::testing
