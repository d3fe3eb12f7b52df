#include "core/learner/member_settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/learner/catalogue.h"

namespace perceptrond {
namespace {

// Of logistic regression.
constexpr double kUpdateThreshold = 0.25;

// A member's rule, its wrapper, and a setting that is not the rule's default.
struct MemberRule {
  RuleKind rule;
  WrapperKind wrapper = WrapperKind::kNone;
  absl::string_view setting_name = "";
  double LearnerSettings::*setting = nullptr;
  double value = 0;
};

constexpr MemberRule PlainMember(RuleKind rule, absl::string_view setting_name,
                                 double LearnerSettings::*setting, double value) {
  return {rule, WrapperKind::kNone, setting_name, setting, value};
}
constexpr MemberRule AveragedMember(RuleKind rule, absl::string_view setting_name = "",
                                    double LearnerSettings::*setting = nullptr, double value = 0) {
  return {rule, WrapperKind::kAveraged, setting_name, setting, value};
}

// Chosen by experiment: docs/adr/0060-weighted-majority.md.
constexpr MemberRule kMemberRules[kMembers] = {
    PlainMember(RuleKind::kArow, "regularization", &LearnerSettings::regularization, 0.1),
    PlainMember(RuleKind::kArow, "regularization", &LearnerSettings::regularization, 10),
    PlainMember(RuleKind::kLogisticRegression, "step size", &LearnerSettings::step_size, 1),
    PlainMember(RuleKind::kLogisticRegression, "step size", &LearnerSettings::step_size, 3),
    PlainMember(RuleKind::kSoftConfidenceWeighted, "aggressiveness",
                &LearnerSettings::aggressiveness, 1),
    AveragedMember(RuleKind::kPerceptron),
    AveragedMember(RuleKind::kPassiveAggressiveI, "aggressiveness",
                   &LearnerSettings::aggressiveness, 0.1),
    AveragedMember(RuleKind::kPassiveAggressiveI, "aggressiveness",
                   &LearnerSettings::aggressiveness, 1),
};

}  // namespace

LearnerSettings MemberSettings(size_t m, const LearnerSettings& whole) {
  const MemberRule& rule = kMemberRules[m];
  LearnerSettings settings;
  settings.rule = rule.rule;
  settings.wrapper = rule.wrapper;
  // Not every example becomes an update.
  if (rule.rule == RuleKind::kLogisticRegression) settings.update_threshold = kUpdateThreshold;
  if (rule.setting != nullptr) settings.*rule.setting = rule.value;
  settings.tie_rule = whole.tie_rule;
  settings.bias_input = whole.bias_input;
  settings.start = whole.start;
  settings.classes = whole.classes;
  return settings;
}

std::string MemberName(size_t m) {
  const MemberRule& rule = kMemberRules[m];
  std::string name = FindLearner(MemberSettings(m, {})).name;
  if (rule.setting != nullptr) absl::StrAppend(&name, ", ", rule.setting_name, " ", rule.value);
  if (rule.rule == RuleKind::kLogisticRegression)
    absl::StrAppend(&name, ", update threshold ", kUpdateThreshold);
  return name;
}

}  // namespace perceptrond
