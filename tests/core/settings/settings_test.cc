// Settings of a model: defaults are written out, and the field that is out of range is named.
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <functional>

#include "core/learner/catalogue.h"
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
  // A server that knew no others stored none.
  settings.mutable_learner()->mutable_logistic_regression()->clear_steps();
  EXPECT_EQ(ReadSettings(settings)->learner.steps, StepSchedule::kConstant);
}

// A newer client may send an alternative or setting that this server does not know. Without it the
// model would be another.
TEST(UnknownSettings, AreRefusedWhereverTheyAre) {
  using google::protobuf::Message;
  const std::pair<std::string, std::function<Message*(v1::Model&)>> parts[] = {
      {"learner",
       [](v1::Model& model) {
         model.mutable_learner()->clear_rule();
         return model.mutable_learner();
       }},
      {"learner.perceptron",
       [](v1::Model& m) { return m.mutable_learner()->mutable_perceptron(); }},
      {"learner.kernel_perceptron.kernel",
       [](v1::Model& m) {
         return m.mutable_learner()->mutable_kernel_perceptron()->mutable_kernel();
       }},
      {"learner.classes", [](v1::Model& m) { return m.mutable_learner()->mutable_classes(); }},
      {"learner.starting_weights.vectors[0]",
       [](v1::Model& m) { return m.mutable_learner()->mutable_starting_weights()->add_vectors(); }},
      {"feature_space", [](v1::Model& m) { return m.mutable_feature_space(); }},
      {"feature_space.map", [](v1::Model& m) { return m.mutable_feature_space()->mutable_map(); }},
      {"stored_examples", [](v1::Model& m) { return m.mutable_stored_examples(); }}};
  for (const auto& [path, part] : parts) {
    v1::Model settings = testing::DenseSettings("m", 3);
    Message& message = *part(settings);
    message.GetReflection()->MutableUnknownFields(&message)->AddLengthDelimited(99, "");
    FillDefaults(settings);
    EXPECT_EQ(FieldOf(ReadSettings(settings).status()), "model." + path);
  }
}

// Text of a perceptron.v1.Model, merged into a model of four dense features, and the field that the refusal names.
const std::pair<std::string, std::string> kBadSettings[] = {
    {"feature_space { dense { dimension: 0 } }", "feature_space.dense.dimension"},
    {"feature_space { hashed { bits: 29 } }", "feature_space.hashed.bits"},
    {"feature_space { map { polynomial { degree: 9 } } }", "feature_space.map.polynomial.degree"},
    {"feature_space { map { fourier { dimension: 5 } } }", "feature_space.map.fourier.gamma"},
    {"feature_space { map { products { pairs {} } } }", "feature_space.map.products.kind"},
    {"learner { perceptron { step_size: 0 } }", "learner.perceptron.step_size"},
    {"learner { perceptron { step_size: nan } }", "learner.perceptron.step_size"},
    {"learner { arow { regularization: 0 } }", "learner.arow.regularization"},
    {"learner { batch_perceptron { mini_batch: 2147483648 } }",
     "learner.batch_perceptron.mini_batch"},
    {"learner { perceptron {} voted { budget: 100001 } }", "learner.voted.budget"},
    {"learner { perceptron {} pocket { ratchet_examples: 100001 } }",
     "learner.pocket.ratchet_examples"},
    {"learner { arow {} voted {} }", "learner.voted"},
    {"learner { bias_input: -1 }", "learner.bias_input"},
    {"learner { bias_input: inf }", "learner.bias_input"},
    // Every score is 0 at first, and would never be a mistake.
    {"learner { tie_rule: TIE_RULE_CORRECT }", "learner.tie_rule"},
    {"learner { kernel_perceptron {} tie_rule: TIE_RULE_CORRECT }", "learner.tie_rule"},
    {"learner { kernel_perceptron { budget: 0 } }", "learner.kernel_perceptron.budget"},
    {"learner { kernel_perceptron { kernel { rbf { gamma: 0 } } } }",
     "learner.kernel_perceptron.kernel.rbf.gamma"},
    {"learner { kernel_perceptron { kernel { rbf { gamma: -1 } } } }",
     "learner.kernel_perceptron.kernel.rbf.gamma"},
    {"learner { kernel_perceptron { kernel { rbf { gamma: 2e12 } } } }",
     "learner.kernel_perceptron.kernel.rbf.gamma"},
    {"learner { kernel_perceptron { kernel { rbf { gamma: nan } } } }",
     "learner.kernel_perceptron.kernel.rbf.gamma"},
    {"learner { kernel_perceptron { kernel { polynomial { degree: 17 } } } }",
     "learner.kernel_perceptron.kernel.polynomial.degree"},
    {"learner { kernel_perceptron { kernel { polynomial { coef0: -1 } } } }",
     "learner.kernel_perceptron.kernel.polynomial.coef0"},
    {"learner { kernel_perceptron {} averaged {} }", "learner.averaged"},
    {"learner { kernel_perceptron {} starting_weights { vectors { indices: 0 values: 1 } } }",
     "learner.starting_weights"},
    {"learner { starting_weights { vectors { indices: 4 values: 1 } } }",
     "learner.starting_weights"},
    {"learner { starting_weights { vectors { indices: 1 values: inf } } }",
     "learner.starting_weights"},
    {"learner { bias_input: 1e-20 starting_weights { vectors { bias: 1e30 } } }",
     "learner.starting_weights.bias"},
    {"learner { bias_input: 0 starting_weights { vectors { bias: 1 } } }",
     "learner.starting_weights.bias"},
    {"label_names: 'ham'", "label_names"},
    {"margin_of_interest: -1", "margin_of_interest"},
    {"learner { classes { max_classes: 1 } }", "learner.classes.max_classes"},
    // More weights than a model may have.
    {"feature_space { dense { dimension: 134217728 } } learner { classes { max_classes: 3 } }",
     "learner.classes.max_classes"},
    {"learner { classes { max_classes: 3 } } label_names: 'a'", "label_names"},
    {"learner { classes { max_classes: 3 } } label_names: ['a', 'b', 'a']", "label_names"},
    {"learner { classes { max_classes: 3 } class_weights: 1 }", "learner.class_weights"},
    // AROW defines no weights of examples.
    {"learner { arow {} classes { max_classes: 3 } class_weights: [1, 1, 1] }",
     "learner.class_weights"},
    {"learner { classes { max_classes: 3 } starting_weights { vectors { bias: 1 } } }",
     "learner.starting_weights.vectors"},
    {"learner { classes { max_classes: 9 new_classes: NEW_CLASSES_NUMBERED }"
     " starting_weights { vectors {} } }",
     "learner.starting_weights.vectors"},
    {"feature_space { named { max_features: 2 } } learner { classes { max_classes: 2 }"
     " starting_weights { vectors { names: ['a', 'c'] values: [1, 1] }"
     " vectors { names: ['b', 'c'] values: [1, 1] } } }",
     "learner.starting_weights"},
    {"learner { classes { max_classes: 3 } tie_rule: TIE_RULE_CORRECT }", "learner.tie_rule"},
    {"learner { kernel_perceptron {} classes { max_classes: 3 } }", "learner.classes"},
};

TEST(Settings, OutOfRangeAreNamed) {
  for (const auto& [text, field] : kBadSettings) {
    v1::Model settings = testing::DenseSettings("model", 4);
    ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(text, &settings)) << text;
    FillDefaults(settings);
    EXPECT_EQ(FieldOf(ReadSettings(settings).status()), "model." + field) << text;
  }
  EXPECT_EQ(FieldOf(ReadSettings(v1::Model()).status()), "model.feature_space");
}

// As a file may have them. What is left out is refused where reading it as 0 or none would be another
// model than the one with its default.
TEST(MissingSettings, AreRefusedByAnyReader) {
  const std::pair<std::string, std::function<void(v1::Learner&)>> missing[] = {
      {"learner", [](v1::Learner& learner) { learner.clear_rule(); }},
      {"learner.tie_rule", [](v1::Learner& learner) { learner.clear_tie_rule(); }},
      {"learner.bias_input", [](v1::Learner& learner) { learner.clear_bias_input(); }},
      {"learner.classes.new_classes",
       [](v1::Learner& learner) { learner.mutable_classes()->set_max_classes(2); }},
      {"learner.perceptron.step_size",
       [](v1::Learner& learner) { learner.mutable_perceptron()->clear_step_size(); }},
      {"learner.kernel_perceptron.budget",
       [](v1::Learner& learner) { learner.mutable_kernel_perceptron(); }},
      {"learner.kernel_perceptron.kernel",
       [](v1::Learner& learner) { learner.mutable_kernel_perceptron()->set_budget(1); }},
      {"learner.kernel_perceptron.kernel.polynomial.coef0",
       [](v1::Learner& learner) {
         learner.mutable_kernel_perceptron()->set_budget(1);
         learner.mutable_kernel_perceptron()->mutable_kernel()->mutable_polynomial()->set_degree(2);
       }},
  };
  for (const auto& [field, leave_out] : missing) {
    v1::Model settings = testing::DenseSettings("m", 3);
    FillDefaults(settings);
    leave_out(*settings.mutable_learner());
    EXPECT_EQ(FieldOf(ReadSettings(settings).status()), "model." + field);
  }
  for (const CatalogueEntry& learner : Catalogue()) {
    v1::Model settings = testing::DenseSettings("m", 3);
    testing::SetLearner(*settings.mutable_learner(), std::string(learner.name));
    EXPECT_TRUE(absl::IsInvalidArgument(ReadSettings(settings).status())) << learner.name;
  }
}

TEST(ClassSettings, ANamedSpaceLeftOpenMakesRoomForAllClasses) {
  v1::Model settings = testing::NamedSettings("m");
  settings.mutable_learner()->mutable_classes()->set_max_classes(10000);
  FillDefaults(settings);
  EXPECT_EQ(settings.feature_space().named().max_features(), (1U << 28) / 10000);
  EXPECT_OK(ReadSettings(settings).status());
}

TEST(LabelNames, MayBeAsLongAsAllNames) {
  v1::Model model = testing::DenseSettings("m", 3);
  FillDefaults(model);
  model.add_label_names(std::string(kMaxNameBytes, 'x'));
  model.add_label_names("y");
  EXPECT_TRUE(ReadSettings(model).ok());
  model.mutable_label_names(0)->push_back('x');
  EXPECT_EQ(FieldOf(ReadSettings(model).status()), "model.label_names");
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
