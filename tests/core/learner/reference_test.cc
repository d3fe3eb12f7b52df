// The product against an independent float64 perceptron, and against the figures measured for it,
// on real data sets.
#include <cmath>

#include "gtest/gtest.h"
#include "tests/support/models.h"
#include "tests/support/shared_data.h"
#include "tests/support/textbook.h"

namespace perceptrond::reference_test {
namespace {

using testing::Columns;
using testing::HashedSettings;
using testing::LoneModel;
using testing::SvmData;
using testing::Textbook;

struct Set {
  const char* name;
  const char* train;
  // Null: the set is a stream without a held-out part.
  const char* test;
  // Percent: progressive on the first pass, held-out after 1 and after 10 passes.
  double progressive;
  double held_out_1;
  double held_out_10;
};

void PrintTo(const Set& set, std::ostream* out) { *out << set.name; }

testing::v1::Model Settings(const SvmData& data) {
  return testing::DenseSettings("real", data.dimension);
}

double HeldOutErrorPercent(const LoneModel& lone, const SvmData& test, uint32_t dimension) {
  // A feature that the training part never had weighs nothing.
  Columns columns;
  for (const testing::SvmExample& example : test.examples) {
    testing::SvmExample known;
    for (size_t i = 0; i < example.indices.size(); ++i) {
      if (example.indices[i] >= dimension) continue;
      known.indices.push_back(example.indices[i]);
      known.values.push_back(example.values[i]);
    }
    columns.Add(known.indices, known.values, 0);
  }
  const PredictOutcome outcome = lone.Predict(columns.unlabelled());
  double wrong = 0;
  for (size_t i = 0; i < test.examples.size(); ++i)
    wrong += outcome.labels[i] != test.examples[i].label ? 1 : 0;
  return 100 * wrong / static_cast<double>(test.examples.size());
}

class Reference : public ::testing::TestWithParam<Set> {};

TEST_P(Reference, OnePassGivesTheTextbooksWeightsAndMistakes) {
  LOAD_OR_SKIP(train, GetParam().train);
  Textbook textbook(train.dimension);
  LoneModel lone(Settings(train));
  uint64_t mistakes = 0;
  // In messages of an odd size: where one ends must not matter.
  for (size_t at = 0; at < train.examples.size(); at += 97) {
    const Columns columns(train.examples, at, at + 97);
    const LearnOutcome outcome = lone.Learn(columns.batch());
    size_t next = 0;
    for (size_t i = at; i < std::min(at + 97, train.examples.size()); ++i) {
      const bool mistake = textbook.Learn(train.examples[i]);
      const bool updated =
          next < outcome.updated_rows.size() && outcome.updated_rows[next] == i - at;
      ASSERT_EQ(updated, mistake) << "example " << i;
      if (updated) ++next;
      if (mistake) ++mistakes;
    }
  }
  const ConvergenceReport report = MakeReport(*lone.model);
  EXPECT_EQ(report.examples(), train.examples.size());
  EXPECT_EQ(report.mistakes(), mistakes);
  EXPECT_EQ(report.updates(), mistakes);
  EXPECT_NEAR(100 * report.progressive_error(), GetParam().progressive, 0.005);
  const std::vector<float> weights = lone.Weights(train.dimension);
  double largest = 1;
  for (const double weight : textbook.weights) largest = std::max(largest, std::abs(weight));
  for (uint32_t i = 0; i < train.dimension; ++i)
    ASSERT_NEAR(weights[i], textbook.weights[i], 1e-5 * largest) << "feature " << i;
  EXPECT_EQ(lone.Offset(), textbook.bias);
}

class HeldOut : public ::testing::TestWithParam<Set> {};

TEST_P(HeldOut, ReachesTheMeasuredErrors) {
  LOAD_OR_SKIP(train, GetParam().train);
  LOAD_OR_SKIP(test, GetParam().test);
  LoneModel lone(Settings(train));
  const Columns columns(train.examples);
  lone.Learn(columns.batch(), 1);
  EXPECT_NEAR(HeldOutErrorPercent(lone, test, train.dimension), GetParam().held_out_1, 0.005);
  for (int64_t pass = 2; pass <= 10; ++pass) lone.Learn(columns.batch(), pass);
  EXPECT_NEAR(HeldOutErrorPercent(lone, test, train.dimension), GetParam().held_out_10, 0.005);
}

const Set kAgaricus = {"agaricus", "agaricus.train", "agaricus.test", 0.94, 6.95, 3.79};
const Set kSms = {"sms_tfidf", "sms_tfidf.train", "sms_tfidf.test", 6.62, 1.52, 1.52};
const Set kMnist = {"mnist38", "mnist38.train", "mnist38.test", 8.30, 5.30, 6.90};
const Set kElec = {"elec2", "elec2.stream", nullptr, 14.26, 0, 0};

INSTANTIATE_TEST_SUITE_P(Sets, Reference, ::testing::Values(kAgaricus, kSms, kMnist, kElec),
                         [](const auto& info) { return std::string(info.param.name); });
INSTANTIATE_TEST_SUITE_P(Sets, HeldOut, ::testing::Values(kAgaricus, kSms, kMnist),
                         [](const auto& info) { return std::string(info.param.name); });

struct Convergent {
  const char* name;
  const char* file;
  uint64_t updates;
  int64_t passes;
  // (R / gamma*)^2.
  double bound;
};

void PrintTo(const Convergent& set, std::ostream* out) { *out << set.name; }

class Convergence : public ::testing::TestWithParam<Convergent> {};

TEST_P(Convergence, TakesTheMeasuredUpdatesAndPasses) {
  LOAD_OR_SKIP(train, GetParam().file);
  LoneModel lone(Settings(train));
  const Columns columns(train.examples);
  int64_t pass = 1;
  while (!lone.Learn(columns.batch(), pass).pass->converged() && pass < 2 * GetParam().passes)
    ++pass;
  EXPECT_EQ(pass, GetParam().passes);
  EXPECT_EQ(lone.model->revision(), GetParam().updates);
  const ConvergenceReport report = MakeReport(*lone.model);
  // gamma* = R / sqrt(bound) lies between floor and ceiling.
  const double best = report.radius() / std::sqrt(GetParam().bound);
  EXPECT_LE(report.margin_floor(), best * 1.01);
  EXPECT_GE(report.margin_ceiling(), best * 0.99);
  EXPECT_LE(report.bound_in_use(), 1);
}

INSTANTIATE_TEST_SUITE_P(Sets, Convergence,
                         ::testing::Values(Convergent{"agaricus", "agaricus.train", 139, 15, 308},
                                           Convergent{"iris", "iris_setosa.all", 5, 4, 448},
                                           Convergent{"sms_tfidf", "sms_tfidf.train", 361, 6, 1112},
                                           Convergent{"mnist38", "mnist38.train", 3192, 118,
                                                      24130}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace perceptrond::reference_test
