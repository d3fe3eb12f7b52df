// A model's weights in pages of one revision.
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ListWeightsTest : public ServerTest {
 protected:
  ListWeightsTest() { Create("m", "feature_space { hashed { bits: 20 } }"); }

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
  std::string List(const std::string& token, int size, v1::ListWeightsResponse* page) {
    return Call("ModelService/ListWeights",
                absl::StrCat("model: 'models/m' page_size: ", size, " page_token: '", token, "'"),
                page);
  }
};

TEST_F(ListWeightsTest, PagesHaveEveryWeightOnceOfOneRevisionAndEndWhenTheModelLearns) {
  Fill(5'000);
  const v1::Model whole = Get("m");
  v1::WeightVector all;
  v1::ListWeightsResponse page;
  int pages = 0;
  do {
    ASSERT_EQ(List(page.next_page_token(), 1'500, &page), "OK");
    EXPECT_EQ(page.revision(), whole.revision());
    EXPECT_EQ(page.vectors(), 1U);
    EXPECT_LE(page.weights().vectors(0).values_size(), 1'500);
    all.MergeFrom(page.weights().vectors(0));
    ++pages;
  } while (!page.next_page_token().empty());
  EXPECT_EQ(pages, 4);
  EXPECT_EQ(all.SerializeAsString(), whole.weights().vectors(0).SerializeAsString());
  EXPECT_EQ(List("no token", 1'500, &page), "INVALID_ARGUMENT INVALID_FIELD page_token");
  ASSERT_EQ(List("", 10, &page), "OK");
  Fill(1, -1);
  EXPECT_EQ(List(page.next_page_token(), 10, &page), "ABORTED REVISION_MISMATCH");
}

TEST_F(ListWeightsTest, WeightsTooLargeForOneAnswerAreLeftToPages) {
  Fill(700'000);
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/m' view: MODEL_VIEW_WEIGHTS"),
            "RESOURCE_EXHAUSTED ANSWER_TOO_LARGE");
}

}  // namespace
}  // namespace perceptrond::testing
