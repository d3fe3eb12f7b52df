// The kernel perceptron's scores, whatever the rows' form and however they are stored.
#include "core/learner/kernel_perceptron.h"

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "tests/core/learner/conformance.h"

namespace perceptrond::testing {
namespace {

using Kind = KernelSettings::Kind;

// Rows of `dimension` features; in a sparse space most are 0.
struct Space {
  const char* name;
  uint32_t dimension;
  double zeros;
};

struct Case {
  Kind kind;
  Space space;
  uint32_t budget;
};

void PrintTo(const Case& one, std::ostream* out) {
  *out << static_cast<int>(one.kind) << " " << one.space.name << " " << one.budget;
}

std::vector<float> Draw(const Space& space, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::bernoulli_distribution zero(space.zeros);
  std::vector<float> row(space.dimension);
  for (float& value : row) value = zero(random) ? 0 : normal(random);
  return row;
}

Row Dense(const std::vector<float>& row) { return {nullptr, row.data(), row.size()}; }

class KernelScores : public ::testing::TestWithParam<Case> {
 protected:
  KernelScores() {
    settings_.rule = RuleKind::kKernelPerceptron;
    settings_.budget = GetParam().budget;
    settings_.kernel = {GetParam().kind, 3, 0.5, 0.1};
    learner_ = MakeLearner(settings_, GetParam().space.dimension);
    // More than the budget: blocks come and go.
    for (uint32_t i = 0; i < GetParam().budget + 100; ++i) {
      const std::vector<float> row = Draw(GetParam().space, random_);
      const Target target{random_() % 2 == 0 ? 1 : -1, 1, i};
      learner_->Update(Dense(row), target, learner_->Evaluate(Dense(row), target.label));
    }
  }
  static double Score(const Learner& learner, const Row& row) {
    return learner.Evaluate(row, 1).score;
  }
  LearnerSettings settings_;
  std::unique_ptr<Learner> learner_;
  std::mt19937 random_{11};
};

TEST_P(KernelScores, HaveTheSameBitsAfterARestartWhichMakesBlocksAnew) {
  const std::unique_ptr<Learner> restored = MakeLearner(settings_, GetParam().space.dimension);
  ASSERT_TRUE(restored->Restore(CopyOfState(*learner_)));
  for (uint32_t i = 0; i < 60; ++i) {
    const std::vector<float> row = Draw(GetParam().space, random_);
    const Target target{random_() % 2 == 0 ? 1 : -1, 1, i};
    const Evaluation evaluation = learner_->Evaluate(Dense(row), target.label);
    ASSERT_EQ(BitsOf(evaluation.score), BitsOf(Score(*restored, Dense(row))));
    learner_->Update(Dense(row), target, evaluation);
    restored->Update(Dense(row), target, evaluation);
    ASSERT_EQ(BitsOf(learner_->augmented_squared_norm()),
              BitsOf(restored->augmented_squared_norm()));
  }
}

TEST_P(KernelScores, HaveTheSameBitsInALargerSpaceThatNoRowIsWrittenOutIn) {
  LearnerState state = CopyOfState(*learner_);
  state.scalars[0] = static_cast<double>(2 * Kernel::kMostWrittenOut);
  const std::unique_ptr<Learner> larger = MakeLearner(settings_, 2 * Kernel::kMostWrittenOut);
  ASSERT_TRUE(larger->Restore(std::move(state)));
  for (int n = 0; n < 20; ++n) {
    const std::vector<float> row = Draw(GetParam().space, random_);
    std::vector<uint32_t> indices(row.size());
    for (uint32_t i = 0; i < indices.size(); ++i) indices[i] = i;
    const Row sparse{indices.data(), row.data(), row.size()};
    EXPECT_EQ(BitsOf(Score(*learner_, sparse)), BitsOf(Score(*larger, sparse)));
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const Kind kind : {Kind::kLinear, Kind::kPolynomial, Kind::kRbf}) {
    for (const Space& space : {Space{"Narrow", 2, 0}, Space{"Dense", 30, 0.2},
                               Space{"Mixed", 9, 0.5}, Space{"Sparse", 100, 0.9}}) {
      for (const uint32_t budget : {3U, 16U, 37U, 200U}) cases.push_back({kind, space, budget});
    }
  }
  return cases;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  const char* const kinds[] = {"Linear", "Polynomial", "Gaussian"};
  const Case& one = info.param;
  const size_t kind = one.kind == Kind::kLinear ? 0 : one.kind == Kind::kPolynomial ? 1 : 2;
  return std::string(kinds[kind]) + one.space.name + std::to_string(one.budget);
}

INSTANTIATE_TEST_SUITE_P(Kernels, KernelScores, ::testing::ValuesIn(Cases()), NameOf);

}  // namespace
}  // namespace perceptrond::testing
