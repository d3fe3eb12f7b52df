#include "core/model/learner_settings.h"

#include <cmath>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/class_settings.h"
#include "core/model/error.h"
#include "core/model/start_settings.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// The square of the constant input is within float32's range.
constexpr double kMaxBiasInput = 1e18;
constexpr uint32_t kMaxDegree = 16;
constexpr double kMaxGamma = 1e12;

absl::Status InvalidKernel(absl::string_view field, double value, absl::string_view range) {
  return InvalidField("INVALID_FIELD", absl::StrCat("model.learner.kernel.", field),
                      absl::StrCat(value, " is not ", range));
}

absl::StatusOr<KernelSettings> ReadPolynomial(const v1::Kernel::Polynomial& polynomial) {
  if (polynomial.degree() < 1 || polynomial.degree() > kMaxDegree)
    return InvalidKernel("polynomial.degree", polynomial.degree(),
                         absl::StrCat("between 1 and ", kMaxDegree));
  if (!(polynomial.coef0() >= 0) || !std::isfinite(polynomial.coef0()))
    return InvalidKernel("polynomial.coef0", polynomial.coef0(), "at least 0 and finite");
  KernelSettings kernel;
  kernel.kind = KernelSettings::Kind::kPolynomial;
  kernel.degree = polynomial.degree();
  kernel.coef0 = polynomial.coef0();
  return kernel;
}

absl::StatusOr<KernelSettings> ReadRbf(const v1::Kernel::Rbf& rbf) {
  if (!(rbf.gamma() > 0) || rbf.gamma() > kMaxGamma)
    return InvalidKernel("rbf.gamma", rbf.gamma(), absl::StrCat("above 0 and at most ", kMaxGamma));
  KernelSettings kernel;
  kernel.kind = KernelSettings::Kind::kRbf;
  kernel.gamma = rbf.gamma();
  return kernel;
}

void FillDefaultKernel(v1::Kernel& kernel) {
  if (kernel.kernel_case() == v1::Kernel::KERNEL_NOT_SET) kernel.mutable_rbf();
  if (kernel.has_rbf() && !kernel.rbf().has_gamma())
    kernel.mutable_rbf()->set_gamma(KernelSettings().gamma);
  if (!kernel.has_polynomial()) return;
  v1::Kernel::Polynomial& polynomial = *kernel.mutable_polynomial();
  if (!polynomial.has_degree()) polynomial.set_degree(KernelSettings().degree);
  if (!polynomial.has_coef0()) polynomial.set_coef0(KernelSettings().coef0);
}

absl::StatusOr<KernelSettings> ReadKernel(const v1::Kernel& kernel) {
  if (kernel.has_polynomial()) return ReadPolynomial(kernel.polynomial());
  if (kernel.has_rbf()) return ReadRbf(kernel.rbf());
  KernelSettings linear;
  linear.kind = KernelSettings::Kind::kLinear;
  return linear;
}

// A number that some rules have as a setting: in the API, in the core, and its range.
template <typename T>
struct RuleOption {
  LearnerOption option;
  const char* field;
  bool (v1::Learner::*has)() const;
  T (v1::Learner::*get)() const;
  void (v1::Learner::*set)(T);
  T LearnerSettings::*setting;
  T default_value;
  bool (*in_range)(T);
  const char* range;
};

// The most examples that a learner may keep.
constexpr uint32_t kMostRows = 100'000;

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

const RuleOption<double> kRuleOptions[] = {
    {kTakesStepSize, "step_size", &v1::Learner::has_step_size, &v1::Learner::step_size,
     &v1::Learner::set_step_size, &LearnerSettings::step_size, 1, &IsPositive,
     "above 0 and finite"},
    {kTakesAggressiveness, "aggressiveness", &v1::Learner::has_aggressiveness,
     &v1::Learner::aggressiveness, &v1::Learner::set_aggressiveness,
     &LearnerSettings::aggressiveness, 1, &IsPositive, "above 0 and finite"},
    {kTakesMarginSlack, "margin_slack", &v1::Learner::has_margin_slack, &v1::Learner::margin_slack,
     &v1::Learner::set_margin_slack, &LearnerSettings::margin_slack, 0.9,
     [](double value) { return value > 0 && value <= 1; }, "above 0 and at most 1"},
    {kTakesRegularization, "regularization", &v1::Learner::has_regularization,
     &v1::Learner::regularization, &v1::Learner::set_regularization,
     &LearnerSettings::regularization, 1, &IsPositive, "above 0 and finite"},
    {kTakesConfidence, "confidence", &v1::Learner::has_confidence, &v1::Learner::confidence,
     &v1::Learner::set_confidence, &LearnerSettings::confidence, 0.75,
     [](double value) { return value > 0.5 && value < 1; }, "above 0.5 and below 1"},
    {kTakesUpdateThreshold, "update_threshold", &v1::Learner::has_update_threshold,
     &v1::Learner::update_threshold, &v1::Learner::set_update_threshold,
     &LearnerSettings::update_threshold, 0, [](double value) { return value >= 0 && value < 0.5; },
     "from 0 to below 0.5"},
};

const RuleOption<uint32_t> kRuleCounts[] = {
    {kTakesMiniBatch, "mini_batch", &v1::Learner::has_mini_batch, &v1::Learner::mini_batch,
     &v1::Learner::set_mini_batch, &LearnerSettings::mini_batch, 0,
     [](uint32_t value) { return value < 1U << 31; }, "below 2^31"},
    {kTakesBudget, "budget", &v1::Learner::has_budget, &v1::Learner::budget,
     &v1::Learner::set_budget, &LearnerSettings::budget, 1000,
     [](uint32_t value) { return value >= 1 && value <= kMostRows; }, "between 1 and 100000"},
    {kTakesRatchet, "ratchet_examples", &v1::Learner::has_ratchet_examples,
     &v1::Learner::ratchet_examples, &v1::Learner::set_ratchet_examples,
     &LearnerSettings::ratchet_examples, 0, [](uint32_t value) { return value <= kMostRows; },
     "at most 100000"},
};

absl::Status NoSuchSetting(const CatalogueEntry& entry, absl::string_view field) {
  return InvalidSetting(field, absl::StrCat("the learner ", entry.name, " has no such setting"));
}

template <typename T>
void FillOptions(std::span<const RuleOption<T>> options, uint16_t taken, v1::Learner& learner) {
  for (const RuleOption<T>& option : options) {
    if ((taken & option.option) != 0 && !(learner.*option.has)())
      (learner.*option.set)(option.default_value);
  }
}

template <typename T>
absl::Status ReadOptions(std::span<const RuleOption<T>> options, const v1::Learner& learner,
                         LearnerSettings& settings) {
  const CatalogueEntry& entry = FindLearner(settings);
  for (const RuleOption<T>& option : options) {
    const std::string field = absl::StrCat("model.learner.", option.field);
    if ((entry.options & option.option) == 0) {
      if ((learner.*option.has)()) return NoSuchSetting(entry, field);
      continue;
    }
    const T value = (learner.*option.get)();
    if (!option.in_range(value))
      return InvalidSetting(field, absl::StrCat(value, " is not ", option.range));
    settings.*option.setting = value;
  }
  return absl::OkStatus();
}

absl::Status ReadKernelOption(const v1::Learner& learner, LearnerSettings& settings) {
  const CatalogueEntry& entry = FindLearner(settings);
  if ((entry.options & kTakesKernel) == 0)
    return learner.has_kernel() ? NoSuchSetting(entry, "model.learner.kernel") : absl::OkStatus();
  absl::StatusOr<KernelSettings> kernel = ReadKernel(learner.kernel());
  if (!kernel.ok()) return kernel.status();
  settings.kernel = *kernel;
  return absl::OkStatus();
}

absl::Status ReadClassWeights(const v1::Learner& learner, LearnerSettings& settings) {
  if (learner.class_weights().empty()) return absl::OkStatus();
  constexpr absl::string_view kField = "model.learner.class_weights";
  if (!FindLearner(settings).takes_weights)
    return InvalidSetting(kField, absl::StrCat("the learner ", FindLearner(settings).name,
                                               " has no weights of examples"));
  for (const double weight : learner.class_weights()) {
    if (!IsPositive(weight))
      return InvalidSetting(kField, absl::StrCat(weight, " is not above 0 and finite"));
  }
  if (settings.classes.max > 0) return ReadWeightsOfClasses(learner, settings.classes);
  if (learner.class_weights_size() != 2)
    return InvalidSetting(kField, "give two: that of -1 and that of +1; or none");
  for (int i = 0; i < 2; ++i) settings.class_weights[i] = learner.class_weights(i);
  return absl::OkStatus();
}

absl::Status ReadTieRule(const v1::Learner& learner, LearnerSettings& settings) {
  switch (learner.tie_rule()) {
    case v1::TIE_RULE_MISTAKE:
      settings.tie_rule = TieRule::kMistake;
      break;
    case v1::TIE_RULE_POSITIVE:
      settings.tie_rule = TieRule::kPositive;
      break;
    case v1::TIE_RULE_CORRECT:
      settings.tie_rule = TieRule::kCorrect;
      break;
    default:
      return InvalidSetting(
          "model.learner.tie_rule",
          absl::StrCat("this server knows no tie rule number ", learner.tie_rule()));
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaults(v1::Learner& learner) {
  if (learner.kind() == v1::LEARNER_KIND_UNSPECIFIED) learner.set_kind(v1::LEARNER_KIND_PERCEPTRON);
  if (learner.tie_rule() == v1::TIE_RULE_UNSPECIFIED) learner.set_tie_rule(v1::TIE_RULE_MISTAKE);
  if (!learner.has_offset_value()) learner.set_offset_value(1);
  if (learner.has_classes()) FillDefaultClasses(*learner.mutable_classes());
  const int kind = learner.kind() - 1;
  // Another number is refused by ReadSettings.
  if (kind < 0 || static_cast<size_t>(kind) >= Catalogue().size()) return;
  const uint16_t options = Catalogue()[static_cast<size_t>(kind)].options;
  FillOptions<double>(kRuleOptions, options, learner);
  FillOptions<uint32_t>(kRuleCounts, options, learner);
  if ((options & kTakesKernel) != 0) FillDefaultKernel(*learner.mutable_kernel());
}

absl::StatusOr<LearnerSettings> ReadLearner(const v1::Learner& learner, const FeatureSpace& space) {
  LearnerSettings settings;
  const int kind = learner.kind() - 1;
  if (kind < 0 || static_cast<size_t>(kind) >= Catalogue().size()) {
    return InvalidSetting("model.learner.kind",
                          absl::StrCat("this server knows no learner number ", learner.kind()));
  }
  const CatalogueEntry& entry = FindLearner(static_cast<LearnerKind>(kind));
  settings.rule = entry.rule;
  settings.wrapper = entry.wrapper;
  if (absl::Status status = ReadTieRule(learner, settings); !status.ok()) return status;
  if (absl::Status status = ReadClasses(learner, space, settings); !status.ok()) return status;
  if (absl::Status status = ReadOptions<double>(kRuleOptions, learner, settings); !status.ok())
    return status;
  if (absl::Status status = ReadOptions<uint32_t>(kRuleCounts, learner, settings); !status.ok())
    return status;
  if (absl::Status status = ReadKernelOption(learner, settings); !status.ok()) return status;
  if (absl::Status status = ReadClassWeights(learner, settings); !status.ok()) return status;
  settings.bias_input = learner.offset_value();
  if (!(settings.bias_input >= 0 && settings.bias_input <= kMaxBiasInput)) {
    return InvalidSetting(
        "model.learner.offset_value",
        absl::StrCat(settings.bias_input, " is not between 0 and ", kMaxBiasInput));
  }
  absl::StatusOr<StartingWeights> start = ReadStart(learner, space);
  if (!start.ok()) return start.status();
  settings.start = *std::move(start);
  if (FindLearner(settings).form == Form::kKernel && learner.has_starting_weights())
    return InvalidSetting(
        "model.learner.starting_weights",
        absl::StrCat("the learner ", FindLearner(settings).name, " has no weights to start from"));
  if (settings.tie_rule == TieRule::kCorrect && settings.start.all_zero()) {
    return InvalidField("ZERO_START", "model.learner.tie_rule",
                        "from zero weights every score is 0, and this rule counts 0 as correct: "
                        "nothing would ever be "
                        "learned; give starting_weights");
  }
  return settings;
}

}  // namespace perceptrond
