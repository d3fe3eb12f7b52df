#include "core/settings/learner_settings.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cmath>
#include <limits>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The square of the constant input is within float32's range.
constexpr double kMaxBiasInput = 1e18;
constexpr uint32_t kMaxDegree = 16;
constexpr double kMaxGamma = 1e12;

absl::Status InvalidKernel(absl::string_view field, double value, absl::string_view range) {
  return InvalidField("INVALID_FIELD",
                      absl::StrCat("model.learner.kernel_perceptron.kernel.", field),
                      absl::StrCat(value, " is not ", range));
}

absl::StatusOr<KernelSettings> ReadPolynomial(const v1::Kernel::Polynomial& polynomial) {
  if (polynomial.degree() < 1 || polynomial.degree() > kMaxDegree)
    return InvalidKernel("polynomial.degree", polynomial.degree(),
                         absl::StrCat("between 1 and ", kMaxDegree));
  if (!polynomial.has_coef0())
    return InvalidSetting("model.learner.kernel_perceptron.kernel.polynomial.coef0", "is missing");
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
  KernelSettings linear;
  switch (kernel.kernel_case()) {
    case v1::Kernel::kPolynomial:
      return ReadPolynomial(kernel.polynomial());
    case v1::Kernel::kRbf:
      return ReadRbf(kernel.rbf());
    case v1::Kernel::kLinear:
      linear.kind = KernelSettings::Kind::kLinear;
      return linear;
    case v1::Kernel::KERNEL_NOT_SET:
      break;
  }
  return InvalidSetting("model.learner.kernel_perceptron.kernel", "is missing");
}

// The most examples or weights that a learner may keep.
constexpr uint32_t kMostRows = 100'000;

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }
// Within float32, which weights are.
bool IsStepSize(double value) {
  return value >= std::numeric_limits<float>::min() && value <= std::numeric_limits<float>::max();
}

// A number that some rules and wrappers have as a setting: the field of their messages in
// perceptron.v1, and its range.
template <typename T>
struct Setting {
  const char* field;
  T LearnerSettings::*setting;
  bool (*in_range)(T);
  const char* range;
};

constexpr Setting<double> kNumbers[] = {
    {"step_size", &LearnerSettings::step_size, &IsStepSize,
     "between 1.1754944e-38 and 3.4028235e38"},
    {"aggressiveness", &LearnerSettings::aggressiveness, &IsPositive, "above 0 and finite"},
    {"margin_slack", &LearnerSettings::margin_slack,
     [](double value) { return value > 0 && value <= 1; }, "above 0 and at most 1"},
    {"regularization", &LearnerSettings::regularization, &IsPositive, "above 0 and finite"},
    {"confidence", &LearnerSettings::confidence,
     [](double value) { return value > 0.5 && value < 1; }, "above 0.5 and below 1"},
    {"update_threshold", &LearnerSettings::update_threshold,
     [](double value) { return value >= 0 && value < 0.5; }, "from 0 to below 0.5"},
};

constexpr Setting<uint32_t> kCounts[] = {
    {"mini_batch", &LearnerSettings::mini_batch, [](uint32_t value) { return value < 1U << 31; },
     "below 2^31"},
    {"budget", &LearnerSettings::budget,
     [](uint32_t value) { return value >= 1 && value <= kMostRows; }, "between 1 and 100000"},
    {"ratchet_examples", &LearnerSettings::ratchet_examples,
     [](uint32_t value) { return value <= kMostRows; }, "at most 100000"},
};

double Get(const Message& message, const FieldDescriptor* field, double) {
  return message.GetReflection()->GetDouble(message, field);
}
uint32_t Get(const Message& message, const FieldDescriptor* field, uint32_t) {
  return message.GetReflection()->GetUInt32(message, field);
}
void Set(Message& message, const FieldDescriptor* field, double value) {
  message.GetReflection()->SetDouble(&message, field, value);
}
void Set(Message& message, const FieldDescriptor* field, uint32_t value) {
  message.GetReflection()->SetUInt32(&message, field, value);
}

// The settings that the message has and that are left out get their defaults.
template <typename T>
void FillSettings(std::span<const Setting<T>> settings, Message& message) {
  for (const Setting<T>& setting : settings) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(setting.field);
    if (field != nullptr && !message.GetReflection()->HasField(message, field))
      Set(message, field, LearnerSettings().*setting.setting);
  }
}

template <typename T>
absl::Status ReadSettings(std::span<const Setting<T>> settings, const Message& message,
                          absl::string_view path, LearnerSettings& read) {
  for (const Setting<T>& setting : settings) {
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(setting.field);
    if (field == nullptr) continue;
    const T value = Get(message, field, T{});
    if (!setting.in_range(value))
      return InvalidSetting(absl::StrCat(path, ".", setting.field),
                            absl::StrCat(value, " is not ", setting.range));
    read.*setting.setting = value;
  }
  return absl::OkStatus();
}

// The message that is set of a oneof of perceptron.v1.Learner.
class Choice {
 public:
  Choice(const v1::Learner& learner, const char* oneof)
      : learner_(learner),
        field_(learner.GetReflection()->GetOneofFieldDescriptor(
            learner, v1::Learner::descriptor()->FindOneofByName(oneof))) {}

  explicit operator bool() const { return field_ != nullptr; }
  const std::string& field() const { return field_->name(); }
  // As in CatalogueEntry::name.
  std::string name() const { return absl::StrReplaceAll(field_->name(), {{"_", "-"}}); }
  const Message& message() const { return learner_.GetReflection()->GetMessage(learner_, field_); }
  Message& mutable_message(v1::Learner& learner) const {
    return *learner.GetReflection()->MutableMessage(&learner, field_);
  }

 private:
  const v1::Learner& learner_;
  const FieldDescriptor* field_;
};

absl::Status ReadChoice(const Choice& choice, LearnerSettings& settings) {
  if (!choice) return absl::OkStatus();
  const std::string path = absl::StrCat("model.learner.", choice.field());
  absl::Status status = ReadSettings<double>(kNumbers, choice.message(), path, settings);
  if (status.ok()) status = ReadSettings<uint32_t>(kCounts, choice.message(), path, settings);
  return status;
}

// What to send instead of a wrapper that the rule does not allow.
std::string WrapperAdvice(RuleKind rule) {
  std::string advice;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.rule == rule && entry.wrapper != WrapperKind::kNone)
      absl::StrAppend(&advice, advice.empty() ? "use " : " or ",
                      entry.name.substr(0, entry.name.find('-')));
  }
  return absl::StrCat(advice, advice.empty() ? "" : ", or ", "leave it out");
}

absl::Status ReadKind(const Choice& rule, const Choice& wrapper, LearnerSettings& settings) {
  if (!rule) return InvalidSetting("model.learner", "has no rule");
  const std::string name = wrapper ? absl::StrCat(wrapper.name(), "-", rule.name()) : rule.name();
  const CatalogueEntry* entry = FindLearner(name);
  if (entry == nullptr)
    return InvalidSetting(absl::StrCat("model.learner.", wrapper.field()),
                          absl::StrCat("the rule ", rule.name(), " does not allow it; ",
                                       WrapperAdvice(FindLearner(rule.name())->rule)));
  settings.rule = entry->rule;
  settings.wrapper = entry->wrapper;
  return absl::OkStatus();
}

absl::Status ReadSteps(const v1::LogisticRegression& logistic, LearnerSettings& settings) {
  constexpr absl::string_view kField = "model.learner.logistic_regression.steps";
  switch (logistic.steps()) {
    // Stored before there were others.
    case v1::LogisticRegression::STEPS_UNSPECIFIED:
    case v1::LogisticRegression::STEPS_CONSTANT:
      return absl::OkStatus();
    case v1::LogisticRegression::STEPS_DECREASING:
      settings.steps = StepSchedule::kDecreasing;
      return absl::OkStatus();
    case v1::LogisticRegression::STEPS_ADAPTIVE:
      settings.steps = StepSchedule::kAdaptive;
      if (settings.wrapper == WrapperKind::kNone) return absl::OkStatus();
      return InvalidSetting(kField,
                            "adaptive steps cannot be averaged; leave averaged out, or use "
                            "STEPS_DECREASING");
    default:
      return InvalidSetting(kField,
                            absl::StrCat("this server knows no steps number ", logistic.steps()));
  }
}

// The rules that take weights of examples.
std::string WeighingRules() {
  std::string names;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.takes_weights && entry.wrapper == WrapperKind::kNone)
      absl::StrAppend(&names, names.empty() ? "" : ", ", entry.name);
  }
  return names;
}

absl::Status ReadClassWeights(const v1::Learner& learner, LearnerSettings& settings) {
  if (learner.class_weights().empty()) return absl::OkStatus();
  constexpr absl::string_view kField = "model.learner.class_weights";
  if (!FindLearner(settings).takes_weights)
    return InvalidSetting(kField, absl::StrCat("the learner ", FindLearner(settings).name,
                                               " has no weights of examples; leave them out, or "
                                               "choose a learner that has them: ",
                                               WeighingRules()));
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
  if (learner.rule_case() == v1::Learner::RULE_NOT_SET) learner.mutable_perceptron();
  if (learner.tie_rule() == v1::TIE_RULE_UNSPECIFIED) learner.set_tie_rule(v1::TIE_RULE_MISTAKE);
  if (!learner.has_bias_input()) learner.set_bias_input(LearnerSettings().bias_input);
  if (learner.has_classes()) FillDefaultClasses(*learner.mutable_classes());
  for (const char* oneof : {"rule", "prediction"}) {
    const Choice choice(learner, oneof);
    if (!choice) continue;
    FillSettings<double>(kNumbers, choice.mutable_message(learner));
    FillSettings<uint32_t>(kCounts, choice.mutable_message(learner));
  }
  if (learner.has_logistic_regression() &&
      learner.logistic_regression().steps() == v1::LogisticRegression::STEPS_UNSPECIFIED)
    learner.mutable_logistic_regression()->set_steps(v1::LogisticRegression::STEPS_CONSTANT);
  if (learner.has_kernel_perceptron())
    FillDefaultKernel(*learner.mutable_kernel_perceptron()->mutable_kernel());
}

absl::StatusOr<LearnerSettings> ReadLearner(const v1::Learner& learner, const FeatureSpace& space) {
  LearnerSettings settings;
  const Choice rule(learner, "rule");
  const Choice wrapper(learner, "prediction");
  if (absl::Status status = ReadKind(rule, wrapper, settings); !status.ok()) return status;
  if (absl::Status status = ReadTieRule(learner, settings); !status.ok()) return status;
  if (absl::Status status = ReadClasses(learner, space, settings); !status.ok()) return status;
  if (absl::Status status = ReadChoice(rule, settings); !status.ok()) return status;
  if (absl::Status status = ReadChoice(wrapper, settings); !status.ok()) return status;
  if (learner.has_logistic_regression()) {
    absl::Status status = ReadSteps(learner.logistic_regression(), settings);
    if (!status.ok()) return status;
  }
  if (learner.has_kernel_perceptron()) {
    absl::StatusOr<KernelSettings> kernel = ReadKernel(learner.kernel_perceptron().kernel());
    if (!kernel.ok()) return kernel.status();
    settings.kernel = *kernel;
  }
  if (absl::Status status = ReadClassWeights(learner, settings); !status.ok()) return status;
  if (!learner.has_bias_input()) return InvalidSetting("model.learner.bias_input", "is missing");
  settings.bias_input = learner.bias_input();
  if (!(settings.bias_input >= 0 && settings.bias_input <= kMaxBiasInput)) {
    return InvalidSetting(
        "model.learner.bias_input",
        absl::StrCat(settings.bias_input, " is not between 0 and ", kMaxBiasInput));
  }
  absl::StatusOr<StartingWeights> start = ReadStart(learner, space);
  if (!start.ok()) return start.status();
  settings.start = *std::move(start);
  if (FindLearner(settings).form == Form::kKernel && learner.has_starting_weights())
    return InvalidSetting("model.learner.starting_weights",
                          absl::StrCat("the learner ", FindLearner(settings).name,
                                       " has no weights to start from; leave them out"));
  if (settings.tie_rule == TieRule::kCorrect && settings.start.all_zero()) {
    return InvalidField("ZERO_START", "model.learner.tie_rule",
                        "from zero weights every score is 0, and this rule counts 0 as correct: "
                        "nothing would ever be learned; give starting_weights");
  }
  return settings;
}

}  // namespace perceptrond
