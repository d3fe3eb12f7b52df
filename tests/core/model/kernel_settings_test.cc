// Settings of the rules that keep rows: defaults written out, what is out of range named.
#include <functional>

#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

absl::StatusOr<ModelSettings> Read(v1::LearnerKind kind,
                                   const std::function<void(v1::Learner&)>& change) {
  v1::Model settings = testing::DenseSettings("m", 3);
  settings.mutable_learner()->set_kind(kind);
  change(*settings.mutable_learner());
  FillDefaults(settings);
  return ReadSettings(settings);
}

std::string Problem(v1::LearnerKind kind, const std::function<void(v1::Learner&)>& change) {
  return std::string(Read(kind, change).status().message());
}

TEST(RowSettings, DefaultsAreWrittenOut) {
  v1::Model settings = testing::DenseSettings("m", 3);
  settings.mutable_learner()->mutable_kernel_perceptron();
  FillDefaults(settings);
  EXPECT_EQ(settings.learner().budget(), 1000U);
  EXPECT_EQ(settings.learner().kernel().rbf().gamma(), 1);
  EXPECT_FALSE(settings.learner().has_step_size());
  settings.mutable_learner()->mutable_kernel()->mutable_polynomial();
  FillDefaults(settings);
  EXPECT_EQ(settings.learner().kernel().polynomial().degree(), 2U);
  EXPECT_EQ(settings.learner().kernel().polynomial().coef0(), 1);
}

TEST(RowSettings, AreRead) {
  const auto kernel = Read(v1::LEARNER_KIND_KERNEL_PERCEPTRON, [](v1::Learner& learner) {
    learner.set_budget(7);
    learner.mutable_kernel()->mutable_polynomial()->set_degree(5);
    learner.mutable_kernel()->mutable_polynomial()->set_coef0(0);
  });
  ASSERT_OK(kernel.status());
  EXPECT_EQ(kernel->learner.budget, 7U);
  EXPECT_EQ(kernel->learner.kernel.kind, KernelSettings::Kind::kPolynomial);
  EXPECT_EQ(kernel->learner.kernel.degree, 5U);
  EXPECT_EQ(kernel->learner.kernel.coef0, 0);
  const auto batch = Read(v1::LEARNER_KIND_BATCH_PERCEPTRON,
                          [](v1::Learner& learner) { learner.set_mini_batch(64); });
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->learner.mini_batch, 64U);
  const auto pocket = Read(v1::LEARNER_KIND_POCKET,
                           [](v1::Learner& learner) { learner.set_ratchet_examples(100); });
  ASSERT_OK(pocket.status());
  EXPECT_EQ(pocket->learner.ratchet_examples, 100U);
}

TEST(RowSettings, OutOfRangeNameTheirField) {
  constexpr auto kKernel = v1::LEARNER_KIND_KERNEL_PERCEPTRON;
  EXPECT_EQ(Problem(kKernel, [](v1::Learner& learner) { learner.set_budget(0); }),
            "model.learner.budget: 0 is not between 1 and 100000");
  EXPECT_EQ(Problem(v1::LEARNER_KIND_VOTED_PERCEPTRON,
                    [](v1::Learner& learner) { learner.set_budget(100'001); }),
            "model.learner.budget: 100001 is not between 1 and 100000");
  EXPECT_EQ(Problem(v1::LEARNER_KIND_BATCH_PERCEPTRON,
                    [](v1::Learner& learner) { learner.set_mini_batch(1U << 31); }),
            "model.learner.mini_batch: 2147483648 is not below 2^31");
  EXPECT_EQ(Problem(v1::LEARNER_KIND_POCKET,
                    [](v1::Learner& learner) { learner.set_ratchet_examples(100'001); }),
            "model.learner.ratchet_examples: 100001 is not at most 100000");
  for (const double gamma : {0.0, -1.0, 2e12, std::nan("")}) {
    EXPECT_NE(Problem(kKernel,
                      [&](v1::Learner& learner) {
                        learner.mutable_kernel()->mutable_rbf()->set_gamma(gamma);
                      })
                  .find("model.learner.kernel.rbf.gamma"),
              std::string::npos);
  }
  EXPECT_EQ(Problem(kKernel,
                    [](v1::Learner& learner) {
                      learner.mutable_kernel()->mutable_polynomial()->set_degree(17);
                    }),
            "model.learner.kernel.polynomial.degree: 17 is not between 1 and 16");
  EXPECT_EQ(Problem(kKernel,
                    [](v1::Learner& learner) {
                      learner.mutable_kernel()->mutable_polynomial()->set_coef0(-1);
                    }),
            "model.learner.kernel.polynomial.coef0: -1 is not at least 0 and finite");
}

TEST(RowSettings, ThatARuleDoesNotHaveAreRefused) {
  EXPECT_EQ(Problem(v1::LEARNER_KIND_PERCEPTRON,
                    [](v1::Learner& learner) { learner.mutable_kernel()->mutable_linear(); }),
            "model.learner.kernel: the learner perceptron has no such setting");
  EXPECT_EQ(Problem(v1::LEARNER_KIND_AVERAGED_PERCEPTRON,
                    [](v1::Learner& learner) { learner.set_ratchet_examples(5); }),
            "model.learner.ratchet_examples: the learner averaged-perceptron has no such setting");
  EXPECT_EQ(Problem(v1::LEARNER_KIND_KERNEL_PERCEPTRON,
                    [](v1::Learner& learner) {
                      learner.mutable_starting_weights()->add_indices(0);
                      learner.mutable_starting_weights()->add_values(1);
                    }),
            "model.learner.starting_weights: the learner kernel-perceptron has no weights to start "
            "from");
  // A score of 0 would never be a mistake, and every score is 0 at first.
  EXPECT_NE(Problem(v1::LEARNER_KIND_KERNEL_PERCEPTRON,
                    [](v1::Learner& learner) { learner.set_tie_rule(v1::TIE_RULE_CORRECT); }),
            "");
}

}  // namespace
}  // namespace perceptrond
