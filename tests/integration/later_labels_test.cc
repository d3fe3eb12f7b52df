// Labels that come after their predictions: ids of Predict, in Learn and LearnStream.
#include <functional>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

class LaterLabelsTest : public ServerTest {
 protected:
  using ServerTest::ServerTest;

  v1::Model CreateKeeping(const std::string& id, const std::function<void(v1::Model&)>& set = {}) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_named();
    settings.mutable_stored_predictions();
    if (set != nullptr) set(settings);
    return Create(id, settings);
  }
  static v1::PredictRequest Asking(const std::string& id) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    request.set_include_prediction_ids(true);
    return request;
  }
  std::vector<std::string> Ids(const v1::PredictRequest& request) {
    v1::PredictResponse response;
    const grpc::Status status = Predict(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.prediction_ids().begin(), response.prediction_ids().end()};
  }
  // The ids of two mails.
  std::vector<std::string> TwoMails(const std::string& id) {
    v1::PredictRequest request = Asking(id);
    *request.add_examples() = NamedExample("", {{"free", 2.0F}, {"now", 1.0F}});
    *request.add_examples() = NamedExample("", {{"lunch", 1.0F}});
    for (v1::Example& example : *request.mutable_examples()) example.clear_target();
    return Ids(request);
  }
  static v1::LearnRequest Labels(const std::string& id, const std::vector<std::string>& ids,
                                 const std::vector<int>& labels) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const std::string& one : ids) request.mutable_columns()->add_prediction_ids(one);
    for (const int label : labels) request.mutable_columns()->add_labels(label);
    return request;
  }
  static v1::LearnStreamRequest OnStream(const std::vector<std::string>& ids,
                                         const std::vector<int>& labels,
                                         std::optional<int64_t> offset = std::nullopt) {
    v1::LearnStreamRequest request;
    *request.mutable_columns() = Labels("", ids, labels).columns();
    if (offset.has_value()) request.set_first_offset(*offset);
    return request;
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }
};

TEST_F(LaterLabelsTest, ALabelByIdIsTheExampleWithItsFeatures) {
  CreateKeeping("later");
  CreateKeeping("once");
  const std::vector<std::string> ids = TwoMails("later");
  ASSERT_EQ(ids.size(), 2U);
  v1::LearnResult later;
  ASSERT_TRUE(Learn(Labels("later", ids, {1, -1}), &later).ok());
  v1::LearnRequest at_once;
  at_once.set_model("models/once");
  *at_once.add_examples() = NamedExample("", {{"free", 2.0F}, {"now", 1.0F}});
  *at_once.add_examples() = NamedExample("", {{"lunch", 1.0F}});
  at_once.mutable_examples(0)->set_label(1);
  at_once.mutable_examples(1)->set_label(-1);
  v1::LearnResult once;
  ASSERT_TRUE(Learn(at_once, &once).ok());
  EXPECT_GT(once.updates(), 0U);
  EXPECT_EQ(later.SerializeAsString(), once.SerializeAsString());
  EXPECT_EQ(Weights("later"), Weights("once"));
}

TEST_F(LaterLabelsTest, EveryFormOfFeaturesIsKeptAsItCame) {
  const auto check = [this](const std::string& name, const std::function<void(v1::Model&)>& space,
                            const std::function<void(v1::PredictRequest&)>& rows) {
    CreateKeeping(name, space);
    CreateKeeping(name + "-at-once", space);
    v1::PredictRequest request = Asking(name);
    rows(request);
    v1::LearnRequest at_once;
    at_once.set_model("models/" + name + "-at-once");
    *at_once.mutable_examples() = request.examples();
    if (request.has_columns()) *at_once.mutable_columns() = request.columns();
    const std::vector<std::string> ids = Ids(request);
    ASSERT_THAT(ids, Each(Not(IsEmpty()))) << name;
    v1::LearnRequest later = Labels(name, ids, {});
    for (size_t i = 0; i < ids.size(); ++i) {
      const int label = i % 2 == 0 ? 1 : -1;
      later.mutable_columns()->add_labels(label);
      if (request.has_columns()) {
        at_once.mutable_columns()->add_labels(label);
      } else {
        at_once.mutable_examples(static_cast<int>(i))->set_label(label);
      }
    }
    v1::LearnResult result;
    ASSERT_TRUE(Learn(later, &result).ok()) << name;
    EXPECT_GT(result.updates(), 0U) << name;
    ASSERT_TRUE(Learn(at_once).ok()) << name;
    EXPECT_EQ(Weights(name), Weights(name + "-at-once")) << name;
  };
  const auto dense = [](auto& model) {
    model.mutable_feature_space()->mutable_dense()->set_dimension(3);
  };
  const auto hashed = [](auto& model) {
    model.mutable_feature_space()->mutable_hashed()->set_bits(8);
  };
  check("dense", dense, [](auto& request) {
    request.mutable_columns()->set_dense_width(3);
    for (const float value : {1.0F, 0.0F, 2.0F, -1.0F, 0.5F, 0.0F})
      request.mutable_columns()->add_values(value);
  });
  check("sparse", dense, [](auto& request) {
    *request.add_examples() = SparseExample(1, {{0, 2.0F}, {2, 1.0F}});
    *request.add_examples() = SparseExample(1, {{1, -1.0F}});
    // No features: the bias alone.
    request.add_examples();
  });
  check("names", hashed, [](auto& request) {
    *request.add_examples() = NamedExample("", {{"a", 1.0F}, {"b", 3.0F}});
    *request.add_examples() = NamedExample("", {{"b", -1.0F}});
    request.add_examples();
  });
  check("ones", hashed, [](auto& request) {
    for (const uint32_t end : {2, 3}) request.mutable_columns()->add_row_ends(end);
    for (const uint32_t index : {4, 7, 1}) request.mutable_columns()->add_indices(index);
  });
  check(
      "texts", [](auto& model) { model.mutable_feature_space()->mutable_text(); },
      [](auto& request) {
        request.mutable_columns()->add_texts("WIN a prize!");
        request.mutable_columns()->add_texts("");
      });
}

TEST_F(LaterLabelsTest, AnIdIsLearnedOnce) {
  CreateKeeping("m");
  const std::vector<std::string> ids = TwoMails("m");
  ASSERT_TRUE(Learn(Labels("m", {ids[0]}, {1})).ok());
  const grpc::Status again = Learn(Labels("m", ids, {1, -1}));
  EXPECT_EQ(again.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Reason(again), "UNKNOWN_PREDICTION");
  EXPECT_EQ(BadField(again), "columns.prediction_ids[0]");
  // The refused call has not used up the other one.
  EXPECT_TRUE(Learn(Labels("m", {ids[1]}, {-1})).ok());
  EXPECT_EQ(Get("m").report().examples(), 2U);
}

TEST_F(LaterLabelsTest, ARowErrorLeavesTheStreamOpenAndThePredictionWaiting) {
  CreateKeeping("m");
  const std::vector<std::string> ids = TwoMails("m");
  RawLearnStream stream(*learning_, "m", "p");
  stream.Open();
  const v1::LearnResult first = stream.Ask(OnStream({ids[0], "0.0.0.0", ids[1]}, {1, 1, 7}));
  EXPECT_EQ(first.examples(), 1U);
  ASSERT_EQ(first.row_errors_size(), 2);
  EXPECT_EQ(Reason(first.row_errors(0).status()), "UNKNOWN_PREDICTION");
  EXPECT_EQ(Reason(first.row_errors(1).status()), "UNKNOWN_LABEL");
  EXPECT_EQ(BadField(first.row_errors(1).status()), "columns.labels[2]");
  const v1::LearnResult second = stream.Ask(OnStream({ids[1]}, {-1}));
  EXPECT_EQ(second.row_errors_size(), 0);
  EXPECT_EQ(second.acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(LaterLabelsTest, NestedExamplesMayMixIdsAndFeatures) {
  CreateKeeping("m");
  const std::vector<std::string> ids = TwoMails("m");
  v1::LearnRequest request;
  request.set_model("models/m");
  *request.add_examples() = NamedExample("", {{"sale", 1.0F}});
  request.mutable_examples(0)->set_label(1);
  v1::Example& later = *request.add_examples();
  later.set_prediction_id(ids[1]);
  later.set_label(-1);
  v1::LearnResult result;
  ASSERT_TRUE(Learn(request, &result).ok());
  EXPECT_EQ(result.examples(), 2U);
  const grpc::Status again = Learn(request);
  EXPECT_EQ(BadField(again), "examples[1].prediction_id");
}

TEST_F(LaterLabelsTest, AMessageSentAgainIsADuplicateThoughItsIdsAreUsed) {
  CreateKeeping("m");
  const std::vector<std::string> ids = TwoMails("m");
  {
    RawLearnStream stream(*learning_, "m", "p");
    stream.Open();
    EXPECT_EQ(stream.Ask(OnStream(ids, {1, -1}, 0)).examples(), 2U);
  }
  RawLearnStream stream(*learning_, "m", "p");
  EXPECT_EQ(stream.Open().next_offset(), 2);
  const v1::LearnResult again = stream.Ask(OnStream(ids, {1, -1}, 0));
  EXPECT_EQ(again.duplicates(), 2U);
  EXPECT_EQ(again.row_errors_size(), 0);
  v1::LearnRequest unary = Labels("m", ids, {1, -1});
  unary.set_producer_id("p");
  unary.set_first_offset(0);
  v1::LearnResult result;
  ASSERT_TRUE(Learn(unary, &result).ok());
  EXPECT_EQ(result.duplicates(), 2U);
}

TEST_F(LaterLabelsTest, DurablePredictionsSurviveAKillAndOthersDoNot) {
  CreateKeeping("durable",
                [](auto& model) { model.mutable_stored_predictions()->set_durable(true); });
  CreateKeeping("lost");
  const std::vector<std::string> durable = TwoMails("durable");
  const std::vector<std::string> lost = TwoMails("lost");
  ASSERT_TRUE(Learn(Labels("durable", {durable[0]}, {1})).ok());
  server_.Kill();
  Restart();
  EXPECT_TRUE(Learn(Labels("durable", {durable[1]}, {-1})).ok());
  EXPECT_EQ(Reason(Learn(Labels("durable", {durable[0]}, {1}))), "UNKNOWN_PREDICTION");
  EXPECT_EQ(Reason(Learn(Labels("lost", {lost[0]}, {1}))), "UNKNOWN_PREDICTION");
  EXPECT_EQ(Get("durable").report().examples(), 2U);
}

TEST_F(LaterLabelsTest, PredictionsExpireWithTheirTimeAndTheirRoom) {
  CreateKeeping("short", [](auto& model) {
    model.mutable_stored_predictions()->mutable_max_age()->set_nanos(1);
  });
  EXPECT_EQ(Reason(Learn(Labels("short", {TwoMails("short")[0]}, {1}))), "PREDICTION_EXPIRED");
  CreateKeeping("small",
                [](auto& model) { model.mutable_stored_predictions()->set_max_bytes(600); });
  const std::string old = TwoMails("small")[0];
  const std::string newer = TwoMails("small")[1];
  EXPECT_EQ(Reason(Learn(Labels("small", {old}, {1}))), "PREDICTION_EXPIRED");
  EXPECT_TRUE(Learn(Labels("small", {newer}, {1})).ok());
}

TEST_F(LaterLabelsTest, IdsOfADeletedModelAndOfAnotherModelAreUnknown) {
  CreateKeeping("m");
  CreateKeeping("other");
  const std::vector<std::string> ids = TwoMails("m");
  EXPECT_EQ(Reason(Learn(Labels("other", {ids[0]}, {1}))), "UNKNOWN_PREDICTION");
  grpc::ClientContext context;
  v1::DeleteModelRequest remove;
  remove.set_name("models/m");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&context, remove, &empty).ok());
  CreateKeeping("m");
  EXPECT_EQ(Reason(Learn(Labels("m", {ids[0]}, {1}))), "UNKNOWN_PREDICTION");
}

TEST_F(LaterLabelsTest, AModelThatKeepsNothingRefusesToAnswerWithIds) {
  CreateDense("m", 3);
  v1::PredictResponse response;
  const grpc::Status status = Predict(Asking("m"), &response);
  EXPECT_EQ(Reason(status), "INVALID_FIELD");
  EXPECT_EQ(BadField(status), "include_prediction_ids");
}

TEST_F(LaterLabelsTest, IdsAreForLearningAndBesideNoOtherFeatures) {
  CreateKeeping("m");
  v1::PredictRequest predict = Asking("m");
  predict.mutable_columns()->add_prediction_ids("a");
  v1::PredictResponse response;
  EXPECT_EQ(BadField(Predict(predict, &response)), "columns.prediction_ids");
  v1::LearnRequest both = Labels("m", {"a"}, {1});
  both.mutable_columns()->add_row_ends(0);
  EXPECT_EQ(Reason(Learn(both)), "MALFORMED_COLUMNS");
  EXPECT_EQ(BadField(Learn(Labels("m", {"a", "b"}, {1}))), "columns.labels");
  v1::LearnRequest weights = Labels("m", {"a"}, {1});
  weights.mutable_columns()->add_weights(1);
  weights.mutable_columns()->add_weights(1);
  EXPECT_EQ(BadField(Learn(weights)), "columns.weights");
}

TEST_F(LaterLabelsTest, NamesOfLabelsAndClassesComeWithIdsToo) {
  CreateKeeping("m", [](auto& model) {
    model.mutable_learner()->mutable_classes()->set_max_classes(3);
    model.mutable_learner()->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  });
  v1::LearnRequest request = Labels("m", TwoMails("m"), {1, 0});
  request.mutable_columns()->add_label_names("lunch");
  request.mutable_columns()->add_label_names("sale");
  v1::LearnResult result;
  ASSERT_TRUE(Learn(request, &result).ok());
  EXPECT_THAT(Get("m").label_names(), ElementsAre("sale", "lunch"));
}

TEST_F(LaterLabelsTest, ARefusedCallKeepsNothing) {
  CreateKeeping("m", [](auto& model) { model.mutable_stored_predictions()->set_max_bytes(600); });
  const std::vector<std::string> ids = TwoMails("m");
  v1::PredictRequest refused = Asking("m");
  for (int i = 0; i < 10; ++i) *refused.add_examples() = NamedExample("", {{"a", 1.0F}});
  *refused.add_examples() = SparseExample(1, {{0, 1.0F}});
  v1::PredictResponse response;
  EXPECT_EQ(Reason(Predict(refused, &response)), "WRONG_FORM");
  EXPECT_TRUE(Learn(Labels("m", ids, {1, -1})).ok());
}

TEST_F(LaterLabelsTest, AStreamAnswersWithIdsButForRowsWithErrors) {
  CreateKeeping("m");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request = Asking("m");
  *request.add_examples() = NamedExample("", {{"a", 1.0F}});
  *request.add_examples() = SparseExample(1, {{0, 1.0F}});
  ASSERT_TRUE(stream->Write(request));
  v1::PredictResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.prediction_ids_size(), 2);
  EXPECT_THAT(response.prediction_ids(0), Not(IsEmpty()));
  EXPECT_THAT(response.prediction_ids(1), IsEmpty());
}

}  // namespace
}  // namespace perceptrond::testing
