// A learn stream whose examples several models learn.
#include <map>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

class SeveralModelsTest : public ServerTest {
 protected:
  SeveralModelsTest() {
    for (const char* name : {"a", "b"}) CreateDense(name, 2);
    v1::Model hashed;
    hashed.mutable_feature_space()->mutable_hashed()->set_bits(10);
    Create("hashed", hashed);
    v1::Model aggressive;
    aggressive.mutable_feature_space()->mutable_dense()->set_dimension(2);
    aggressive.mutable_learner()->mutable_passive_aggressive();
    Create("aggressive", aggressive);
  }
  // Rows 10 n to 10 n + 9 of a noisy line.
  static v1::LearnStreamRequest Message(int n, std::optional<int64_t> offset = std::nullopt) {
    v1::LearnStreamRequest request;
    v1::ExampleColumns& columns = *request.mutable_columns();
    for (int i = 10 * n; i < 10 * n + 10; ++i) {
      const auto x = static_cast<float>(i * 37 % 11 - 5);
      const auto y = static_cast<float>(i * 53 % 7 - 3);
      columns.add_indices(0);
      columns.add_values(x);
      columns.add_indices(1);
      columns.add_values(y);
      columns.add_row_ends(columns.indices_size());
      columns.add_labels(x + 2 * y > 0 || i % 13 == 0 ? 1 : -1);
    }
    if (offset.has_value()) request.set_first_offset(*offset);
    return request;
  }
  static void AddModels(v1::LearnStreamRequest& first, const std::vector<std::string>& ids) {
    for (const std::string& id : ids) first.add_additional_models("models/" + id);
  }
  // The results of one message, by model_number; the opening answer is left in answer().
  static std::vector<v1::LearnResult> Results(RawLearnStream& stream, size_t models) {
    std::vector<v1::LearnResult> results;
    while (results.size() < models) {
      results.push_back(stream.Result());
      EXPECT_EQ(results.back().model_number(), results.size() - 1);
      EXPECT_EQ(results.back().message_number(), results.front().message_number());
    }
    return results;
  }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }
  // What a stream of its own makes of the model.
  std::string LearnedAlone(const std::string& id, int messages) {
    RawLearnStream stream(*learning_, id);
    stream.Open();
    for (int n = 0; n < messages; ++n) stream.Ask(Message(n));
    EXPECT_TRUE(stream.Finish().ok());
    return Weights(id);
  }
  grpc::Status EndOf(const v1::LearnStreamRequest& first) {
    RawLearnStream stream(*learning_, "a");
    stream.Send(first);
    EXPECT_FALSE(stream.Read());
    return stream.Finish();
  }
};

TEST_F(SeveralModelsTest, EachModelLearnsWhatAStreamOfItsOwnTeaches) {
  constexpr int kMessages = 20;
  RawLearnStream stream(*learning_, "a");
  AddModels(stream.first(), {"hashed", "aggressive"});
  stream.Send(stream.first());
  Results(stream, 3);
  EXPECT_EQ(stream.answer().opened().model_uid(), Get("a").uid());
  ASSERT_EQ(stream.answer().additional_opened_size(), 2);
  EXPECT_EQ(stream.answer().additional_opened(0).model_uid(), Get("hashed").uid());
  EXPECT_EQ(stream.answer().additional_opened(1).model_uid(), Get("aggressive").uid());
  std::map<std::string, uint64_t> updates;
  for (int n = 0; n < kMessages; ++n) stream.Send(Message(n));
  for (int n = 0; n < kMessages; ++n) {
    const std::vector<v1::LearnResult> results = Results(stream, 3);
    for (const v1::LearnResult& result : results) EXPECT_EQ(result.examples(), 10U);
    updates["a"] += results[0].updates();
    updates["hashed"] += results[1].updates();
    updates["aggressive"] += results[2].updates();
  }
  EXPECT_TRUE(stream.Finish().ok());
  for (const char* id : {"a", "hashed", "aggressive"}) {
    EXPECT_EQ(Get(id).report().updates(), updates[id]) << id;
    const std::string learned = Weights(id);
    v1::Model settings = Get(id);
    settings.clear_name();
    const std::string alone = std::string(id) + "-alone";
    settings.clear_weights();
    Create(alone, settings);
    EXPECT_EQ(learned, LearnedAlone(alone, kMessages)) << id;
  }
}

TEST_F(SeveralModelsTest, EachModelHasLabelsOfItsOwn) {
  RawLearnStream stream(*learning_, "a");
  AddModels(stream.first(), {"b"});
  stream.Send(stream.first());
  Results(stream, 2);
  v1::LearnStreamRequest request = Message(0);
  for (const int label : request.columns().labels())
    request.mutable_columns()->add_additional_labels(-label);
  stream.Send(request);
  Results(stream, 2);
  const v1::WeightVector a = Get("a").weights().vectors(0);
  const v1::WeightVector b = Get("b").weights().vectors(0);
  ASSERT_GT(a.values_size(), 0);
  ASSERT_EQ(a.values_size(), b.values_size());
  for (int i = 0; i < a.values_size(); ++i) EXPECT_EQ(a.values(i), -b.values(i));
  request.mutable_columns()->set_additional_labels(3, 5);
  stream.Send(request);
  const std::vector<v1::LearnResult> results = Results(stream, 2);
  EXPECT_EQ(results[0].row_errors_size(), 0);
  ASSERT_EQ(results[1].row_errors_size(), 1);
  EXPECT_EQ(BadField(results[1].row_errors(0).status()), "columns.additional_labels[3]");
  request.mutable_columns()->add_additional_labels(1);
  stream.Send(request);
  for (const v1::LearnResult& result : Results(stream, 2))
    EXPECT_EQ(Reason(result.error()), "MALFORMED_COLUMNS");
  EXPECT_TRUE(stream.Finish().ok());
  v1::LearnRequest unary;
  unary.set_model("models/a");
  *unary.mutable_columns() = request.columns();
  EXPECT_EQ(BadField(Learn(unary)), "columns.additional_labels");
}

TEST_F(SeveralModelsTest, WhatOneModelRefusesTheOthersLearn) {
  grpc::ClientContext context;
  v1::FreezeModelRequest freeze;
  freeze.set_name("models/b");
  v1::Model frozen;
  ASSERT_TRUE(models_->FreezeModel(&context, freeze, &frozen).ok());
  RawLearnStream stream(*learning_, "a", "p");
  AddModels(stream.first(), {"b"});
  stream.Send(stream.first());
  Results(stream, 2);
  stream.Send(Message(0, 0));
  std::vector<v1::LearnResult> results = Results(stream, 2);
  EXPECT_EQ(results[0].examples(), 10U);
  EXPECT_EQ(Reason(results[1].error()), "MODEL_FROZEN");
  EXPECT_EQ(results[1].acknowledged_offset(), -1);
  // The frozen model lacks the first message: the next one is a gap.
  stream.Send(Message(1));
  results = Results(stream, 2);
  EXPECT_EQ(results[0].acknowledged_offset(), 19);
  EXPECT_TRUE(results[1].has_error());
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(SeveralModelsTest, ModelsAtDifferentPositionsLearnWhatEachLacks) {
  {
    RawLearnStream alone(*learning_, "a", "p");
    alone.Open();
    alone.Ask(Message(0, 0));
  }
  RawLearnStream stream(*learning_, "a", "p");
  AddModels(stream.first(), {"b"});
  stream.Send(stream.first());
  Results(stream, 2);
  EXPECT_EQ(stream.answer().opened().next_offset(), 10);
  EXPECT_EQ(stream.answer().additional_opened(0).next_offset(), 0);
  stream.Send(Message(0, 0));
  std::vector<v1::LearnResult> results = Results(stream, 2);
  EXPECT_EQ(results[0].duplicates(), 10U);
  EXPECT_EQ(results[1].examples(), 10U);
  stream.Send(Message(1));
  results = Results(stream, 2);
  EXPECT_EQ(results[0].examples(), 10U);
  EXPECT_EQ(results[1].examples(), 10U);
  EXPECT_TRUE(stream.Finish().ok());
  RawLearnStream unsaid(*learning_, "a", "p");
  AddModels(unsaid.first(), {"b"});
  unsaid.Send(unsaid.first());
  Results(unsaid, 2);
  unsaid.Send(Message(2));
  EXPECT_FALSE(unsaid.Read());
  EXPECT_EQ(BadField(unsaid.Finish()), "first_offset");
}

// Kills the server again and again, and sends from the least position on.
TEST_F(SeveralModelsTest, EachExampleIsLearnedOnceByEachModelAcrossKills) {
  constexpr int kMessages = 120;
  const std::vector<std::string> ids = {"a", "hashed", "aggressive"};
  int64_t acknowledged = 0;
  for (int kill = 0; acknowledged < 10 * kMessages; ++kill) {
    RawLearnStream stream(*learning_, "a", "p");
    AddModels(stream.first(), {"hashed", "aggressive"});
    stream.Send(stream.first());
    Results(stream, 3);
    int64_t least = stream.answer().opened().next_offset();
    for (const v1::StreamOpened& opened : stream.answer().additional_opened())
      least = std::min(least, opened.next_offset());
    // Correct rows may be lost with the process only before they were acknowledged.
    ASSERT_GE(least, acknowledged);
    acknowledged = least;
    const auto first = static_cast<int>(least / 10);
    const int end = kill < 3 ? std::min(first + 30, kMessages) : kMessages;
    for (int n = first; n < end; ++n) stream.Send(Message(n, 10 * n));
    // Unanswered messages are learned by some models, by others not.
    for (int n = first; n < end; ++n) {
      if (kill < 3 && n == first + 15) break;
      for (const v1::LearnResult& result : Results(stream, 3)) {
        ASSERT_FALSE(result.has_error()) << result.error().message();
        acknowledged = 10 * (n + 1);
        ASSERT_GE(result.acknowledged_offset() + 1, acknowledged);
      }
    }
    if (acknowledged == 10 * kMessages) break;
    server_.Kill();
    stream.Cancel();
    (void)stream.Finish();
    Restart();
  }
  for (const std::string& id : ids) {
    v1::Model settings = Get(id);
    EXPECT_EQ(settings.report().examples(), 10U * kMessages) << id;
    const std::string learned = Weights(id);
    settings.clear_weights();
    settings.clear_name();
    Create(id + "-alone", settings);
    EXPECT_EQ(learned, LearnedAlone(id + "-alone", kMessages)) << id;
  }
}

TEST_F(SeveralModelsTest, ReportsAreOfEachModel) {
  RawLearnStream stream(*learning_, "a");
  AddModels(stream.first(), {"b"});
  stream.first().set_include_report(true);
  stream.Send(stream.first());
  Results(stream, 2);
  stream.Send(Message(0));
  Results(stream, 2);
  EXPECT_EQ(stream.answer().report().examples(), 10U);
  ASSERT_EQ(stream.answer().additional_reports_size(), 1);
  EXPECT_EQ(stream.answer().additional_reports(0).examples(), 10U);
}

TEST_F(SeveralModelsTest, AModelThatEndsItsPartEndsTheStream) {
  RawLearnStream stream(*learning_, "a");
  AddModels(stream.first(), {"b"});
  stream.Send(stream.first());
  Results(stream, 2);
  grpc::ClientContext context;
  v1::DeleteModelRequest remove;
  remove.set_name("models/b");
  google::protobuf::Empty empty;
  ASSERT_TRUE(models_->DeleteModel(&context, remove, &empty).ok());
  EXPECT_FALSE(stream.Read());
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_NOT_FOUND");
}

TEST_F(SeveralModelsTest, SettingsThatDoNotFitEndTheStream) {
  const auto refused = [this](const std::string& field,
                              const std::function<void(v1::LearnStreamRequest&)>& set) {
    v1::LearnStreamRequest first;
    first.set_model("models/a");
    set(first);
    const grpc::Status status = EndOf(first);
    EXPECT_EQ(Reason(status), "INVALID_FIELD") << field;
    EXPECT_EQ(BadField(status), field);
  };
  refused("additional_models[0]", [](auto& first) { first.add_additional_models("models/a"); });
  refused("additional_models[1]", [](auto& first) {
    first.add_additional_models("models/b");
    first.add_additional_models("models/b");
  });
  refused("additional_models[0]", [](auto& first) { first.add_additional_models("b"); });
  refused("additional_models", [](auto& first) {
    for (int i = 0; i < 64; ++i) first.add_additional_models("models/m" + std::to_string(i));
  });
  refused("producer.additional_resumes", [](auto& first) {
    first.add_additional_models("models/b");
    first.mutable_producer()->set_id("p");
    first.mutable_producer()->add_additional_resumes();
    first.mutable_producer()->add_additional_resumes();
  });
  v1::LearnStreamRequest missing;
  missing.set_model("models/a");
  missing.add_additional_models("models/none");
  EXPECT_EQ(Reason(EndOf(missing)), "MODEL_NOT_FOUND");
}

TEST_F(SeveralModelsTest, AnAdditionalModelMayBeClaimedToo) {
  RawLearnStream stream(*learning_, "a", "p");
  AddModels(stream.first(), {"b"});
  v1::Producer::Resume& resume = *stream.first().mutable_producer()->add_additional_resumes();
  resume.set_model_uid("of another");
  stream.Send(stream.first());
  EXPECT_FALSE(stream.Read());
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_REPLACED");
}

}  // namespace
}  // namespace perceptrond::testing
