// Analyses of real data sets.
#include <cmath>
#include <string>

#include "tests/core/convergence/separation_checks.h"
#include "tests/support/shared_data.h"

namespace perceptrond {
namespace {

using testing::AnalyzeAll;
using testing::ExpectCertified;
using testing::ExpectSolved;
using testing::SvmData;

struct Set {
  const char* name;
  const char* file;
  // (R / gamma*)^2 with b = 1.
  double bound;
  // The same of the machine that does not count the offset in ||w|| (LIBSVM's C-SVC, C = 1e8),
  // whose margin is then taken with the offset counted: a separator, not the best.
  double other_bound;
};

void PrintTo(const Set& set, std::ostream* out) { *out << set.name; }

class RealSet : public ::testing::TestWithParam<Set> {};

TEST_P(RealSet, HasTheBoundOfItsMargin) {
  LOAD_OR_SKIP(data, GetParam().file);
  const Analysis analysis = AnalyzeAll(data.examples, 1);
  ExpectSolved(data.examples, 1, analysis);
  const double least = std::pow(analysis.radius / analysis.margin_ceiling, 2);
  const double most = std::pow(analysis.radius / analysis.margin_floor, 2);
  EXPECT_NEAR(least, GetParam().bound, 1e-5 * GetParam().bound);
  EXPECT_NEAR(most, GetParam().bound, 1e-5 * GetParam().bound);
  EXPECT_LE(least, GetParam().other_bound * 1.0001);
}

TEST_P(RealSet, HasTheOtherMachinesMarginWhereTheOffsetCostsNothing) {
  LOAD_OR_SKIP(data, GetParam().file);
  // ||w||^2 = 1 / gamma^2 but for (offset / b)^2; the other bound adds the offset's square.
  constexpr double kLarge = 1000;
  const Analysis analysis = AnalyzeAll(data.examples, kLarge);
  ASSERT_EQ(analysis.separability, Separability::kSeparable);
  const double squared_w = 1 / std::pow(analysis.margin_floor, 2);
  const double norm = std::sqrt(squared_w);
  const double offset = analysis.separator->vectors[0].bias_weight * kLarge * norm;
  const double squared_radius = std::pow(analysis.radius, 2) - kLarge * kLarge + 1;
  EXPECT_NEAR(squared_radius * (squared_w + offset * offset), GetParam().other_bound,
              1e-3 * GetParam().other_bound);
}

INSTANTIATE_TEST_SUITE_P(Sets, RealSet,
                         ::testing::Values(Set{"agaricus", "agaricus.train", 304.6752, 308.11},
                                           Set{"iris_setosa", "iris_setosa.all", 221.7839, 448.09},
                                           Set{"sms_tfidf", "sms_tfidf.train", 1111.8675, 1111.87},
                                           Set{"mnist38", "mnist38.train", 24130.8631, 24131.76}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RealStream, OfElectricityPricesIsNotSeparable) {
  LOAD_OR_SKIP(data, "elec2.stream");
  ASSERT_EQ(data.examples.size(), 45312U);
  for (const double b : {0.0, 1.0}) {
    const Analysis analysis = AnalyzeAll(data.examples, b);
    ExpectCertified(data.examples, b, analysis);
    // A vertex has at most one row more than there are columns.
    EXPECT_LE(analysis.certificate.size(), 8U);
  }
}

}  // namespace
}  // namespace perceptrond
