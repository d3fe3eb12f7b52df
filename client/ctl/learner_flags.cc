#include "client/ctl/learner_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/flags.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

// A setting of some learners. The flag is named like the field of perceptron.v1.Learner.
struct Setting {
  const char* field;
  const char* help;
};

constexpr Setting kSettings[] = {
    {"step_size", "Step size eta of the perceptrons and of logistic-regression, > 0 (default 1)"},
    {"aggressiveness",
     "Aggressiveness C of passive-aggressive-i, -ii and soft-confidence-weighted, > 0 (default 1)"},
    {"confidence",
     "soft-confidence-weighted: the probability with which each example is to be correct, in "
     "(0.5, 1) (default 0.75)"},
    {"margin_slack", "Margin slack alpha of margin-perceptron, in (0, 1] (default 0.9)"},
    {"regularization", "Regularization r of arow, > 0 (default 1)"},
    {"update_threshold",
     "logistic-regression: update only if the error in probability is above this, in [0, 0.5) "
     "(default 0)"},
};

// Settings that are integers.
constexpr Setting kCounts[] = {
    {"mini_batch",
     "batch-perceptron: update every N examples and at the end of a pass (default 0: at the end of "
     "a pass only)"},
    {"budget", "Most support examples of voted- and kernel-perceptron, 1 to 100000 (default 1000)"},
    {"ratchet_examples",
     "pocket: replace the pocket weights only if the new ones make no more errors on the latest N "
     "examples that caused updates (default 0: no such check)"},
};

constexpr uint32_t kMostClasses = 10'000;

std::string FlagName(const std::string& field) {
  return "--" + absl::StrReplaceAll(field, {{"_", "-"}});
}

std::vector<std::string> LearnerNames() {
  std::vector<std::string> names;
  const auto* kinds = v1::LearnerKind_descriptor();
  for (int i = 0; i < kinds->value_count(); ++i) {
    const auto kind = static_cast<v1::LearnerKind>(kinds->value(i)->number());
    if (kind != v1::LEARNER_KIND_UNSPECIFIED) names.push_back(LearnerName(kind));
  }
  return names;
}

v1::LearnerKind FindLearner(const std::string& name) {
  const auto* kinds = v1::LearnerKind_descriptor();
  for (int i = 0; i < kinds->value_count(); ++i) {
    const auto kind = static_cast<v1::LearnerKind>(kinds->value(i)->number());
    if (LearnerName(kind) == name) return kind;
  }
  return v1::LEARNER_KIND_UNSPECIFIED;
}

}  // namespace

std::string LearnerName(v1::LearnerKind kind) {
  constexpr size_t kPrefix = sizeof("LEARNER_KIND_") - 1;
  const std::string& name = v1::LearnerKind_Name(kind);
  if (name.size() < kPrefix) return "learner " + std::to_string(static_cast<int>(kind));
  return absl::StrReplaceAll(absl::AsciiStrToLower(name.substr(kPrefix)), {{"_", "-"}});
}

void LearnerFlags::AddTo(CLI::App* command) {
  command->add_option("--learner", learner_, "The learner; docs/learners.md compares them")
      ->check(CLI::IsMember(LearnerNames()))
      ->capture_default_str();
  for (const Setting& setting : kSettings) {
    const std::string field = setting.field;
    command->add_option_function<double>(
        FlagName(field), [this, field](const double& value) { settings_[field] = value; },
        setting.help);
  }
  for (const Setting& setting : kCounts) {
    const std::string field = setting.field;
    command->add_option_function<uint32_t>(
        FlagName(field), [this, field](const uint32_t& value) { counts_[field] = value; },
        setting.help);
  }
  kernel_.AddTo(command);
  AddListFlag(command, "--class-weights", &class_weights_,
              "Weights of examples of -1 and +1, or of each class, such as 1,5 (default: all 1)");
  auto* classes = command
                      ->add_option("--classes", classes_,
                                   "Number of classes, 2 to 10000, instead of the labels -1 and "
                                   "+1. Classes are 0, 1, ... "
                                   "or the names in --labels")
                      ->check(CLI::Range(2U, kMostClasses));
  command
      ->add_option(
          "--new-classes", new_classes_,
          "With --classes: start without classes and add each with its first example, by number or "
          "by name; --classes is then the maximum")
      ->check(CLI::IsMember({"numbered", "named"}))
      ->needs(classes);
  command
      ->add_option(
          "--tie", tie_,
          "Treatment of a score of 0: always a mistake (default), predicted as +1, or never a "
          "mistake")
      ->check(CLI::IsMember({"mistake", "positive", "correct"}));
  auto* bias = command->add_option("--bias", bias_,
                                   "Value of the constant input feature, >= 0 (default 1; smaller "
                                   "values suit examples of unit norm, such as text)");
  command->add_flag("--no-bias", no_bias_, "No constant feature, as --bias 0")->excludes(bias);
}

std::string LearnerFlags::Apply(v1::Learner* learner) const {
  learner->set_kind(FindLearner(learner_));
  const auto* fields = learner->GetDescriptor();
  for (const auto& [field, value] : settings_)
    learner->GetReflection()->SetDouble(learner, fields->FindFieldByName(field), value);
  for (const auto& [field, value] : counts_)
    learner->GetReflection()->SetUInt32(learner, fields->FindFieldByName(field), value);
  for (const double weight : class_weights_) learner->add_class_weights(weight);
  if (classes_ > 0) learner->mutable_classes()->set_max_classes(classes_);
  if (new_classes_ == "numbered")
    learner->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
  if (new_classes_ == "named")
    learner->mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  if (bias_ != 1) learner->set_bias_input(bias_);
  if (no_bias_) learner->set_bias_input(0);
  if (tie_ == "mistake") learner->set_tie_rule(v1::TIE_RULE_MISTAKE);
  if (tie_ == "positive") learner->set_tie_rule(v1::TIE_RULE_POSITIVE);
  if (tie_ == "correct") learner->set_tie_rule(v1::TIE_RULE_CORRECT);
  return kernel_.Apply(learner);
}

namespace {

namespace v1 = ::perceptron::v1;

}  // namespace

void KernelFlags::AddTo(CLI::App* command) {
  command
      ->add_option(
          "--kernel", kernel_,
          "Kernel of kernel-perceptron: rbf is exp(-gamma |x - z|^2) (default), polynomial is "
          "(coef0 + x z)^degree, linear is x z")
      ->check(CLI::IsMember({"rbf", "polynomial", "linear"}));
  command->add_option("--kernel-gamma", gamma_, "gamma of --kernel rbf, > 0 (default 1)");
  command->add_option("--kernel-degree", degree_,
                      "degree of --kernel polynomial, 1 to 16 (default 2)");
  command->add_option("--kernel-coef0", coef0_, "coef0 of --kernel polynomial, >= 0 (default 1)");
}

std::string KernelFlags::Apply(v1::Learner* learner) const {
  const bool polynomial = kernel_ == "polynomial";
  if ((degree_ || coef0_) && !polynomial)
    return "--kernel-degree and --kernel-coef0 require --kernel polynomial";
  if (gamma_ && (polynomial || kernel_ == "linear")) return "--kernel-gamma requires --kernel rbf";
  if (kernel_.empty() && !gamma_) return "";
  v1::Kernel& kernel = *learner->mutable_kernel();
  if (kernel_ == "linear") {
    kernel.mutable_linear();
  } else if (polynomial) {
    kernel.mutable_polynomial();
    if (degree_) kernel.mutable_polynomial()->set_degree(*degree_);
    if (coef0_) kernel.mutable_polynomial()->set_coef0(*coef0_);
  } else {
    kernel.mutable_rbf();
    if (gamma_) kernel.mutable_rbf()->set_gamma(*gamma_);
  }
  return "";
}

std::string DescribeKernel(const v1::Kernel& kernel) {
  switch (kernel.kernel_case()) {
    case v1::Kernel::kPolynomial:
      return absl::StrFormat("kernel (%g + x z)^%d", kernel.polynomial().coef0(),
                             kernel.polynomial().degree());
    case v1::Kernel::kRbf:
      return absl::StrFormat("kernel exp(-%g |x - z|^2)", kernel.rbf().gamma());
    case v1::Kernel::kLinear:
      return "kernel x z";
    case v1::Kernel::KERNEL_NOT_SET:
      break;
  }
  return "a kernel unknown to this version";
}

}  // namespace perceptrond::client
