// Settings of a model: defaults are written out, and what is out of range is named.
#include <google/protobuf/message.h>

#include <cmath>
#include <functional>

#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond::settings_test {
namespace {

namespace v1 = ::perceptron::v1;

absl::StatusOr<ModelSettings> Read(const std::string& kind,
                                   const std::function<void(v1::Learner&)>& change) {
  v1::Model settings = testing::DenseSettings("m", 3);
  testing::SetLearner(*settings.mutable_learner(), kind);
  change(*settings.mutable_learner());
  FillDefaults(settings);
  return ReadSettings(settings);
}

// The field that a refusal names.
std::string FieldOf(const absl::Status& status) {
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  google::rpc::BadRequest details;
  const auto payload = status.GetPayload(kBadRequestUrl);
  if (!payload.has_value() || !details.ParseFromString(std::string(*payload))) return "no details";
  return details.field_violations(0).field();
}

TEST(RowSettings, DefaultsAreWrittenOut) {
  v1::Model settings = testing::DenseSettings("m", 3);
  settings.mutable_learner()->mutable_kernel_perceptron();
  FillDefaults(settings);
  EXPECT_EQ(settings.learner().kernel_perceptron().budget(), 1000U);
  EXPECT_EQ(settings.learner().kernel_perceptron().kernel().rbf().gamma(), 1);
  settings.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial();
  FillDefaults(settings);
  EXPECT_EQ(settings.learner().kernel_perceptron().kernel().polynomial().degree(), 2U);
  EXPECT_EQ(settings.learner().kernel_perceptron().kernel().polynomial().coef0(), 1);
}

TEST(RowSettings, AreRead) {
  const auto kernel = Read("kernel-perceptron", [](v1::Learner& learner) {
    testing::SetCount(learner, "budget", 7);
    learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_degree(5);
    learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_coef0(0);
  });
  ASSERT_OK(kernel.status());
  EXPECT_EQ(kernel->learner.budget, 7U);
  EXPECT_EQ(kernel->learner.kernel.kind, KernelSettings::Kind::kPolynomial);
  EXPECT_EQ(kernel->learner.kernel.degree, 5U);
  EXPECT_EQ(kernel->learner.kernel.coef0, 0);
  const auto batch = Read("batch-perceptron", [](v1::Learner& learner) {
    testing::SetCount(learner, "mini_batch", 64);
  });
  ASSERT_OK(batch.status());
  EXPECT_EQ(batch->learner.mini_batch, 64U);
  const auto pocket = Read("pocket-perceptron", [](v1::Learner& learner) {
    testing::SetCount(learner, "ratchet_examples", 100);
  });
  ASSERT_OK(pocket.status());
  EXPECT_EQ(pocket->learner.ratchet_examples, 100U);
}

TEST(LogisticSettings, StepsAreConstantUnlessSaidAndAdaptiveOnesAreNotAveraged) {
  using Logistic = v1::LogisticRegression;
  const auto is_refused = [](const std::string& learner, int steps) {
    return !Read(learner, [&](v1::Learner& given) {
              given.mutable_logistic_regression()->set_steps(static_cast<Logistic::Steps>(steps));
            }).ok();
  };
  for (const auto steps : {Logistic::STEPS_UNSPECIFIED, Logistic::STEPS_CONSTANT,
                           Logistic::STEPS_DECREASING, Logistic::STEPS_ADAPTIVE})
    EXPECT_FALSE(is_refused("logistic-regression", steps));
  EXPECT_FALSE(is_refused("averaged-logistic-regression", Logistic::STEPS_DECREASING));
  EXPECT_TRUE(is_refused("averaged-logistic-regression", Logistic::STEPS_ADAPTIVE));
  EXPECT_TRUE(is_refused("logistic-regression", 9));
  v1::Model settings = testing::DenseSettings("m", 3);
  settings.mutable_learner()->mutable_logistic_regression();
  FillDefaults(settings);
  EXPECT_EQ(settings.learner().logistic_regression().steps(), Logistic::STEPS_CONSTANT);
  // As a server stored it that knew no others.
  settings.mutable_learner()->mutable_logistic_regression()->clear_steps();
  EXPECT_EQ(ReadSettings(settings)->learner.steps, StepSchedule::kConstant);
}

// A newer client may send an alternative or setting that this server does not know. Without it the
// model would be another.
TEST(UnknownSettings, WhatTheServerDoesNotKnowIsRefusedWhereverItIs) {
  const auto refused_at = [](const std::string& path,
                             const std::function<google::protobuf::Message*(v1::Model&)>& part) {
    v1::Model settings = testing::DenseSettings("m", 3);
    google::protobuf::Message& message = *part(settings);
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(99, "");
    FillDefaults(settings);
    EXPECT_EQ(FieldOf(ReadSettings(settings).status()), path);
  };
  refused_at("model.learner", [](v1::Model& model) {
    model.mutable_learner()->clear_rule();
    return model.mutable_learner();
  });
  refused_at("model.learner.perceptron",
             [](v1::Model& model) { return model.mutable_learner()->mutable_perceptron(); });
  refused_at("model.learner.kernel_perceptron.kernel", [](v1::Model& model) {
    return model.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel();
  });
  refused_at("model.learner.classes",
             [](v1::Model& model) { return model.mutable_learner()->mutable_classes(); });
  refused_at("model.learner.starting_weights.vectors[0]", [](v1::Model& model) {
    return model.mutable_learner()->mutable_starting_weights()->add_vectors();
  });
  refused_at("model.feature_space", [](v1::Model& model) { return model.mutable_feature_space(); });
  refused_at("model.feature_space.map",
             [](v1::Model& model) { return model.mutable_feature_space()->mutable_map(); });
  refused_at("model.stored_examples",
             [](v1::Model& model) { return model.mutable_stored_examples(); });
}

struct BadSettings {
  const char* name;
  std::function<void(v1::Model&)> change;
  const char* field;
};

void PrintTo(const BadSettings& bad, std::ostream* out) { *out << bad.name; }

class Settings : public ::testing::TestWithParam<BadSettings> {};

TEST_P(Settings, OutOfRangeAreNamed) {
  v1::Model settings = testing::DenseSettings("model", 4);
  GetParam().change(settings);
  FillDefaults(settings);
  EXPECT_EQ(FieldOf(ReadSettings(settings).status()), GetParam().field);
}

// Of a learner of this name.
template <typename Change>
std::function<void(v1::Model&)> Of(const std::string& learner, Change change) {
  return [=](v1::Model& model) {
    testing::SetLearner(*model.mutable_learner(), learner);
    change(*model.mutable_learner());
  };
}
std::function<void(v1::Model&)> Counted(const std::string& learner, const std::string& setting,
                                        uint32_t count) {
  return Of(learner, [=](v1::Learner& given) { testing::SetCount(given, setting, count); });
}
std::function<void(v1::Model&)> Gamma(double gamma) {
  return Of("kernel-perceptron", [gamma](v1::Learner& given) {
    given.mutable_kernel_perceptron()->mutable_kernel()->mutable_rbf()->set_gamma(gamma);
  });
}
v1::Kernel::Polynomial& PolynomialOf(v1::Learner& learner) {
  return *learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial();
}

INSTANTIATE_TEST_SUITE_P(
    Bad, Settings,
    ::testing::Values(
        BadSettings{"NoSpace", [](v1::Model& m) { m.clear_feature_space(); },
                    "model.feature_space"},
        BadSettings{
            "NoDimension",
            [](v1::Model& m) { m.mutable_feature_space()->mutable_dense()->set_dimension(0); },
            "model.feature_space.dense.dimension"},
        BadSettings{"TooManyBits",
                    [](v1::Model& m) { m.mutable_feature_space()->mutable_hashed()->set_bits(29); },
                    "model.feature_space.hashed.bits"},
        BadSettings{"ZeroStep",
                    [](v1::Model& m) { testing::SetNumber(*m.mutable_learner(), "step_size", 0); },
                    "model.learner.perceptron.step_size"},
        BadSettings{
            "NaNStep",
            [](v1::Model& m) { testing::SetNumber(*m.mutable_learner(), "step_size", NAN); },
            "model.learner.perceptron.step_size"},
        BadSettings{"NegativeOffset", [](v1::Model& m) { m.mutable_learner()->set_bias_input(-1); },
                    "model.learner.bias_input"},
        BadSettings{"InfiniteOffset",
                    [](v1::Model& m) { m.mutable_learner()->set_bias_input(INFINITY); },
                    "model.learner.bias_input"},
        BadSettings{"StartOutside",
                    [](v1::Model& m) {
                      testing::StartingVector(*m.mutable_learner()).add_indices(4);
                      testing::StartingVector(*m.mutable_learner()).add_values(1);
                    },
                    "model.learner.starting_weights"},
        BadSettings{"StartInfinite",
                    [](v1::Model& m) {
                      testing::StartingVector(*m.mutable_learner()).add_indices(1);
                      testing::StartingVector(*m.mutable_learner()).add_values(INFINITY);
                    },
                    "model.learner.starting_weights"},
        BadSettings{"StartOffsetThatNoWeightHolds",
                    [](v1::Model& m) {
                      testing::StartingVector(*m.mutable_learner()).set_bias(1e30);
                      m.mutable_learner()->set_bias_input(1e-20);
                    },
                    "model.learner.starting_weights.bias"},
        BadSettings{"StartOffsetWithoutOne",
                    [](v1::Model& m) {
                      testing::StartingVector(*m.mutable_learner()).set_bias(1);
                      m.mutable_learner()->set_bias_input(0);
                    },
                    "model.learner.starting_weights.bias"},
        BadSettings{"ZeroStartWithTiesCorrect",
                    [](v1::Model& m) { m.mutable_learner()->set_tie_rule(v1::TIE_RULE_CORRECT); },
                    "model.learner.tie_rule"},
        BadSettings{"NoBudget", Counted("kernel-perceptron", "budget", 0),
                    "model.learner.kernel_perceptron.budget"},
        BadSettings{"LargeBudget", Counted("voted-perceptron", "budget", 100'001),
                    "model.learner.voted.budget"},
        BadSettings{"LargeBatch", Counted("batch-perceptron", "mini_batch", 1U << 31),
                    "model.learner.batch_perceptron.mini_batch"},
        BadSettings{"LargeRatchet", Counted("pocket-perceptron", "ratchet_examples", 100'001),
                    "model.learner.pocket.ratchet_examples"},
        BadSettings{"ZeroGamma", Gamma(0), "model.learner.kernel_perceptron.kernel.rbf.gamma"},
        BadSettings{"NegativeGamma", Gamma(-1), "model.learner.kernel_perceptron.kernel.rbf.gamma"},
        BadSettings{"LargeGamma", Gamma(2e12), "model.learner.kernel_perceptron.kernel.rbf.gamma"},
        BadSettings{"NaNGamma", Gamma(NAN), "model.learner.kernel_perceptron.kernel.rbf.gamma"},
        BadSettings{"LargeDegree",
                    Of("kernel-perceptron", [](v1::Learner& l) { PolynomialOf(l).set_degree(17); }),
                    "model.learner.kernel_perceptron.kernel.polynomial.degree"},
        BadSettings{"NegativeCoef0",
                    Of("kernel-perceptron", [](v1::Learner& l) { PolynomialOf(l).set_coef0(-1); }),
                    "model.learner.kernel_perceptron.kernel.polynomial.coef0"},
        BadSettings{"VotedArow", Of("arow", [](v1::Learner& l) { l.mutable_voted(); }),
                    "model.learner.voted"},
        BadSettings{"AveragedKernel",
                    Of("kernel-perceptron", [](v1::Learner& l) { l.mutable_averaged(); }),
                    "model.learner.averaged"},
        BadSettings{"StartOfAKernel",
                    Of("kernel-perceptron",
                       [](v1::Learner& l) {
                         testing::StartingVector(l).add_indices(0);
                         testing::StartingVector(l).add_values(1);
                       }),
                    "model.learner.starting_weights"},
        // A score of 0 would never be a mistake, and every score is 0 at first.
        BadSettings{"TiesOfAKernel",
                    Of("kernel-perceptron",
                       [](v1::Learner& l) { l.set_tie_rule(v1::TIE_RULE_CORRECT); }),
                    "model.learner.tie_rule"},
        BadSettings{"LongLabelName",
                    [](v1::Model& m) {
                      m.add_label_names(std::string(kMaxNameBytes + 1, 'x'));
                      m.add_label_names("y");
                    },
                    "model.label_names"},
        BadSettings{"OneLabelName", [](v1::Model& m) { m.add_label_names("ham"); },
                    "model.label_names"},
        BadSettings{"NegativeMargin", [](v1::Model& m) { m.set_margin_of_interest(-1); },
                    "model.margin_of_interest"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(LabelNames, MayBeAsLongAsAllNames) {
  v1::Model model = testing::DenseSettings("m", 3);
  FillDefaults(model);
  model.add_label_names(std::string(kMaxNameBytes, 'x'));
  model.add_label_names("y");
  EXPECT_TRUE(ReadSettings(model).ok());
}

TEST(ModelId, IsShortAndPlain) {
  for (const char* good : {"a", "0", "spam-filter_2.1"}) EXPECT_TRUE(IsModelId(good)) << good;
  EXPECT_TRUE(IsModelId(std::string(128, 'x')));
  for (const char* bad : {"", ".", "-a", "_a", "a/b", "a b", "\xc3\xa4"})
    EXPECT_FALSE(IsModelId(bad)) << bad;
  EXPECT_FALSE(IsModelId(std::string(129, 'x')));
}

}  // namespace
}  // namespace perceptrond::settings_test
