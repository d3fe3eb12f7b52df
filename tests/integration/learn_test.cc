// Learning, predicting and explaining over a real connection, in calls and on streams: answers, positions, passes, how long a stream
// lasts, and the table of names of a stream. tests/fuzz/forms_fuzz.cc has the meaning of all forms of rows,
// core/learner/worked_examples_test.cc the textbook's numbers, and core/model/explain_test.cc every rule.
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;

// Points on a line: 25 updates to theta = -3, theta_0 = 7, worked by hand.
constexpr char kLine[] = " columns { dense_width: 1 values: [1, 2, 3, 4] labels: [1, 1, -1, -1] } ";

class LearnStreamTest : public ServerTest {
 protected:
  explicit LearnStreamTest(std::vector<std::string> flags = {}) : ServerTest(std::move(flags)) {
    CreateDense("line", 1);
  }
  v1::LearnResult Learn(const std::string& request) {
    return AnswerOf<v1::LearnResponse>("LearningService/Learn", request).result();
  }
};

TEST_F(LearnStreamTest, EachMessageIsAnsweredWithWhatHappenedBeforeEachExampleWasLearned) {
  RawLearnStream stream(*learning_, "line");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.model_uid(), Get("line").uid());
  EXPECT_EQ(opened.revision(), 0);
  EXPECT_EQ(opened.next_offset(), 0);
  CreateDense("unary", 1);
  const v1::LearnResult results[] = {stream.Ask(kLine),
                                     Learn(absl::StrCat("model: 'models/unary'", kLine))};
  for (const v1::LearnResult& result : results) {
    // From zero: s = 0 is a mistake (w = 1, b = 1); then 2 + 1 = 3 is right; 3 + 1 = 4 is a mistake
    // (w = -2, b = 0); then -8 is right.
    EXPECT_THAT(result.scores(), ElementsAre(0, 3, 4, -8));
    EXPECT_THAT(result.predicted_labels(), ElementsAre(-1, 1, 1, -1));
    EXPECT_THAT(result.updated_rows(), ElementsAre(0, 2));
    EXPECT_THAT(result.update_revisions(), ElementsAre(1, 2));
    EXPECT_EQ(result.examples(), 4);
    EXPECT_EQ(result.mistakes(), 2);
    EXPECT_EQ(result.updates(), 2);
    EXPECT_EQ(result.revision(), 2);
  }
  EXPECT_FALSE(stream.answer().has_report());
  EXPECT_EQ(results[0].message_number(), 1);
  EXPECT_EQ(results[0].acknowledged_offset(), 3);
  EXPECT_TRUE(stream.Finish().ok());
  RawLearnStream updates_alone(*learning_, "unary");
  updates_alone.With("result_detail: RESULT_DETAIL_UPDATES").Open();
  const v1::LearnResult result = updates_alone.Ask(kLine);
  EXPECT_EQ(result.scores_size(), 0);
  EXPECT_GT(result.updated_rows_size(), 0);
  EXPECT_TRUE(updates_alone.Finish().ok());
  // Several classes have margins.
  Create("classes", "feature_space { text {} } learner { classes { max_classes: 3 } }");
  const v1::LearnResult of_class = Learn("model: 'models/classes' examples { text: 'a' label: 2 }");
  EXPECT_EQ(of_class.margins_size(), 1);
  EXPECT_EQ(of_class.scores_size(), 0);
}

TEST_F(LearnStreamTest, AnswersCarryTheReportAsOfTheirLastResultIfTheFirstMessageAsksForIt) {
  RawLearnStream stream(*learning_, "line");
  stream.With("include_report: true").Open();
  for (int message = 0; message < 8; ++message)
    stream.Send(FromText<v1::LearnStreamRequest>(kLine));
  for (int message = 0; message < 8; ++message) {
    stream.Result();
    const v1::ConvergenceReport& report = stream.answer().report();
    const v1::LearnResult& last = *stream.answer().results().rbegin();
    EXPECT_EQ(report.updates(), static_cast<uint64_t>(last.revision()));
    EXPECT_EQ(report.examples(), static_cast<uint64_t>(last.acknowledged_offset()) + 1);
    EXPECT_TRUE(report.has_margin_ceiling());
  }
  const std::string latest = stream.answer().report().ShortDebugString();
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(latest, Get("line").report().ShortDebugString());
}

// On streams and in calls alike; core/model/exactly_once_test.cc has the rest.
TEST_F(LearnStreamTest, ReplayedExamplesAreAcknowledgedAndNotLearnedAlsoByAFrozenModel) {
  const auto at = [](int offset) { return absl::StrCat(kLine, "first_offset: ", offset); };
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  EXPECT_EQ(stream.Ask(at(0)).duplicates(), 0);
  // Messages without an offset follow; half of another is new.
  EXPECT_EQ(stream.Ask(at(0)).duplicates(), 4);
  EXPECT_EQ(stream.Ask(std::string(kLine)).examples(), 4);
  const v1::LearnResult half = stream.Ask(at(6));
  EXPECT_EQ(half.duplicates(), 2);
  EXPECT_EQ(half.examples(), 2);
  EXPECT_TRUE(std::isnan(half.scores(0)));
  EXPECT_FALSE(std::isnan(half.scores(2)));
  EXPECT_EQ(Call("ModelService/FreezeModel", "name: 'models/line'"), "OK");
  EXPECT_EQ(Outcome(stream.Ask(std::string(kLine))), "FAILED_PRECONDITION MODEL_FROZEN");
  EXPECT_EQ(stream.Ask(at(6)).duplicates(), 4);
  const std::string unary = "model: 'models/line' producer_id: 'p'" + at(6);
  EXPECT_EQ(Learn(unary).duplicates(), 4);
  EXPECT_EQ(Learn(unary).acknowledged_offset(), 9);
  EXPECT_EQ(Call("LearningService/Learn", "model: 'models/line' producer_id: 'p'" + at(7)),
            "FAILED_PRECONDITION MODEL_FROZEN");
  EXPECT_EQ(Call("ModelService/UnfreezeModel", "name: 'models/line'"), "OK");
  EXPECT_EQ(stream.Ask(at(10)).examples(), 4);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("line").report().examples(), 14);
  EXPECT_EQ(Get("line").report().duplicates(), 18);
}

TEST_F(LearnStreamTest, APassThatHasEndedTakesNoMoreExamplesAndItsMarkIsAnsweredAgain) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  const auto marked = [](int offset, int pass) {
    return absl::StrCat(kLine, "first_offset: ", offset, " completed_pass: ", pass);
  };
  const v1::LearnResult first = stream.Ask(marked(0, 1));
  const v1::LearnResult again = stream.Ask(marked(0, 1));
  EXPECT_EQ(first.completed_pass().SerializeAsString(), again.completed_pass().SerializeAsString());
  EXPECT_EQ(again.duplicates(), 4);
  const v1::LearnResult more = stream.Ask(marked(4, 1));
  EXPECT_EQ(Outcome(more), "INVALID_ARGUMENT PASS_ENDED completed_pass");
  EXPECT_EQ(more.acknowledged_offset(), 3);
  EXPECT_EQ(stream.Ask(marked(4, 2)).completed_pass().number(), 2);
  EXPECT_TRUE(stream.Finish().ok());
}

// Each of its models takes most of the memory there is: whatever nobody is using leaves when
// another is used.
class CrowdedTest : public LearnStreamTest {
 protected:
  CrowdedTest() : LearnStreamTest({"--memory-budget", "4MiB"}) {
    for (const char* id : {"one", "other", "third"}) CreateDense(id, 250'000);
  }
  // Makes the first model leave memory, which has room for two.
  void Evict() {
    for (const char* id : {"other", "third"})
      EXPECT_EQ(Call("PredictionService/Predict", absl::StrCat("model: 'models/", id, "'")), "OK");
  }
  const std::string row_ = "examples { sparse { indices: 0 values: 1 } label: 1 }";
};

TEST_F(CrowdedTest, StreamsOutliveThatTheirModelLeavesMemory) {
  RawLearnStream older(*learning_, "one", "p");
  older.Open();
  RawLearnStream numbered(*learning_, "one", "p");
  numbered.Open();
  RawLearnStream unnumbered(*learning_, "one");
  unnumbered.Open();
  Evict();
  older.Send(FromText<v1::LearnStreamRequest>(row_));
  EXPECT_EQ(Outcome(older.Finish()), "ABORTED PRODUCER_SUPERSEDED");
  for (int i = 0; i < 3; ++i) {
    Evict();
    EXPECT_EQ(numbered.Ask(row_).acknowledged_offset(), i);
    EXPECT_EQ(unnumbered.Ask(row_).examples(), 1);
  }
  RawLearnStream resumed(*learning_, "one", "q");
  resumed.With(
      absl::StrCat("producer { resume { model_uid: '", Get("one").uid(),
                   "' acknowledged_offset: 9 acknowledged_revision: 0 acknowledged_epoch: 1 } }"));
  EXPECT_EQ(resumed.Open().next_offset(), 10);
  Evict();
  EXPECT_EQ(resumed.Ask(row_ + " first_offset: 10").acknowledged_offset(), 10);
  EXPECT_TRUE(resumed.Finish().ok());
  Evict();
  EXPECT_EQ(Call("ModelService/DeleteModel", "name: 'models/one'"), "OK");
  for (RawLearnStream* stream : {&numbered, &unnumbered}) {
    EXPECT_FALSE(stream->Read());
    EXPECT_EQ(Outcome(stream->Finish()), "NOT_FOUND MODEL_NOT_FOUND");
  }
}

class FormsTest : public ServerTest {
 protected:
  FormsTest() { Create("m", "feature_space { named {} }"); }
};

// The names a, b, ... from the first to the last.
std::string Names(char first, char last) {
  std::string text;
  std::string lengths;
  for (char name = first; name <= last; ++name) {
    text += name;
    absl::StrAppend(&lengths, name == first ? "1" : ", 1");
  }
  return "stream_names { text: '" + text + "' lengths: [" + lengths + "] } ";
}

TEST_F(FormsTest, ARowWithANameThatTheTableHasNoMoreIsRefusedAndTheOthersAreLearned) {
  RawLearnStream stream(*learning_, "m");
  // Rounded down to a power of two.
  EXPECT_EQ(stream.With("name_table_size: 5").Open().name_table_size(), 4);
  EXPECT_EQ(stream.Ask("columns { " + Names('a', 'd') + "indices: [0, 3] row_ends: 2 labels: 1 }")
                .examples(),
            1);
  const v1::LearnResult result =
      stream.Ask("columns { " + Names('e', 'e') +
                 "indices: [0, 1, 4, 5] row_ends: [1, 3, 4] labels: [1, -1, -1] }");
  EXPECT_EQ(result.examples(), 1);
  EXPECT_EQ(Outcome(result),
            "0: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.indices[0]; "
            "2: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.indices[3]");
}

TEST_F(FormsTest, TheNamesOfARefusedMessageAreInTheTableAndMalformedOnesEndAStream) {
  RawLearnStream stream(*learning_, "m");
  stream.With("name_table_size: 16").Open();
  EXPECT_EQ(Outcome(stream.Ask("columns { " + Names('a', 'a') + "} examples { label: 1 }")),
            "INVALID_ARGUMENT BOTH_FORMS columns");
  EXPECT_EQ(stream.Ask("columns { " + Names('b', 'b') + "indices: [0, 1] row_ends: 2 labels: 1 }")
                .examples(),
            1);
  EXPECT_THAT(Get("m").weights().vectors(0).names(), ::testing::UnorderedElementsAre("a", "b"));
  stream.Send(
      FromText<v1::LearnStreamRequest>("columns { stream_names { text: 'ab' lengths: 1 } }"));
  EXPECT_EQ(Outcome(stream.Finish()),
            "INVALID_ARGUMENT MALFORMED_COLUMNS columns.stream_names.lengths");
}

// Each model of a stream numbers names otherwise.
TEST_F(FormsTest, APredictionStreamsTableServesEveryModel) {
  for (const auto& [id, vector] :
       std::map<std::string, std::string>{{"one", "names: ['a', 'b'] values: [1, 10]"},
                                          {"two", "names: ['b', 'a'] values: [3, 5]"}})
    Create(id, "feature_space { named {} } learner { starting_weights { vectors { " + vector +
                   " } } }");
  Create("hashed", "feature_space { hashed { bits: 4 } }");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  auto request = FromText<v1::PredictRequest>("name_table_size: 4 columns { " + Names('a', 'b') +
                                              "indices: [0, 1] values: [2, 1] row_ends: 2 }");
  v1::PredictResponse response;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [id, score] : std::map<std::string, float>{
             {"models/one", 12}, {"models/two", 13}, {"models/hashed", 0}}) {
      request.set_model(id);
      ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
      EXPECT_THAT(response.scores(), ::testing::ElementsAre(score)) << id;
      EXPECT_EQ(response.name_table_size(), round == 0 && id == "models/hashed" ? 4 : 0);
      request.mutable_columns()->mutable_stream_names()->Clear();
      // The same two values, of two bytes each.
      request.mutable_columns()->clear_values();
      request.mutable_columns()->set_half_values(std::string("\0\x40\0\x3c", 4));
    }
  }
}

class PredictTest : public ServerTest {
 protected:
  PredictTest() {
    // theta = (1, -1), theta_0 = 1.
    Create("plane",
           "feature_space { dense { dimension: 2 } } "
           "learner { starting_weights { vectors { indices: [0, 1] values: [1, -1] bias: 1 } } }");
  }
  v1::PredictResponse Predict(const std::string& request) {
    return AnswerOf<v1::PredictResponse>("PredictionService/Predict", request);
  }
  v1::ExplainResponse Explain(const std::string& request) {
    return AnswerOf<v1::ExplainResponse>("PredictionService/Explain", request);
  }
};

TEST_F(PredictTest, AnAnswerHasTheScoresDistancesAndContributionsOfItsRows) {
  const std::string point = "model: 'models/plane' columns { dense_width: 2 values: [1, 3] } ";
  const v1::PredictResponse response = Predict(point);
  EXPECT_THAT(response.scores(), ElementsAre(-1));
  EXPECT_THAT(response.predicted_labels(), ElementsAre(-1));
  EXPECT_NEAR(response.distances(0), -std::sqrt(2) / 2, 1e-6);
  const v1::Explanation largest = Explain(point + "max_features: 1").explanations(0);
  EXPECT_EQ(largest.score(), -1);
  EXPECT_EQ(largest.label(), -1);
  EXPECT_EQ(largest.bias(), 1);
  ASSERT_EQ(largest.contributions_size(), 1);
  EXPECT_EQ(largest.contributions(0).index(), 1U);
  EXPECT_EQ(largest.contributions(0).contribution(), -3);
  EXPECT_EQ(largest.other_contributions(), 1);
  EXPECT_EQ(largest.other_features(), 1U);
  Teach("plane", "examples { dense { values: [1, 3] } label: 1 }");
  EXPECT_FALSE(Get("plane").report().has_margin_ceiling())
      << "the theorem does not hold from given weights";
  // An average depends on its age.
  Create("words", "feature_space { named {} } learner { averaged {} }");
  for (int i = 0; i < 3; ++i) Teach("words", "examples { named { names: 'win' } label: 1 }");
  const v1::ExplainResponse explained =
      Explain("model: 'models/words' examples { named { names: 'win' } }");
  EXPECT_EQ(explained.age(), 3U);
  EXPECT_EQ(explained.explanations(0).contributions(0).name(), "win");
}

TEST_F(PredictTest, AnswersOfACompositionNameTheRevisionsOfItsComponents) {
  CreateDense("other", 2);
  const std::string row = "examples { sparse { indices: 0 values: 1 } label: 1 }";
  Teach("other", row);
  Create("both",
         "feature_space { composition { inputs { model: 'models/other' } "
         "inputs { model: 'models/plane' } } }");
  EXPECT_THAT(Predict("model: 'models/plane' " + row).component_revisions(), ElementsAre());
  const std::string request = "model: 'models/both' " + row;
  EXPECT_THAT(Predict(request).component_revisions(), ElementsAre(1, 0));
  EXPECT_THAT(Explain(request).component_revisions(), ElementsAre(1, 0));
  EXPECT_THAT(
      AnswerOf<v1::LearnResponse>("LearningService/Learn", request).result().component_revisions(),
      ElementsAre(1, 0));
  RawLearnStream stream(*learning_, "both");
  stream.Open();
  EXPECT_THAT(stream.Ask(row).component_revisions(), ElementsAre(1, 0));
  EXPECT_TRUE(stream.Finish().ok());
  // It takes the examples of its components, whatever their number.
  EXPECT_EQ(Call("PredictionService/Predict",
                 "model: 'models/both' examples { dense { values: [1, 2, 3] } }"),
            "INVALID_ARGUMENT WRONG_DIMENSION examples[0].dense.values");
}

}  // namespace
}  // namespace perceptrond::testing
