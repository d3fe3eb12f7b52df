// Managing models over a real connection: masks, etags, watching, and pages of weights of one revision.
#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class ModelServiceTest : public ServerTest {
 protected:
  v1::Model Update(const std::string& request) {
    return AnswerOf<v1::Model>("ModelService/UpdateModel", request);
  }
};

TEST_F(ModelServiceTest, UpdateTakesTheMaskedFieldsAndAnOldEtagChangesNothing) {
  const v1::Model created = CreateDense("spam", 3);
  const std::string change =
      "model { name: 'models/spam' description: 'mail' margin_of_interest: 0.5 } ";
  v1::Model updated = Update(change + "update_mask { paths: 'description' }");
  EXPECT_EQ(updated.description(), "mail");
  EXPECT_EQ(updated.margin_of_interest(), 0);
  EXPECT_NE(updated.etag(), created.etag());
  updated = Update(change + "update_mask { paths: '*' }");
  EXPECT_EQ(updated.margin_of_interest(), 0.5);
  EXPECT_TRUE(updated.report().has_margin_refuted());
  EXPECT_EQ(Call("ModelService/UpdateModel",
                 absl::StrCat("model { name: 'models/spam' description: 'other' etag: '",
                              created.etag(), "' }")),
            "ABORTED ETAG_MISMATCH");
  EXPECT_EQ(Get("spam").description(), "mail");
  EXPECT_EQ(Call("ModelService/DeleteModel",
                 absl::StrCat("name: 'models/spam' etag: '", updated.etag(), "'")),
            "OK");
  const std::string gone = "name: 'models/spam' ";
  EXPECT_EQ(Call("ModelService/DeleteModel", gone), "NOT_FOUND MODEL_NOT_FOUND");
  EXPECT_EQ(Call("ModelService/DeleteModel", gone + "allow_missing: true"), "OK");
}

TEST_F(ModelServiceTest, ValidatingChangesNothing) {
  const std::string settings =
      "model_id: 'v' validate_only: true model { feature_space { dense { dimension: 3 } } }";
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/CreateModel", settings).name(), "models/v");
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/v'"), "NOT_FOUND MODEL_NOT_FOUND");
  const v1::Model created = CreateDense("spam", 3);
  EXPECT_EQ(AnswerOf<v1::Model>("ModelService/UpdateModel",
                                "model { name: 'models/spam' description: 'mail' } "
                                "update_mask { paths: 'description' } validate_only: true")
                .description(),
            "mail");
  EXPECT_EQ(Get("spam").description(), "");
  EXPECT_EQ(Get("spam").etag(), created.etag());
}

TEST_F(ModelServiceTest, AWatcherSeesTheReportChangeAndTheModelReplacedHoweverLongItWouldWait) {
  for (const char* interval : {"nanos: 50000000", "seconds: 86400"}) {
    CreateDense("m", 1);
    grpc::ClientContext context;
    const auto watch =
        models_->WatchModel(&context, FromText<v1::WatchModelRequest>(absl::StrCat(
                                          "name: 'models/m' min_interval { ", interval, " }")));
    v1::WatchModelResponse response;
    ASSERT_TRUE(watch->Read(&response));
    EXPECT_EQ(response.model().revision(), 0);
    if (interval[0] == 'n') {
      Teach("m", "examples { dense { values: 1 } label: 1 }");
      ASSERT_TRUE(watch->Read(&response));
      EXPECT_EQ(response.model().revision(), 1);
      EXPECT_EQ(response.model().report().examples(), 1);
    }
    EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/m'"), "OK");
    EXPECT_FALSE(watch->Read(&response));
    EXPECT_EQ(Outcome(watch->Finish()), "NOT_FOUND MODEL_NOT_FOUND");
  }
}

class ListWeightsTest : public ServerTest {
 protected:
  ListWeightsTest() { Create("m", "feature_space { hashed { bits: 20 } }"); }

  // Gives the first `count` features weights.
  void Fill(uint32_t count, int label = 1) {
    v1::LearnRequest request;
    request.set_model("models/m");
    v1::ExampleColumns& columns = *request.mutable_columns();
    for (uint32_t i = 0; i < count; ++i) {
      columns.add_indices(i);
      columns.add_values(1 + static_cast<float>(i % 7));
    }
    columns.add_row_ends(count);
    columns.add_labels(label);
    ASSERT_TRUE(Learn(request).ok());
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

}  // namespace
}  // namespace perceptrond::testing
