// Models whose features are other models' answers.
#include <random>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/learners.h"
#include "tests/support/svmlight.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;
using ::testing::ElementsAre;
using testing::ReasonOf;
using testing::Send;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;
using Composition = v1::FeatureSpace::Composition;

// The perceptron as a textbook has it, in float64 and plain loops. Uses nothing of core/.
struct Textbook {
  explicit Textbook(size_t dimension, double bias_input = 1, double step_size = 1)
      : weights(dimension), bias_input(bias_input), step_size(step_size) {}

  double Score(const SvmExample& example) const {
    double score = bias * bias_input;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      if (example.indices[i] < weights.size())
        score += weights[example.indices[i]] * static_cast<double>(example.values[i]);
    }
    return score;
  }
  // Learns one example by the rule "mistake iff y s <= 0". Says whether it was one.
  bool Learn(const SvmExample& example) {
    if (example.label * Score(example) > 0) return false;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      weights[example.indices[i]] += step_size * example.label * example.values[i];
    }
    bias += step_size * example.label * bias_input;
    return true;
  }
  // Learns all in their order and counts the mistakes.
  uint64_t Pass(const std::vector<SvmExample>& examples) {
    uint64_t mistakes = 0;
    for (const SvmExample& example : examples) mistakes += Learn(example) ? 1 : 0;
    return mistakes;
  }
  std::vector<double> weights;
  double bias_input;
  double step_size;
  // The constant coordinate's weight.
  double bias = 0;
};

v1::Model Composed(const std::string& name, const std::vector<std::string>& components,
                   Composition::Output output = Composition::OUTPUT_STEP) {
  v1::Model settings;
  settings.set_name(name);
  for (const std::string& component : components) {
    Composition::Input& input =
        *settings.mutable_feature_space()->mutable_composition()->add_inputs();
    input.set_model(component);
    input.set_output(output);
  }
  return settings;
}

// The truth table of two inputs, in the order 00, 01, 10, 11.
Columns Table(const std::vector<int32_t>& labels) {
  Columns columns;
  for (int i = 0; i < 4; ++i) {
    columns.AddDense({static_cast<float>(i / 2), static_cast<float>(i % 2)},
                     labels[static_cast<size_t>(i)]);
  }
  return columns;
}

// Fails to create the models it is asked to fail.
class UncreatingJournal final : public testing::JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;
  std::string row_errors;

 private:
  absl::Status CreateModel(storage::ModelHeader& header, const ModelGuard& guard) override {
    if (header.model().name() == row_errors) return absl::UnavailableError("injected");
    return JournalDecorator::CreateModel(header, guard);
  }
};

class CompositionTest : public ::testing::Test {
 protected:
  CompositionTest() { Open(); }

  void Open(size_t memory_budget = size_t{1} << 30) {
    store_.reset();
    Store::Options options;
    options.memory_budget = memory_budget;
    auto journal = std::make_unique<UncreatingJournal>(journal_);
    home_ = journal.get();
    store_ = std::make_unique<Store>(std::move(journal), options);
  }
  absl::Status Create(const v1::Model& settings) {
    return store_->Create(settings, "", false).status();
  }
  // Learns the table until a pass changes nothing.
  void LearnTable(const std::string& name, const std::vector<int32_t>& labels) {
    const Columns table = Table(labels);
    for (int64_t pass = 1; pass < 100; ++pass) {
      const testing::Sent sent = Send(*store_, name, "p", table.batch(), std::nullopt, pass);
      ASSERT_OK(sent.status);
      if (sent.outcome.pass->converged()) return;
    }
    FAIL() << name << " did not converge";
  }
  PredictOutcome Predict(const std::string& name, const Batch& batch) {
    PredictOutcome outcome;
    EXPECT_OK(store_->Acquire(name).value()->Predict(batch, {}, 0, outcome));
    return outcome;
  }
  void CreateGates() {
    for (const char* gate : {"or", "nand"}) ASSERT_OK(Create(DenseSettings(gate, 2)));
    LearnTable("or", {-1, 1, 1, 1});
    LearnTable("nand", {1, 1, 1, -1});
  }

  const std::shared_ptr<Journal> journal_ = std::make_shared<MemoryJournal>();
  UncreatingJournal* home_ = nullptr;
  std::unique_ptr<Store> store_;
};

TEST_F(CompositionTest, GatesThatWereLearnedMakeXorWhichNoneOfThemCan) {
  CreateGates();
  ASSERT_OK(Create(Composed("xor", {"or", "nand"})));
  LearnTable("xor", {-1, 1, 1, -1});
  EXPECT_THAT(Predict("xor", Table({0, 0, 0, 0}).batch()).labels, ElementsAre(-1, 1, 1, -1));

  // A perceptron of the textbook on what the gates say: (or, nand) of 00, 01, 10, 11.
  Textbook textbook(2);
  const std::vector<SvmExample> answers = {
      {-1, {1}, {1}}, {1, {0, 1}, {1, 1}}, {1, {0, 1}, {1, 1}}, {-1, {0}, {1}}};
  uint64_t updates = 0;
  while (const uint64_t mistakes = textbook.Pass(answers)) updates += mistakes;
  const WeightList list = ListWeights(*store_->Acquire("xor").value())[0];
  EXPECT_EQ(list.revision, updates);
  EXPECT_THAT(list.values, ElementsAre(textbook.weights[0], textbook.weights[1]));
  EXPECT_EQ(list.bias, textbook.bias);
}

TEST_F(CompositionTest, AFeatureIsTheComponentsStepSignOrScore) {
  v1::Model line = DenseSettings("line", 1);
  testing::StartingVector(*line.mutable_learner()).add_indices(0);
  testing::StartingVector(*line.mutable_learner()).add_values(2);
  testing::StartingVector(*line.mutable_learner()).set_bias(-1);
  ASSERT_OK(Create(line));
  const Columns rows = Columns().AddDense({3}, 0).AddDense({-4}, 0);
  const auto feature_of = [&](const std::string& name, Composition::Output output) {
    v1::Model copy = Composed(name, {"line"}, output);
    testing::StartingVector(*copy.mutable_learner()).add_indices(0);
    testing::StartingVector(*copy.mutable_learner()).add_values(1);
    EXPECT_OK(Create(copy));
    return Predict(name, rows.unlabelled()).scores;
  };
  EXPECT_THAT(feature_of("step", Composition::OUTPUT_STEP), ElementsAre(1, 0));
  EXPECT_THAT(feature_of("sign", Composition::OUTPUT_SIGN), ElementsAre(1, -1));
  EXPECT_THAT(feature_of("score", Composition::OUTPUT_SCORE), ElementsAre(5, -9));
}

TEST_F(CompositionTest, ARowThatAComponentRefusesIsRefusedAndTheOthersAreLearned) {
  CreateGates();
  ASSERT_OK(Create(Composed("xor", {"or", "nand"})));
  const Columns rows = Columns()
                           .AddDense({0, 1}, 1)
                           .AddDense({std::numeric_limits<float>::infinity(), 0}, 1)
                           .AddDense({1, 1}, -1);
  const testing::Sent sent = Send(*store_, "xor", "p", rows.batch());
  ASSERT_OK(sent.status);
  EXPECT_EQ(sent.outcome.examples, 2U);
  ASSERT_EQ(sent.outcome.row_errors.size(), 1U);
  EXPECT_EQ(sent.outcome.row_errors[0].row, 1U);
  EXPECT_EQ(sent.outcome.row_errors[0].error.code, ValidationCode::kNonFiniteValue);
  EXPECT_EQ(Predict("xor", rows.batch()).row_errors.size(), 1U);
}

TEST_F(CompositionTest, ReplayIsExactAlthoughTheComponentsHaveLearnedOn) {
  CreateGates();
  ASSERT_OK(Create(Composed("xor", {"or", "nand"}, Composition::OUTPUT_SCORE)));
  std::mt19937 random(5);
  std::uniform_real_distribution<float> coordinate(-1, 1);
  for (int i = 0; i < 200; ++i) {
    const float x = coordinate(random);
    const float y = coordinate(random);
    const int32_t label = x * y > 0 ? 1 : -1;
    ASSERT_OK(Send(*store_, "xor", "p", Columns().AddDense({x, y}, label).batch()).status);
    ASSERT_OK(Send(*store_, "or", "q", Columns().AddDense({y, x}, label).batch()).status);
  }
  const std::string before = StateBytes(*store_->Acquire("xor").value());
  ASSERT_GT(store_->Acquire("xor").value()->revision(), 10U);
  Open();
  EXPECT_EQ(StateBytes(*store_->Acquire("xor").value()), before);
}

TEST_F(CompositionTest, AnswersNameTheRevisionsTheComponentsAnsweredFrom) {
  CreateGates();
  ASSERT_OK(Create(Composed("xor", {"or", "nand", "or"})));
  const Columns table = Table({-1, 1, 1, -1});
  const auto revision = [&](const char* name) { return store_->Acquire(name).value()->revision(); };
  for (int round = 0; round < 3; ++round) {
    const uint64_t of_or = revision("or");
    const uint64_t of_nand = revision("nand");
    EXPECT_THAT(Predict("xor", table.batch()).component_revisions,
                ElementsAre(of_or, of_nand, of_or));
    const testing::Sent sent = Send(*store_, "xor", "p", table.batch());
    ASSERT_OK(sent.status);
    EXPECT_THAT(sent.outcome.component_revisions, ElementsAre(of_or, of_nand, of_or));
    // One of them learns on, the other way round, and then leaves memory.
    ASSERT_OK(Send(*store_, "or", "q", Table({1, -1, -1, -1}).batch()).status);
    ASSERT_GT(revision("or"), of_or);
    if (round == 1) Open(1);
  }
  EXPECT_TRUE(Predict("or", table.batch()).component_revisions.empty());
  // An outcome that is used again says nothing of the model before.
  PredictOutcome outcome;
  ASSERT_OK(store_->Acquire("xor").value()->Predict(table.batch(), {}, 0, outcome));
  EXPECT_EQ(outcome.component_revisions.size(), 3U);
  ASSERT_OK(store_->Acquire("or").value()->Predict(table.batch(), {}, 0, outcome));
  EXPECT_TRUE(outcome.component_revisions.empty());
}

// Not the revision of the component at the time of the answer: the one that gave the features.
TEST_F(CompositionTest, TheRevisionThatIsNamedGaveTheFeatures) {
  ASSERT_OK(Create(DenseSettings("line", 1)));
  v1::Model copy = Composed("copy", {"line"}, Composition::OUTPUT_SCORE);
  testing::StartingVector(*copy.mutable_learner()).add_indices(0);
  testing::StartingVector(*copy.mutable_learner()).add_values(1);
  ASSERT_OK(Create(copy));
  // Each is a mistake: 1 scores 2 at odd revisions and 0 at even ones.
  std::thread learning([&] {
    for (int i = 0; i < 500; ++i) {
      const Columns mistake = Columns().AddDense({1}, i % 2 == 0 ? 1 : -1);
      EXPECT_OK(Send(*store_, "line", "q", mistake.batch()).status);
    }
  });
  const Columns row = Columns().AddDense({1}, 1);
  uint64_t revision = 0;
  while (revision < 500) {
    const PredictOutcome outcome = Predict("copy", row.unlabelled());
    revision = outcome.component_revisions.at(0);
    EXPECT_EQ(outcome.scores[0], revision % 2 == 1 ? 2 : 0) << revision;
  }
  learning.join();
}

TEST_F(CompositionTest, ComponentsAreThereAndTakeTheSameExamples) {
  CreateGates();
  ASSERT_OK(Create(DenseSettings("wide", 3)));
  ASSERT_OK(Create(testing::NamedSettings("words")));
  ASSERT_OK(Create(testing::HashedSettings("slots", 4)));
  ASSERT_OK(Create(Composed("named", {"words", "slots"})));
  ASSERT_OK(Create(Composed("inner", {"or", "nand"})));
  // The space of a composition is that of the examples that it is sent.
  ASSERT_OK(Create(Composed("outer", {"inner", "or"})));
  EXPECT_EQ(store_->Get("outer")
                ->settings.feature_space()
                .composition()
                .example_space()
                .dense()
                .dimension(),
            2U);
  const std::pair<std::vector<std::string>, std::string> refused[] = {
      {{"or", "c"}, "COMPOSITION_CYCLE"},
      {{"or", "and"}, "COMPONENT_NOT_FOUND"},
      {{}, "INVALID_FIELD"},
      {std::vector<std::string>(1025, "or"), "INVALID_FIELD"},
      {{"or", "wide"}, "INVALID_FIELD"},
      {{"or", "words"}, "INVALID_FIELD"},
      {{"or", "slots"}, "INVALID_FIELD"},
      {{"inner", "wide"}, "INVALID_FIELD"}};
  for (const auto& [components, reason] : refused)
    EXPECT_EQ(ReasonOf(Create(Composed("c", components))), reason)
        << ::testing::PrintToString(components);
}

TEST_F(CompositionTest, ComponentsTellTwoLabelsApartAndTheirCompositionMayTellMore) {
  CreateGates();
  v1::Model several = DenseSettings("several", 2);
  several.mutable_learner()->mutable_classes()->set_max_classes(2);
  ASSERT_OK(Create(several));
  EXPECT_EQ(ReasonOf(Create(Composed("c", {"or", "several"}))), "INVALID_FIELD");
  v1::Model sums = Composed("sums", {"or", "nand"});
  sums.mutable_learner()->mutable_classes()->set_max_classes(3);
  ASSERT_OK(Create(sums));
  LearnTable("sums", {0, 1, 1, 2});
  EXPECT_THAT(Predict("sums", Table({0, 0, 0, 0}).batch()).labels, ElementsAre(0, 1, 1, 2));
}

TEST_F(CompositionTest, DepthAndSizeAreBounded) {
  ASSERT_OK(Create(DenseSettings("c0", 2)));
  for (int i = 1; i <= 16; ++i) {
    ASSERT_OK(Create(Composed(absl::StrCat("c", i), {absl::StrCat("c", i - 1)})));
  }
  EXPECT_EQ(ReasonOf(Create(Composed("c17", {"c16"}))), "INVALID_FIELD");
  ASSERT_OK(Create(Composed("many", std::vector<std::string>(1000, "c0"))));
  ASSERT_OK(Create(Composed("more", {"many", "many", "many", "many"})));
  EXPECT_EQ(ReasonOf(Create(Composed("most", std::vector<std::string>(5, "many")))),
            "INVALID_FIELD");
}

TEST_F(CompositionTest, AComponentIsNotDeletedWhileItIsUsed) {
  CreateGates();
  ASSERT_OK(Create(Composed("xor", {"or", "nand", "or"})));
  ASSERT_OK(Create(Composed("top", {"xor"})));
  for (const char* used : {"or", "nand", "xor"}) {
    const absl::Status status = store_->Delete(used, "", false);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    EXPECT_EQ(ReasonOf(status), "MODEL_IN_USE") << used;
    EXPECT_EQ(ReasonOf(store_->Delete(used, "", true)), "MODEL_IN_USE") << used;
  }
  Open();
  EXPECT_EQ(ReasonOf(store_->Delete("or", "", false)), "MODEL_IN_USE");
  for (const char* name : {"top", "xor", "or", "nand"}) EXPECT_OK(store_->Delete(name, "", false));
}

TEST_F(CompositionTest, ACompositionThatCameToNothingHoldsNobody) {
  CreateGates();
  home_->row_errors = "xor";
  EXPECT_TRUE(absl::IsUnavailable(Create(Composed("xor", {"or", "nand"}))));
  EXPECT_OK(store_->Delete("or", "", false));
  // Nor does another model that takes its name.
  home_->row_errors = "";
  ASSERT_OK(Create(DenseSettings("xor", 2)));
  EXPECT_OK(store_->Delete("nand", "", false));
}

TEST_F(CompositionTest, TheSameCreationMayComeAgain) {
  CreateGates();
  const auto first = store_->Create(Composed("xor", {"or", "nand"}), "request", false);
  ASSERT_OK(first.status());
  const auto again = store_->Create(Composed("xor", {"or", "nand"}), "request", false);
  ASSERT_OK(again.status());
  EXPECT_EQ(again->uid(), first->uid());
  EXPECT_TRUE(
      absl::IsAlreadyExists(store_->Create(Composed("xor", {"or"}), "request", false).status()));
}

}  // namespace
}  // namespace perceptrond
