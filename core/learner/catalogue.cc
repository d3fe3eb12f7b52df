#include "core/learner/catalogue.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/learner/batch_perceptron.h"
#include "core/learner/confidence_weighted.h"
#include "core/learner/kernel_perceptron.h"
#include "core/learner/logistic_regression.h"
#include "core/learner/margin_perceptron.h"
#include "core/learner/passive_aggressive.h"
#include "core/learner/perceptron.h"
#include "core/learner/rule_learner.h"
#include "core/learner/weighted_majority.h"

namespace perceptrond {
namespace {

template <typename L>
std::unique_ptr<Learner> Make(const LearnerSettings& settings, size_t size) {
  return std::make_unique<L>(settings, size);
}

std::unique_ptr<Learner> MakeLogistic(const LearnerSettings& settings, size_t size) {
  switch (settings.steps) {
    case StepSchedule::kConstant:
      break;
    case StepSchedule::kDecreasing:
      return Make<LogisticLearner<DecreasingLogisticRegression>>(settings, size);
    case StepSchedule::kAdaptive:
      return Make<LogisticLearner<AdaptiveLogisticRegression>>(settings, size);
  }
  return Make<LogisticLearner<LogisticRegression>>(settings, size);
}

// Wrappers that a rule allows besides none.
enum AllowedWrapper : uint8_t {
  // Its updates are multiples of z, so that they can be added to an average.
  kAllowsAveraged = 1,
  // Its score vectors alone make the scores, at the scale 1, without which a pocket is saved; and
  // examples that are right enough change nothing.
  kAllowsPocket = 2,
  // Its updates are multiples of z that change no more than two vectors.
  kAllowsVoted = 4,
  kAllowsEach = 7,
};

struct Rule {
  RuleKind rule;
  absl::string_view name;
  absl::string_view summary;
  std::unique_ptr<Learner> (*make)(const LearnerSettings& settings, size_t size);
  uint8_t wrappers = 0;
  bool convergence_theorem = false;
  bool counts_examples = false;
  bool takes_weights = false;
  absl::string_view two_labels_only = "";
  Form form = Form::kLinear;
  absl::string_view no_dual = "";
  absl::string_view no_class_dual = "";
};

// In the order of RuleKind.
constexpr Rule kRules[] = {
    {.rule = RuleKind::kPerceptron,
     .name = "perceptron",
     .summary = "Rosenblatt's perceptron: updates on mistakes, certified when separable",
     .make = &Make<RuleLearner<Perceptron>>,
     .wrappers = kAllowsEach,
     .convergence_theorem = true,
     .takes_weights = true},
    {.rule = RuleKind::kMarginPerceptron,
     .name = "margin-perceptron",
     .summary = "ALMA: learns until every example is right by nearly the best margin",
     .make = &Make<RuleLearner<MarginPerceptron>>,
     .no_dual = "each update scales all earlier ones, by norms that are not kept"},
    {.rule = RuleKind::kPassiveAggressive,
     .name = "passive-aggressive",
     .summary = "passive-aggressive: the least change that makes an example right with margin 1",
     .make = &Make<RuleLearner<PassiveAggressive>>,
     .wrappers = kAllowsEach},
    {.rule = RuleKind::kPassiveAggressiveI,
     .name = "passive-aggressive-i",
     .summary = "passive-aggressive with steps of at most C: for noisy labels",
     .make = &Make<RuleLearner<PassiveAggressive>>,
     .wrappers = kAllowsEach,
     .takes_weights = true},
    {.rule = RuleKind::kPassiveAggressiveII,
     .name = "passive-aggressive-ii",
     .summary = "passive-aggressive with steps damped by C: for noisy labels",
     .make = &Make<RuleLearner<PassiveAggressive>>,
     .wrappers = kAllowsEach,
     .takes_weights = true},
    {.rule = RuleKind::kArow,
     .name = "arow",
     .summary = "adaptive regularization: well-known features move less than new ones",
     .make = &Make<RuleLearner<Arow>>,
     .wrappers = kAllowsPocket,
     .no_dual = "an update moves each feature by a confidence of its own, which is not kept"},
    {.rule = RuleKind::kLogisticRegression,
     .name = "logistic-regression",
     .summary = "logistic regression: predicts probabilities, learns from every example",
     .make = &MakeLogistic,
     .wrappers = kAllowsAveraged,
     .takes_weights = true,
     .no_class_dual = "an update moves every class, by probabilities that are not kept"},
    {.rule = RuleKind::kBatchPerceptron,
     .name = "batch-perceptron",
     .summary = "gradient descent on the perceptron risk: a step for a whole pass or mini-batch",
     .make = &Make<BatchPerceptronLearner>,
     .counts_examples = true,
     .takes_weights = true},
    {.rule = RuleKind::kKernelPerceptron,
     .name = "kernel-perceptron",
     .summary = "the Forgetron: a perceptron in a kernel's space, on a budget of examples",
     .make = &Make<KernelPerceptron>,
     .two_labels_only = "the Forgetron is analysed for two labels alone",
     .form = Form::kKernel},
    {.rule = RuleKind::kSoftConfidenceWeighted,
     .name = "soft-confidence-weighted",
     .summary = "SCW-I: makes each example right with a wanted probability, as far as C allows",
     .make = &Make<RuleLearner<SoftConfidenceWeighted>>,
     .wrappers = kAllowsPocket,
     .takes_weights = true,
     .no_dual = "an update moves each feature by a confidence of its own, which is not kept"},
    {.rule = RuleKind::kAuto,
     .name = "auto",
     .summary = "no setting to choose: eight learners at once predict by weighted majority",
     .make = &Make<WeightedMajority>,
     .form = Form::kVotes,
     .no_dual = "its score is a share of votes"},
};

struct Wrapper {
  WrapperKind wrapper;
  AllowedWrapper allowed;
  absl::string_view name;
  absl::string_view summary;
  Form form = Form::kLinear;
  absl::string_view no_dual = "";
};

constexpr Wrapper kWrappers[] = {
    {.wrapper = WrapperKind::kAveraged,
     .allowed = kAllowsAveraged,
     .name = "averaged",
     .summary = "predicts with the average of all its weights"},
    {.wrapper = WrapperKind::kPocket,
     .allowed = kAllowsPocket,
     .name = "pocket",
     .summary = "predicts with the weights that had the longest run"},
    {.wrapper = WrapperKind::kVoted,
     .allowed = kAllowsVoted,
     .name = "voted",
     .summary = "predicts with the votes of its latest weights",
     .form = Form::kVotes,
     .no_dual = "its score is a share of votes"},
};

const Rule& FindRule(RuleKind rule) { return kRules[static_cast<size_t>(rule)]; }

CatalogueEntry MakeEntry(const Rule& rule) {
  CatalogueEntry entry;
  entry.rule = rule.rule;
  entry.name = std::string(rule.name);
  entry.summary = std::string(rule.summary);
  entry.convergence_theorem = rule.convergence_theorem;
  entry.counts_examples = rule.counts_examples;
  entry.takes_weights = rule.takes_weights;
  entry.two_labels_only = rule.two_labels_only;
  entry.form = rule.form;
  entry.no_dual = rule.no_dual;
  entry.no_class_dual = rule.no_class_dual;
  return entry;
}

// Whatever the wrapper, the rule learns the same: the theorem stays.
CatalogueEntry MakeEntry(const Rule& rule, const Wrapper& wrapper) {
  CatalogueEntry entry = MakeEntry(rule);
  entry.wrapper = wrapper.wrapper;
  entry.name = absl::StrCat(wrapper.name, "-", rule.name);
  entry.summary = absl::StrCat("learns as the ", rule.name, ", ", wrapper.summary);
  entry.counts_examples = true;
  entry.form = wrapper.form;
  if (!wrapper.no_dual.empty()) entry.no_dual = wrapper.no_dual;
  entry.separate_prediction_weights = true;
  return entry;
}

std::vector<CatalogueEntry> MakeAll() {
  std::vector<CatalogueEntry> all;
  for (const Rule& rule : kRules) {
    all.push_back(MakeEntry(rule));
    for (const Wrapper& wrapper : kWrappers) {
      if ((rule.wrappers & wrapper.allowed) != 0) all.push_back(MakeEntry(rule, wrapper));
    }
  }
  return all;
}

}  // namespace

std::span<const CatalogueEntry> Catalogue() {
  static const std::vector<CatalogueEntry>& all = *new std::vector<CatalogueEntry>(MakeAll());
  return all;
}

const CatalogueEntry* FindLearner(absl::string_view name) {
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

const CatalogueEntry& FindLearner(const LearnerSettings& settings) {
  const std::span<const CatalogueEntry> all = Catalogue();
  return *std::find_if(all.begin(), all.end(), [&](const CatalogueEntry& entry) {
    return entry.rule == settings.rule && entry.wrapper == settings.wrapper;
  });
}

uint64_t EstimateWeightBytes(const LearnerSettings& settings, uint64_t size) {
  constexpr uint64_t kSmall = 64;
  LearnerSettings without_start = settings;
  without_start.start = {};
  const auto bytes = [&](uint64_t features) {
    const std::unique_ptr<Learner> learner = MakeLearner(without_start, features);
    uint64_t sum = 0;
    for (const std::span<const float> array : learner->State().arrays) sum += array.size_bytes();
    return sum;
  };
  if (size <= kSmall) return bytes(size);
  const uint64_t small = bytes(kSmall);
  return small + (bytes(2 * kSmall) - small) / kSmall * (size - kSmall);
}

std::unique_ptr<Learner> MakeLearner(const LearnerSettings& settings, size_t size) {
  return FindRule(settings.rule).make(settings, size);
}

}  // namespace perceptrond
