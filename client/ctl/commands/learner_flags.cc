#include "client/ctl/commands/learner_flags.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "client/ctl/command.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A setting of some learners. The flag is named like the field of its messages in
// perceptron/v1/learner.proto.
struct Setting {
  const char* field;
  const char* help;
};

constexpr Setting kSettings[] = {
    {"step_size",
     "Step size eta of perceptron, batch-perceptron and logistic-regression, > 0 (default 1)"},
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
    {"budget",
     "Most weight vectors of voted-RULE, or examples of kernel-perceptron, 1 to 100000 (default "
     "1000)"},
    {"ratchet_examples",
     "pocket-RULE: replace the pocket weights only if the new ones make no more errors on the "
     "latest N "
     "examples that caused updates (default 0: no such check)"},
};

constexpr uint32_t kMostClasses = 10'000;

std::string FlagName(const std::string& field) {
  return "--" + absl::StrReplaceAll(field, {{"_", "-"}});
}

// The field of perceptron.v1.Learner for a part of a learner's name.
const FieldDescriptor* FieldOf(absl::string_view part) {
  return v1::Learner::descriptor()->FindFieldByName(absl::StrReplaceAll(part, {{"-", "_"}}));
}

bool IsIn(const FieldDescriptor* field, absl::string_view oneof) {
  return field != nullptr && field->containing_oneof() != nullptr &&
         field->containing_oneof()->name() == oneof;
}

// The fields that a learner's name stands for: a rule, after a wrapper or none.
struct LearnerFields {
  const FieldDescriptor* rule = nullptr;
  const FieldDescriptor* wrapper = nullptr;
};

std::optional<LearnerFields> ParseName(const std::string& name) {
  LearnerFields fields{FieldOf(name)};
  if (IsIn(fields.rule, "rule")) return fields;
  const size_t dash = name.find('-');
  if (dash == std::string::npos) return std::nullopt;
  fields.wrapper = FieldOf(name.substr(0, dash));
  fields.rule = FieldOf(name.substr(dash + 1));
  if (!IsIn(fields.wrapper, "prediction") || !IsIn(fields.rule, "rule")) return std::nullopt;
  return fields;
}

std::string NamesIn(absl::string_view oneof) {
  std::string names;
  const auto* descriptor = v1::Learner::descriptor()->FindOneofByName(std::string(oneof));
  for (int i = 0; i < descriptor->field_count(); ++i)
    absl::StrAppend(&names, i == 0 ? "" : ", ",
                    absl::StrReplaceAll(descriptor->field(i)->name(), {{"_", "-"}}));
  return names;
}

std::string CheckName(const std::string& name) {
  if (ParseName(name).has_value()) return "";
  return absl::StrCat("\"", name, "\" is not a learner; give a rule (", NamesIn("rule"),
                      "), or a rule after \"averaged-\", \"pocket-\" or \"voted-\"");
}

// The learners whose rule or wrapper has a field of this name.
std::string LearnersWith(const std::string& setting) {
  std::string names;
  for (const char* oneof : {"rule", "prediction"}) {
    const auto* descriptor = v1::Learner::descriptor()->FindOneofByName(oneof);
    for (int i = 0; i < descriptor->field_count(); ++i) {
      const FieldDescriptor* const field = descriptor->field(i);
      if (field->message_type()->FindFieldByName(setting) == nullptr) continue;
      absl::StrAppend(&names, names.empty() ? "" : ", ",
                      absl::StrReplaceAll(field->name(), {{"_", "-"}}),
                      IsIn(field, "prediction") ? "-RULE" : "");
    }
  }
  return names;
}

// What is wrong with a flag of a setting that the learner does not have.
std::string NoSuchSetting(const std::string& flag, const std::string& field,
                          const std::string& learner) {
  return absl::StrCat(flag, ": the learner ", learner,
                      " has no such setting; learners that have it: ", LearnersWith(field));
}

// Sets the field of this name in the message that has it. False: none has.
bool Set(const std::vector<Message*>& messages, const std::string& name,
         const std::variant<double, uint32_t>& value) {
  for (Message* const message : messages) {
    const FieldDescriptor* const field = message->GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) continue;
    if (const double* const number = std::get_if<double>(&value)) {
      message->GetReflection()->SetDouble(message, field, *number);
    } else {
      message->GetReflection()->SetUInt32(message, field, std::get<uint32_t>(value));
    }
    return true;
  }
  return false;
}

}  // namespace

void LearnerFlags::AddTo(CLI::App* command) {
  command
      ->add_option("--learner", learner_,
                   "The learner: a rule, or a rule after averaged-, pocket- or voted-; "
                   "docs/learners.md compares them")
      ->check(CLI::Validator([](std::string& name) { return CheckName(name); },
                             "{" + absl::StrReplaceAll(NamesIn("rule"), {{", ", ","}}) + "}"))
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
        FlagName(field), [this, field](const uint32_t& value) { settings_[field] = value; },
        setting.help);
  }
  command
      ->add_option(
          "--steps", steps_,
          "logistic-regression: step size eta always, eta / sqrt(1 + t) after t updates, or "
          "eta / sqrt(sum of squared gradients) for each feature (AdaGrad; not averaged)")
      ->check(CLI::IsMember({"constant", "decreasing", "adaptive"}))
      ->default_str("constant");
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
  const LearnerFields fields = *ParseName(learner_);
  std::vector<Message*> messages;
  for (const FieldDescriptor* field : {fields.rule, fields.wrapper})
    if (field != nullptr)
      messages.push_back(learner->GetReflection()->MutableMessage(learner, field));
  for (const auto& [name, value] : settings_) {
    if (!Set(messages, name, value)) return NoSuchSetting(FlagName(name), name, learner_);
  }
  if (!steps_.empty() && !learner->has_logistic_regression())
    return NoSuchSetting("--steps", "steps", learner_);
  if (steps_ == "constant")
    learner->mutable_logistic_regression()->set_steps(v1::LogisticRegression::STEPS_CONSTANT);
  if (steps_ == "decreasing")
    learner->mutable_logistic_regression()->set_steps(v1::LogisticRegression::STEPS_DECREASING);
  if (steps_ == "adaptive")
    learner->mutable_logistic_regression()->set_steps(v1::LogisticRegression::STEPS_ADAPTIVE);
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
  if (const std::string flag = kernel_.given_flag();
      !flag.empty() && !learner->has_kernel_perceptron())
    return NoSuchSetting(flag, "kernel", learner_);
  return kernel_.Apply(learner);
}

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

std::string KernelFlags::given_flag() const {
  if (!kernel_.empty()) return "--kernel";
  if (gamma_) return "--kernel-gamma";
  if (degree_) return "--kernel-degree";
  return coef0_ ? "--kernel-coef0" : "";
}

std::string KernelFlags::Apply(v1::Learner* learner) const {
  const bool polynomial = kernel_ == "polynomial";
  if ((degree_ || coef0_) && !polynomial)
    return "--kernel-degree and --kernel-coef0 require --kernel polynomial";
  if (gamma_ && (polynomial || kernel_ == "linear")) return "--kernel-gamma requires --kernel rbf";
  if (given_flag().empty()) return "";
  v1::Kernel& kernel = *learner->mutable_kernel_perceptron()->mutable_kernel();
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

}  // namespace perceptrond::client
