// perceptronctl and the client library: one stream of examples that several models learn.
#include <vector>

#include "client/connection.h"
#include "client/error.h"
#include "client/learn_stream.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SeveralModelsCtlTest : public CtlTest {
 protected:
  SeveralModelsCtlTest() : data_(Write("and.svm", and_)) {
    for (const char* create :
         {"create a --dimension 2", "create arow --dimension 2 --learner arow",
          "create alone --dimension 2", "create arow-alone --dimension 2 --learner arow"})
      EXPECT_EQ(Ctl(create).exit_code, 0) << create;
  }
  uint64_t Examples(const std::string& id) { return Get(id).report().examples(); }
  std::string Weights(const std::string& id) { return Get(id).weights().SerializeAsString(); }

  const std::string data_;
  const std::string flags_ = " --index-base 1 ";
};

TEST_F(SeveralModelsCtlTest, EachModelLearnsWhatItWouldAlone) {
  const CommandResult both = Ctl("learn a --also arow " + data_ + flags_ + "--passes 3");
  EXPECT_EQ(both.exit_code, 0) << both.out;
  EXPECT_THAT(both.out,
              AllOf(ContainsRegex("a: pass 3"), ContainsRegex("arow: pass 3"),
                    HasSubstr("models/a: 12 examples"), HasSubstr("models/arow: 12 examples")));
  EXPECT_EQ(Ctl("learn alone " + data_ + flags_ + "--passes 3").exit_code, 0);
  EXPECT_EQ(Ctl("learn arow-alone " + data_ + flags_ + "--passes 3").exit_code, 0);
  EXPECT_EQ(Weights("a"), Weights("alone"));
  EXPECT_EQ(Weights("arow"), Weights("arow-alone"));
  EXPECT_NE(Weights("a"), Weights("arow"));
}

TEST_F(SeveralModelsCtlTest, TheSummaryAsJsonHasEachModel) {
  const CommandResult both = CtlOut("learn a --also models/arow " + data_ + flags_ + "-o json");
  EXPECT_EQ(both.exit_code, 0);
  const google::protobuf::Struct all = Object(both.out);
  const auto& models = all.fields().at("models").list_value().values();
  ASSERT_EQ(models.size(), 2);
  EXPECT_EQ(models[0].struct_value().fields().at("model").string_value(), "models/a");
  EXPECT_EQ(models[1].struct_value().fields().at("model").string_value(), "models/arow");
  for (const auto& model : models) EXPECT_EQ(Number(model.struct_value(), "examples"), 4);
}

TEST_F(SeveralModelsCtlTest, ARunThatIsRepeatedGivesEachModelWhatItLacks) {
  const std::string producer = "--producer p --start-offset 0 ";
  EXPECT_EQ(Ctl("learn a " + data_ + flags_ + producer).exit_code, 0);
  const CommandResult both = Ctl("learn a --also arow " + data_ + flags_ + producer);
  EXPECT_EQ(both.exit_code, 0) << both.out;
  EXPECT_THAT(both.out, HasSubstr("models/a: 0 examples"));
  EXPECT_EQ(Examples("a"), 4U);
  EXPECT_EQ(Examples("arow"), 4U);
  const CommandResult unclear = Ctl("learn a --also alone " + data_ + flags_ + "--producer p");
  EXPECT_EQ(unclear.exit_code, 1);
  EXPECT_THAT(unclear.out, HasSubstr("state the offset of the first example"));
}

TEST_F(SeveralModelsCtlTest, WithoutAProducerEveryRunIsLearnedAlsoByAModelThatIsNew) {
  EXPECT_EQ(Ctl("learn a " + data_ + flags_).exit_code, 0);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Ctl("learn a --also arow " + data_ + flags_).exit_code, 0);
  EXPECT_EQ(Ctl("delete arow --yes").exit_code, 0);
  EXPECT_EQ(Ctl("create arow --dimension 2").exit_code, 0);
  EXPECT_EQ(Ctl("learn a --also arow " + data_ + flags_).exit_code, 0);
  EXPECT_EQ(Examples("a"), 16U);
  EXPECT_EQ(Examples("arow"), 4U);
}

TEST_F(SeveralModelsCtlTest, UntilConvergedWaitsForTheLastModel) {
  EXPECT_EQ(Ctl("learn a " + data_ + flags_ + "--until-converged").exit_code, 0);
  const CommandResult both = Ctl("learn a --also alone " + data_ + flags_ + "--until-converged");
  EXPECT_EQ(both.exit_code, 0) << both.out;
  EXPECT_THAT(both.out, HasSubstr("a: pass 2"));
  EXPECT_TRUE(Get("a").report().last_pass().converged());
  EXPECT_TRUE(Get("alone").report().last_pass().converged());
}

TEST_F(SeveralModelsCtlTest, ErrorsSayWhichModel) {
  EXPECT_EQ(Ctl("create wide --dimension 3").exit_code, 0);
  const std::string wide = Write("wide.svm", and_ + "+1 3:1\n");
  const CommandResult refused = Ctl("learn wide --also a --unseen-indices refuse " + wide + flags_);
  EXPECT_EQ(refused.exit_code, 3) << refused.out;
  EXPECT_THAT(refused.out, HasSubstr("a: validation error: "));
  EXPECT_EQ(Examples("wide"), 5U);
  EXPECT_EQ(Examples("a"), 4U);
  EXPECT_THAT(Ctl("learn a --also missing " + data_ + flags_).out, HasSubstr("missing"));
  EXPECT_THAT(Ctl("learn a --also a " + data_ + flags_).out, HasSubstr("additional_models"));
  EXPECT_EQ(Ctl("learn a --also arow --analyze " + data_ + flags_).exit_code, 2);
}

TEST_F(SeveralModelsCtlTest, AnExampleBeyondALaterModelEndsTheRunToo) {
  EXPECT_EQ(Ctl("create wide --dimension 3").exit_code, 0);
  const std::string wide = Write("wide.svm", and_ + "+1 3:1\n" + and_);
  const CommandResult stopped = Ctl("learn wide --also a " + wide + flags_);
  EXPECT_EQ(stopped.exit_code, 2) << stopped.out;
  EXPECT_THAT(stopped.out,
              AllOf(HasSubstr("wide.svm:5: models/a: feature 3 needs a dimension of at least 3"),
                    HasSubstr("the model's dimension is 2")));
  EXPECT_EQ(Examples("wide"), 4U);
  EXPECT_EQ(Examples("a"), 4U);
}

TEST_F(SeveralModelsCtlTest, NoModelLearnsIfOneTakesOtherExamplesOrLabels) {
  for (const char* other : {"other --named", "other --text", "other --dimension 2 --classes 2",
                            "other --dimension 2 --labels x,y --learner perceptron"}) {
    EXPECT_EQ(Ctl(std::string("create ") + other).exit_code, 0) << other;
    EXPECT_EQ(Ctl("create named --dimension 2 --labels y,x").exit_code, 0);
    const bool labels = absl::string_view(other).find("--labels") != absl::string_view::npos;
    const std::string first = labels ? "named" : "a";
    const CommandResult refused = Ctl("learn " + first + " --also other " + data_ + flags_);
    EXPECT_EQ(refused.exit_code, 2) << other << refused.out;
    EXPECT_THAT(refused.out, HasSubstr("models/other")) << other;
    EXPECT_EQ(Examples(first), 0U) << other;
    EXPECT_EQ(Ctl("delete other --yes").exit_code + Ctl("delete named --yes").exit_code, 0);
  }
}

TEST_F(SeveralModelsCtlTest, AStreamSurvivesTheDeathOfTheServerExactlyOnceInEachModel) {
  constexpr int kRows = 3000;
  client::LearnOptions options;
  options.additional_models = {"arow"};
  options.rows_per_message = 10;
  options.result_detail = v1::RESULT_DETAIL_UPDATES;
  std::vector<size_t> answers(2);
  options.on_result = [&](const client::LearnAnswer& answer) {
    answers[answer.model] += answer.tags.size();
  };
  auto stream = client::LearnStream::Open(client::MakeConnection(server_.address()), "a", options);
  ASSERT_TRUE(stream.ok()) << stream.status();
  EXPECT_EQ((*stream)->opened(1).model_uid(), Get("arow").uid());
  for (int i = 0; i < kRows; ++i) {
    if (i == kRows / 3 || i == kRows / 2) {
      server_.Kill();
      server_.Restart();
    }
    client::Row row;
    row.indices = {0, 1};
    row.values = {static_cast<float>(i * 37 % 11 - 5), static_cast<float>(i * 53 % 7 - 3)};
    row.label = row.values[0] + 2 * row.values[1] > 0 || i % 13 == 0 ? 1 : -1;
    ASSERT_TRUE((*stream)->Push(row).ok());
  }
  ASSERT_TRUE((*stream)->MarkPass().ok());
  EXPECT_EQ((*stream)->last_pass(1).number(), 1);
  const auto totals = (*stream)->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_GE(totals->reconnects, 1);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(answers[i], size_t{kRows});
    const client::LearnTotals one = (*stream)->totals(i);
    EXPECT_EQ(one.acknowledged_offset, kRows - 1);
    EXPECT_EQ(one.examples + one.duplicates + one.lost_answers, uint64_t{kRows});
  }
  Connect();
  for (const char* id : {"a", "arow"}) EXPECT_LE(Examples(id), uint64_t{kRows}) << id;
}

}  // namespace
}  // namespace perceptrond::testing
