#include "core/learner/catalogue.h"

#include "core/learner/arow.h"
#include "core/learner/averaged_perceptron.h"
#include "core/learner/batch_perceptron.h"
#include "core/learner/kernel_perceptron.h"
#include "core/learner/logistic_regression.h"
#include "core/learner/margin_perceptron.h"
#include "core/learner/multiclass_arow.h"
#include "core/learner/multiclass_averaged_perceptron.h"
#include "core/learner/multiclass_passive_aggressive.h"
#include "core/learner/multiclass_perceptron.h"
#include "core/learner/multiclass_pocket.h"
#include "core/learner/passive_aggressive.h"
#include "core/learner/perceptron.h"
#include "core/learner/pocket.h"
#include "core/learner/softmax_regression.h"
#include "core/learner/voted_perceptron.h"

namespace perceptrond {
namespace {

template <typename L>
std::unique_ptr<Learner> Make(const LearnerSettings& settings, size_t size) {
  return std::make_unique<L>(settings, size);
}

constexpr CatalogueEntry kCatalogue[] = {
    {.kind = LearnerKind::kPerceptron,
     .name = "perceptron",
     .summary = "Rosenblatt's perceptron: updates on mistakes, certified when separable",
     .options = kTakesStepSize,
     .convergence_theorem = true,
     .counts_examples = false,
     .takes_weights = true,
     .make = &Make<Perceptron>,
     .make_multiclass = &Make<MulticlassPerceptron>},
    {.kind = LearnerKind::kAveragedPerceptron,
     .name = "averaged-perceptron",
     .summary = "learns as the perceptron, answers with the average of all its weights",
     .options = kTakesStepSize,
     .convergence_theorem = true,
     .counts_examples = true,
     .takes_weights = true,
     .make = &Make<AveragedPerceptron>,
     .make_multiclass = &Make<MulticlassAveragedPerceptron>,
     .separate_prediction_weights = true},
    {.kind = LearnerKind::kPocket,
     .name = "pocket",
     .summary = "learns as the perceptron, answers with the weights that had the longest run",
     .options = kTakesStepSize | kTakesRatchet,
     .convergence_theorem = true,
     .counts_examples = true,
     .takes_weights = true,
     .make = &Make<Pocket>,
     .make_multiclass = &Make<MulticlassPocket>,
     .separate_prediction_weights = true},
    {.kind = LearnerKind::kMarginPerceptron,
     .name = "margin-perceptron",
     .summary = "ALMA: learns until every example is right by nearly the best margin",
     .options = kTakesMarginSlack,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = false,
     .make = &Make<MarginPerceptron>,
     .no_past = "each update scales all earlier ones, by norms that are not kept"},
    {.kind = LearnerKind::kPassiveAggressive,
     .name = "passive-aggressive",
     .summary = "passive-aggressive: the least change that makes an example right with margin 1",
     .options = 0,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = false,
     .make = &Make<PassiveAggressive>,
     .make_multiclass = &Make<MulticlassPassiveAggressive>},
    {.kind = LearnerKind::kPassiveAggressiveI,
     .name = "passive-aggressive-i",
     .summary = "passive-aggressive with steps of at most C: for noisy labels",
     .options = kTakesAggressiveness,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = true,
     .make = &Make<PassiveAggressive>,
     .make_multiclass = &Make<MulticlassPassiveAggressive>},
    {.kind = LearnerKind::kPassiveAggressiveII,
     .name = "passive-aggressive-ii",
     .summary = "passive-aggressive with steps damped by C: for noisy labels",
     .options = kTakesAggressiveness,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = true,
     .make = &Make<PassiveAggressive>,
     .make_multiclass = &Make<MulticlassPassiveAggressive>},
    {.kind = LearnerKind::kArow,
     .name = "arow",
     .summary = "adaptive regularization: well-known features move less than new ones",
     .options = kTakesRegularization,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = false,
     .make = &Make<Arow>,
     .make_multiclass = &Make<MulticlassArow>,
     .no_past = "an update moves each feature by a confidence of its own, which is not kept"},
    {.kind = LearnerKind::kLogisticRegression,
     .name = "logistic-regression",
     .summary = "logistic regression: answers with probabilities, learns from every example",
     .options = kTakesStepSize | kTakesUpdateThreshold,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = true,
     .make = &Make<LogisticRegression>,
     .make_multiclass = &Make<SoftmaxRegression>},
    {.kind = LearnerKind::kBatchPerceptron,
     .name = "batch-perceptron",
     .summary = "gradient descent on the perceptron risk: a step for a whole pass or mini-batch",
     .options = kTakesStepSize | kTakesMiniBatch,
     .convergence_theorem = false,
     .counts_examples = true,
     .takes_weights = true,
     .make = &Make<BatchPerceptron>},
    {.kind = LearnerKind::kVotedPerceptron,
     .name = "voted-perceptron",
     .summary = "learns as the perceptron, answers with the votes of its latest weights",
     .options = kTakesStepSize | kTakesBudget,
     .convergence_theorem = true,
     .counts_examples = true,
     .takes_weights = true,
     .make = &Make<VotedPerceptron>,
     .form = Form::kVotes,
     .no_past = "its score is a share of votes",
     .separate_prediction_weights = true},
    {.kind = LearnerKind::kKernelPerceptron,
     .name = "kernel-perceptron",
     .summary = "the Forgetron: a perceptron in a kernel's space, on a budget of examples",
     .options = kTakesBudget | kTakesKernel,
     .convergence_theorem = false,
     .counts_examples = false,
     .takes_weights = false,
     .make = &Make<KernelPerceptron>,
     .form = Form::kKernel},
};

}  // namespace

std::span<const CatalogueEntry> Catalogue() { return kCatalogue; }

const CatalogueEntry& FindLearner(LearnerKind kind) {
  return kCatalogue[static_cast<size_t>(kind)];
}

std::unique_ptr<Learner> MakeLearner(const LearnerSettings& settings, size_t size) {
  const CatalogueEntry& entry = FindLearner(settings.kind);
  return settings.classes.max > 0 ? entry.make_multiclass(settings, size)
                                  : entry.make(settings, size);
}

}  // namespace perceptrond
