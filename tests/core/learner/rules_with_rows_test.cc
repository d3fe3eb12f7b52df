// Rules that answer by no one vector of weights, against their papers on real data: the same
// mistakes, the same answers.
#include <cmath>
#include <numeric>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/papers_with_rows.h"
#include "tests/support/separable.h"
#include "tests/support/shared_data.h"

namespace perceptrond::rules_with_rows_test {
namespace {

using testing::Columns;
using testing::DenseSettings;
using testing::LoneModel;
using testing::Of;
using testing::Paper;
using testing::SvmData;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

double Dot(std::span<const double> x, std::span<const double> z) {
  return std::inner_product(x.begin(), x.end(), z.begin(), 0.0);
}

double Gaussian(std::span<const double> x, std::span<const double> z) {
  double square = 0;
  for (size_t i = 0; i < x.size(); ++i) square += std::pow(x[i] - z[i], 2);
  return std::exp(-0.05 * square);
}

double Cubic(std::span<const double> x, std::span<const double> z) {
  return std::pow(0.5 + Dot(x, z), 3);
}

void SetLinear(v1::Learner& learner) {
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_linear();
}
void SetGaussian(v1::Learner& learner) {
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_rbf()->set_gamma(0.05);
}
void SetCubic(v1::Learner& learner) {
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_degree(3);
  learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_coef0(0.5);
}

struct Rule {
  const char* name;
  std::string kind;
  testing::MakePaper paper;
  uint32_t budget;
  void (*settings)(v1::Learner&);
};

Rule Forgetron(const char* name, testing::PaperKernel kernel, void (*settings)(v1::Learner&),
               uint32_t budget) {
  return {name, "kernel-perceptron", Of<testing::PaperForgetron>(kernel, size_t{budget}), budget,
          settings};
}

Rule Voted(uint32_t budget) {
  return {"Voted", "voted-perceptron", Of<testing::PaperVoted>(size_t{budget}), budget,
          [](v1::Learner&) {}};
}

const Rule kRules[] = {
    Voted(1000),
    Voted(15),
    Forgetron("Linear", &Dot, &SetLinear, 1000),
    Forgetron("Linear", &Dot, &SetLinear, 12),
    Forgetron("Gaussian", &Gaussian, &SetGaussian, 1000),
    Forgetron("Gaussian", &Gaussian, &SetGaussian, 40),
    Forgetron("Gaussian", &Gaussian, &SetGaussian, 1),
    Forgetron("Cubic", &Cubic, &SetCubic, 1000),
    Forgetron("Cubic", &Cubic, &SetCubic, 25),
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name << " " << rule.budget; }

class RowRuleTest : public ::testing::TestWithParam<std::tuple<Rule, const char*, bool>> {};

TEST_P(RowRuleTest, DoesAsItsPaperSays) {
  const auto& [rule, file, offset] = GetParam();
  const auto path = testing::FindSharedData(file);
  if (!path) GTEST_SKIP() << file << " is not there: set PERCEPTROND_DATA";
  SvmData data = testing::ReadSvmlight(*path);
  if (data.examples.size() > 1000) data.examples.resize(1000);
  v1::Model settings = DenseSettings("rule", data.dimension);
  testing::SetLearner(*settings.mutable_learner(), rule.kind);
  testing::SetCount(*settings.mutable_learner(), "budget", rule.budget);
  settings.mutable_learner()->set_bias_input(offset ? 1 : 0);
  rule.settings(*settings.mutable_learner());
  LoneModel lone(settings);
  const std::unique_ptr<Paper> paper = rule.paper(data.dimension + (offset ? 1 : 0), offset);
  uint64_t mistakes = 0;
  for (const SvmExample& example : data.examples)
    mistakes += paper->Learn(Augmented(example, data.dimension, offset), example.label) ? 1 : 0;
  const Columns columns(data.examples);
  EXPECT_EQ(lone.Learn(columns.batch()).mistakes, mistakes);
  const std::vector<float> scores = lone.Predict(columns.unlabelled()).scores;
  const auto answers = paper->Answers();
  double largest = 0;
  double apart = 0;
  for (size_t i = 0; i < scores.size(); i += 7) {
    const double answer = answers(Augmented(data.examples[i], data.dimension, offset));
    largest = std::max(largest, std::abs(answer));
    apart = std::max(apart, std::abs(answer - scores[i]));
  }
  // A vote may fall to the other side where a score is nearly 0.
  EXPECT_LE(apart, (rule.kind == "voted-perceptron" ? 0.02 : 1e-6) * largest);
}

INSTANTIATE_TEST_SUITE_P(Papers, RowRuleTest,
                         ::testing::Combine(::testing::ValuesIn(kRules),
                                            ::testing::Values("agaricus.train", "mnist38.train",
                                                              "elec2.stream"),
                                            ::testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" +
                                  std::to_string(std::get<0>(info.param).budget) + "_" +
                                  std::to_string(info.index);
                         });

const Columns& Xor() {
  static const Columns columns = Columns()
                                     .AddDense({-1, -1}, 1)
                                     .AddDense({1, 1}, 1)
                                     .AddDense({-1, 1}, -1)
                                     .AddDense({1, -1}, -1);
  return columns;
}

v1::Model KernelSettingsOf(void (*settings)(v1::Learner&), uint32_t dimension) {
  v1::Model model = DenseSettings("kernel", dimension);
  model.mutable_learner()->mutable_kernel_perceptron();
  settings(*model.mutable_learner());
  return model;
}

TEST(KernelPerceptron, LearnsXorByAKernel) {
  for (const auto settings : {&SetGaussian, &SetCubic}) {
    LoneModel lone(KernelSettingsOf(settings, 2));
    int64_t pass = 1;
    while (!lone.Learn(Xor().batch(), pass).pass->converged()) ASSERT_LT(++pass, 100);
    EXPECT_EQ(lone.Predict(Xor().unlabelled()).labels, (std::vector<int32_t>{1, 1, -1, -1}));
  }
  // The linear kernel is the perceptron: it cannot.
  LoneModel lone(KernelSettingsOf(&SetLinear, 2));
  for (int64_t pass = 1; pass <= 20; ++pass)
    EXPECT_FALSE(lone.Learn(Xor().batch(), pass).pass->converged());
}

TEST(KernelPerceptron, WithTheLinearKernelDecidesAsThePerceptronDoes) {
  std::mt19937 random(3);
  std::vector<float> x(6);
  LoneModel kernel(KernelSettingsOf(&SetLinear, 6));
  LoneModel plain(DenseSettings("plain", 6));
  for (int n = 0; n < 400; ++n) {
    // Whole numbers: both are exact.
    for (float& value : x) value = static_cast<float>(static_cast<int>(random() % 7) - 3);
    const Columns one = Columns().AddDense(x, x[0] + x[1] > 0 ? 1 : -1);
    ASSERT_EQ(kernel.Learn(one.batch()).scores, plain.Learn(one.batch()).scores);
  }
  EXPECT_GT(plain.model->revision(), 10U);
  EXPECT_EQ(kernel.model->revision(), plain.model->revision());
  const double norm = MakeReport(*plain.model).weight_norm();
  EXPECT_NEAR(MakeReport(*kernel.model).weight_norm(), norm, 1e-9 * norm);
}

TEST(KernelPerceptron, ItsNormIsThatOfItsFunction) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal;
  v1::Model settings = KernelSettingsOf(&SetGaussian, 3);
  testing::SetCount(*settings.mutable_learner(), "budget", 9);
  LoneModel lone(settings);
  testing::PaperForgetron paper(4, true, &Gaussian, 9);
  for (int n = 0; n < 300; ++n) {
    const std::vector<float> x = {normal(random), normal(random), normal(random)};
    const int label = random() % 2 == 0 ? 1 : -1;
    lone.Learn(Columns().AddDense(x, label).batch());
    paper.Learn({x[0], x[1], x[2], 1}, label);
    ASSERT_NEAR(std::pow(MakeReport(*lone.model).weight_norm(), 2), paper.SquaredNorm(),
                1e-9 * (1 + paper.SquaredNorm()));
  }
  ASSERT_GT(lone.model->revision(), 100U);
}

// Novikoff's bound in the kernel's space: separable there with a margin known by construction.
TEST(KernelPerceptron, MakesAtMostTheUpdatesOfTheTheoremWhileNothingIsForgotten) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  v1::Model settings = KernelSettingsOf(&SetGaussian, 2);
  settings.mutable_learner()->set_bias_input(0);
  // g = sum of +-K(c_i, .) over far centres: a point near c_i has y g(x) near 1.
  const float centres[4][2] = {{0, 0}, {30, 0}, {0, 30}, {30, 30}};
  Columns columns;
  double margin = 1e9;
  for (int n = 0; n < 400; ++n) {
    const int c = n % 4;
    const float x = centres[c][0] + normal(random);
    const float y = centres[c][1] + normal(random);
    columns.AddDense({x, y}, c % 2 == 0 ? 1 : -1);
    double g = 0;
    for (int i = 0; i < 4; ++i) {
      const std::vector<double> centre = {centres[i][0], centres[i][1]};
      g += (i % 2 == 0 ? 1 : -1) * Gaussian(std::vector<double>{x, y}, centre);
    }
    margin = std::min(margin, g * (c % 2 == 0 ? 1 : -1));
  }
  double square = 0;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j)
      square +=
          ((i + j) % 2 == 0 ? 1 : -1) * Gaussian(std::vector<double>{centres[i][0], centres[i][1]},
                                                 std::vector<double>{centres[j][0], centres[j][1]});
  }
  LoneModel lone(settings);
  int64_t pass = 1;
  while (!lone.Learn(columns.batch(), pass).pass->converged()) ASSERT_LT(++pass, 1000);
  ASSERT_GT(margin, 0);
  EXPECT_LE(static_cast<double>(lone.model->revision()), square / (margin * margin));
  // What rounding may add to a score in the kernel's space is not known: no margin is claimed.
  EXPECT_FALSE(MakeReport(*lone.model).last_pass().has_margin());
  EXPECT_FALSE(MakeReport(*lone.model).has_margin_floor());
}

size_t Wrong(const LoneModel& lone, const Columns& columns) {
  const Batch batch = columns.batch();
  const PredictOutcome answers = lone.Predict(columns.unlabelled());
  size_t wrong = 0;
  for (size_t i = 0; i < batch.rows(); ++i) wrong += answers.labels[i] != batch.labels[i] ? 1 : 0;
  return wrong;
}

// Passes until one changes nothing, and then as many as there were: no run before can have been
// longer than the converged weights' is by then.
size_t WrongOnceConverged(LoneModel& lone, const Columns& columns) {
  int64_t passes = 1;
  while (!lone.Learn(columns.batch(), passes).pass->converged()) ++passes;
  for (int64_t more = 1; more <= passes; ++more) lone.Learn(columns.batch(), passes + more);
  return Wrong(lone, columns);
}

v1::Model Ratchet(uint32_t dimension, uint32_t examples) {
  v1::Model settings = DenseSettings("ratchet", dimension);
  settings.mutable_learner()->mutable_pocket();
  testing::SetCount(*settings.mutable_learner(), "ratchet_examples", examples);
  return settings;
}

// Also where those kept cannot tell the pocket's weights from the converged ones.
TEST(PocketRatchet, WeightsThatSeparateEverythingGetIntoThePocketInTheEnd) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    const Columns columns(testing::MakeSeparable(seed, 300, 4, 0.02, 1).examples);
    for (const uint32_t kept : {1U, 3U, 10U, 100U, 1000U}) {
      LoneModel lone(Ratchet(4, kept));
      EXPECT_EQ(WrongOnceConverged(lone, columns), 0U) << "seed " << seed << " kept " << kept;
    }
  }
}

TEST(PocketRatchet, MushroomsAreAllRightOnceItHasConverged) {
  const auto path = testing::FindSharedData("agaricus.train");
  if (!path.has_value()) GTEST_SKIP() << "the shared data sets are not here";
  LoneModel lone(Ratchet(127, 1000));
  EXPECT_EQ(WrongOnceConverged(lone, Columns(testing::ReadSvmlight(*path).examples)), 0U);
}

// The theorem's first half, ||f||^2 <= k R^2, holds in one space and not between two.
TEST(KernelPerceptron, NormAndRadiusAreOfItsKernelsSpace) {
  const auto with = [](auto set) {
    v1::Model settings = DenseSettings("kernel", 2);
    settings.mutable_learner()->mutable_kernel_perceptron();
    set(*settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel());
    return settings;
  };
  const std::vector<v1::Model> models = {
      with([](v1::Kernel& kernel) { kernel.mutable_linear(); }),
      with([](v1::Kernel& kernel) { kernel.mutable_polynomial()->set_degree(3); }),
      with([](v1::Kernel& kernel) { kernel.mutable_rbf()->set_gamma(0.5); })};
  for (const v1::Model& settings : models) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      std::mt19937 random(seed);
      std::normal_distribution<float> normal(0, 2);
      LoneModel lone(settings);
      Columns columns;
      for (int n = 0; n < 60; ++n)
        columns.AddDense({normal(random), normal(random)}, random() % 2 == 0 ? 1 : -1);
      lone.Learn(columns.batch());
      const ConvergenceReport report = MakeReport(*lone.model);
      ASSERT_GT(report.updates(), 0U);
      EXPECT_LE(report.weight_norm(),
                std::sqrt(static_cast<double>(report.updates())) * report.radius() * 1.000001)
          << settings.learner().kernel_perceptron().kernel().ShortDebugString() << " seed " << seed;
    }
  }
}

TEST(KernelPerceptron, AnExampleBeyondItsRangeIsRefusedAndChangesNothing) {
  for (const auto settings : {&SetLinear, &SetCubic}) {
    LoneModel lone(KernelSettingsOf(settings, 2));
    const Columns huge = Columns().AddDense({3e38F, 3e38F}, 1);
    const LearnOutcome outcome = lone.Learn(huge.batch());
    ASSERT_EQ(outcome.row_errors.size(), 1U);
    EXPECT_EQ(outcome.row_errors[0].error.code, ValidationCode::kWeightOverflow);
    EXPECT_EQ(lone.model->revision(), 0U);
    lone.Learn(Xor().batch());
    EXPECT_TRUE(std::isfinite(lone.Predict(huge.unlabelled()).scores[0]));
  }
}

TEST(KernelPerceptron, HasNoWeightsToShow) {
  LoneModel lone(KernelSettingsOf(&SetGaussian, 2));
  lone.Learn(Xor().batch());
  EXPECT_TRUE(ListWeights(*lone.model).empty());
  EXPECT_GT(MeasureMemory(*lone.model).total, sizeof(Model));
}

TEST(VotedPerceptron, AnswersWithTheVotesOfItsWeightsOnAnd) {
  v1::Model settings = DenseSettings("and", 2);
  settings.mutable_learner()->mutable_voted();
  LoneModel lone(settings);
  testing::PaperVoted paper(3, 1000);
  const Columns columns =
      Columns().AddDense({0, 0}, -1).AddDense({0, 1}, -1).AddDense({1, 0}, -1).AddDense({1, 1}, 1);
  for (int64_t pass = 1; pass <= 9; ++pass) {
    lone.Learn(columns.batch(), pass);
    for (const auto& [x, y] : {std::pair(testing::Vector{0, 0, 1}, -1),
                               {{0, 1, 1}, -1},
                               {{1, 0, 1}, -1},
                               {{1, 1, 1}, 1}})
      paper.Learn(x, y);
  }
  EXPECT_EQ(lone.model->revision(), 18U);
  const std::vector<float> votes = lone.Predict(columns.unlabelled()).scores;
  EXPECT_NEAR(votes[0], paper.Answers()({0, 0, 1}), 1e-6);
  EXPECT_NEAR(votes[1], paper.Answers()({0, 1, 1}), 1e-6);
  EXPECT_NEAR(votes[2], paper.Answers()({1, 0, 1}), 1e-6);
  EXPECT_NEAR(votes[3], paper.Answers()({1, 1, 1}), 1e-6);
  EXPECT_TRUE(lone.Predict(columns.unlabelled()).distances.empty());
}

TEST(VotedPerceptron, LearnsAsThePerceptronAndKeepsItsProofs) {
  v1::Model settings = DenseSettings("xor", 2);
  settings.mutable_learner()->mutable_voted();
  testing::SetCount(*settings.mutable_learner(), "budget", 2);
  LoneModel voted(settings);
  LoneModel plain(DenseSettings("plain", 2));
  EXPECT_EQ(voted.Learn(Xor().batch(), 1).scores, plain.Learn(Xor().batch(), 1).scores);
  EXPECT_EQ(MakeReport(*voted.model).not_separable(), true);
}

}  // namespace
}  // namespace perceptrond::rules_with_rows_test
