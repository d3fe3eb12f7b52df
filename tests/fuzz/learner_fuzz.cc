// Every learner of the catalogue, under settings that the input chooses, beside the reference in
// float64 (tests/support/reference_learner.h): the same scores, predictions, mistakes and updates,
// example by example.
//
// Rows are small whole numbers. Where arithmetic is exact, as of the perceptron's rules, scores are
// equal; elsewhere they are so within kTolerance of the sum of their terms' sizes. A row whose score
// or margin is within kBand of a value at which the learner does something else is not learned, by
// neither, since float32 and float64 may decide otherwise (kKernelBand of kernels); after kMostSkipped such rows the rest of
// the input is left.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/model.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/learners.h"
#include "tests/support/reference_learner.h"

namespace {

using perceptrond::CatalogueEntry;
using perceptrond::testing::FuzzInput;
using perceptrond::testing::ReferenceLearner;
using perceptrond::testing::ReferenceView;
using perceptrond::testing::Vector;
namespace testing = perceptrond::testing;
namespace v1 = ::perceptron::v1;

constexpr uint32_t kDimension = 4;
constexpr size_t kMostRows = 64;
constexpr double kTolerance = 1e-5;
constexpr double kBand = 1e-4;
// For kernels, whose arithmetic is in float64 on both sides.
constexpr double kKernelBand = 1e-6;
constexpr int kMostSkipped = 16;

void SetKernel(FuzzInput& input, v1::KernelPerceptron& settings) {
  constexpr uint32_t kBudgets[] = {1000, 1, 4, 9};
  settings.set_budget(input.OneOf(kBudgets));
  v1::Kernel& kernel = *settings.mutable_kernel();
  const size_t kind = input.Below(3);
  if (kind == 0) kernel.mutable_linear();
  if (kind == 1) kernel.mutable_polynomial()->set_degree(2);
  if (kind == 2) kernel.mutable_rbf();
}

// Numbers whose products with small whole numbers are exact in float32, and steps so small that no
// rule magnifies a rounding error from row to row.
void SetNumbers(FuzzInput& input, v1::Learner& learner) {
  constexpr double kSteps[] = {1, 0.5, 2};
  constexpr double kBiases[] = {1, 0, 0.5};
  constexpr uint32_t kFew[] = {1000, 1, 3, 6};
  learner.set_bias_input(input.OneOf(kBiases));
  learner.set_tie_rule(input.Flag() ? v1::TIE_RULE_POSITIVE : v1::TIE_RULE_MISTAKE);
  const bool logistic = learner.has_logistic_regression();
  testing::SetNumber(learner, "step_size", input.OneOf(kSteps) / (logistic ? 64 : 1));
  if (input.Flag()) testing::SetNumber(learner, "update_threshold", 0.25);
  if (input.Flag()) testing::SetNumber(learner, "margin_slack", 0.5);
  if (input.Flag()) testing::SetNumber(learner, "aggressiveness", 0.125);
  if (input.Flag()) testing::SetNumber(learner, "regularization", 8);
  if (input.Flag()) testing::SetNumber(learner, "confidence", 0.9);
  if (input.Flag()) testing::SetCount(learner, "mini_batch", 1 + input.Below(7));
  testing::SetCount(learner, "budget", input.OneOf(kFew));
  if (input.Flag()) testing::SetCount(learner, "ratchet_examples", input.OneOf(kFew));
  if (!logistic) return;
  constexpr v1::LogisticRegression::Steps kSchedules[] = {v1::LogisticRegression::STEPS_CONSTANT,
                                                          v1::LogisticRegression::STEPS_DECREASING,
                                                          v1::LogisticRegression::STEPS_ADAPTIVE};
  learner.mutable_logistic_regression()->set_steps(
      kSchedules[input.Below(learner.has_averaged() ? 2 : 3)]);
}

// The learners with a reference: the vote of the learner auto has its own test
// (tests/core/learner/weighted_majority_test.cc).
std::vector<const perceptrond::CatalogueEntry*> Entries() {
  std::vector<const perceptrond::CatalogueEntry*> entries;
  for (const perceptrond::CatalogueEntry& entry : perceptrond::Catalogue()) {
    if (entry.rule != perceptrond::RuleKind::kAuto) entries.push_back(&entry);
  }
  return entries;
}

// A learner and its reference, side by side.
class Pair {
 public:
  explicit Pair(FuzzInput& input)
      : entry_(*Entries()[input.Below(Entries().size())]),
        settings_(Settings(input)),
        model_(Load()),
        classes_(static_cast<int>(settings_.learner().classes().max_classes())),
        has_kernel_(entry_.rule == perceptrond::RuleKind::kKernelPerceptron),
        exact_(entry_.rule == perceptrond::RuleKind::kPerceptron ||
               entry_.rule == perceptrond::RuleKind::kBatchPerceptron),
        sums_exactly_(exact_ && !settings_.learner().has_averaged()),
        bias_(settings_.learner().bias_input()),
        reference_(settings_.learner(), kDimension) {}

  void Run(FuzzInput& input) {
    for (size_t rows = 0; rows < kMostRows && !input.empty() && skipped_ < kMostSkipped; ++rows) {
      Vector features(kDimension);
      constexpr double kValues[] = {0, 1, -1, 2, -2, 3, -3, 0};
      for (double& value : features) value = input.OneOf(kValues);
      const uint8_t choice = input.Byte();
      constexpr double kWeights[] = {1, 2, 0.5, 1};
      const int label = classes_ > 0 ? choice % classes_ : (choice % 2 == 0 ? 1 : -1);
      Add(features, label, entry_.takes_weights ? kWeights[choice / 8 % 4] : 1);
      if ((choice & 0xc0) == 0x40) Send(0);
      if ((choice & 0xc0) == 0xc0) Send(++pass_);
    }
    Send(++pass_);
    const auto updates = static_cast<int64_t>(model_->revision());
    Check(std::abs(updates - static_cast<int64_t>(reference_.updates())) <= slack_,
          "the number of updates");
  }

 private:
  // A row with what it must come to.
  struct Expected {
    Vector features;
    ReferenceView view;
    // May be an update or none: it would be one of almost 0.
    bool open = false;
  };

  void Check(bool holds, const std::string& what) const {
    if (holds) return;
    std::fprintf(stderr, "%s, of settings\n%s\n", what.c_str(), settings_.DebugString().c_str());
    std::abort();
  }

  v1::Model Settings(FuzzInput& input) {
    v1::Model settings;
    settings.set_name("models/m");
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
    v1::Learner& learner = *settings.mutable_learner();
    testing::SetLearner(learner, entry_.name);
    SetNumbers(input, learner);
    if (learner.has_kernel_perceptron()) SetKernel(input, *learner.mutable_kernel_perceptron());
    const size_t kind = entry_.has_classes() ? input.Below(3) : 0;
    if (kind > 0) learner.mutable_classes()->set_max_classes(3);
    if (kind > 1) learner.mutable_classes()->set_new_classes(v1::Classes::NEW_CLASSES_NUMBERED);
    if (entry_.takes_weights && input.Flag()) {
      learner.add_class_weights(2);
      learner.add_class_weights(0.5);
      if (kind > 0) learner.add_class_weights(1);
    }
    return settings;
  }

  bool TooClose(double clearance, double scale) const {
    if (has_kernel_) return clearance < kKernelBand;
    return !exact_ && clearance < kBand * (1 + scale);
  }
  std::shared_ptr<perceptrond::Model> Load() {
    perceptrond::storage::ModelHeader header;
    *header.mutable_model() = settings_;
    perceptrond::FillDefaults(*header.mutable_model());
    Check(journal_.Create(header).ok(), "creating");
    auto model = perceptrond::Model::Load(header, journal_, {});
    Check(model.ok(), "loading");
    return *model;
  }
  // The state itself has come to depend on rounding.
  bool undecided() const { return TooClose(reference_.ratchet_clearance(), 0); }

  void Add(const Vector& features, int label, double weight) {
    Expected expected{features, {}};
    Vector x = features;
    x.push_back(bias_);
    const ReferenceView view = reference_.View(x, label);
    if (undecided() || TooClose(view.clearance, view.scale)) return Skip();
    expected.open = TooClose(view.update_clearance, view.scale);
    // It would end or prolong a run, or add a vote.
    if (expected.open && IsPocketOrVoted()) return Skip();
    slack_ += expected.open ? 1 : 0;
    expected.view = reference_.Learn(x, label, weight);
    for (const double value : features) values_.push_back(static_cast<float>(value));
    labels_.push_back(label);
    weights_.push_back(static_cast<float>(weight));
    expected_.push_back(std::move(expected));
  }
  bool IsPocketOrVoted() const {
    return settings_.learner().has_pocket() || settings_.learner().has_voted();
  }
  void Skip() { ++skipped_; }

  void CompareNumber(double expected, float found, double scale, bool exact,
                     const std::string& what) const {
    const double tolerance = exact ? 0 : kTolerance * (1 + scale);
    const bool same = std::isnan(expected) ? std::isnan(found)
                                           : static_cast<float>(expected) == found ||
                                                 std::abs(expected - found) <= tolerance;
    Check(same,
          what + ": expected " + std::to_string(expected) + ", found " + std::to_string(found));
  }

  // Learns what was added, and compares.
  void Send(int64_t completed_pass) {
    perceptrond::Batch batch;
    batch.dense_width = kDimension;
    batch.values = values_;
    batch.labels = labels_;
    if (entry_.takes_weights) batch.weights = weights_;
    perceptrond::LearnCall call;
    call.batch = batch;
    call.producer = &producer_;
    call.completed_pass = completed_pass;
    perceptrond::LearnOutcome outcome;
    Check(model_->Learn(call, outcome).ok(), "learning");
    if (completed_pass > 0) reference_.EndPass();
    Check(outcome.row_errors.empty() && outcome.scores.size() == expected_.size(), "row errors");
    size_t next = 0;
    uint64_t mistakes = 0;
    for (size_t i = 0; i < expected_.size(); ++i) {
      const ReferenceView& view = expected_[i].view;
      const bool updated = next < outcome.updated_rows.size() && outcome.updated_rows[next] == i;
      next += updated ? 1 : 0;
      mistakes += view.mistake ? 1 : 0;
      Check(updated == view.update || expected_[i].open, "updates");
      Check(outcome.predicted[i] == view.predicted, "predicted labels");
      if (std::isinf(view.score)) continue;
      CompareNumber(view.score, outcome.scores[i], view.scale, exact_, "score");
    }
    Check(outcome.mistakes == mistakes, "mistakes");
    Predict(batch);
    values_.clear();
    labels_.clear();
    weights_.clear();
    expected_.clear();
  }

  void Predict(perceptrond::Batch batch) const {
    batch.labels = {};
    batch.weights = {};
    if (undecided()) return;
    perceptrond::PredictOutcome outcome;
    Check(model_->Predict(batch, {}, 0, outcome, classes_ > 0).ok(), "predicting");
    const size_t classes = expected_.empty() ? 0 : outcome.class_scores.size() / expected_.size();
    for (size_t i = 0; i < expected_.size(); ++i) {
      Vector x = expected_[i].features;
      x.push_back(bias_);
      double clearance = 0;
      const std::vector<double> scores = reference_.PredictedScores(x, clearance);
      double scale = reference_.View(x, classes_ > 0 ? 0 : 1).scale;
      for (const double score : scores) scale += std::isnan(score) ? 0 : std::abs(score);
      if (TooClose(clearance, scale)) continue;
      CompareScores(scores, {outcome.class_scores.data() + i * classes, classes}, outcome.scores[i],
                    scale);
      CompareLabel(scores, outcome.labels[i], scale);
    }
  }
  void CompareScores(const std::vector<double>& expected, std::span<const float> by_class,
                     float score, double scale) const {
    if (classes_ == 0) {
      CompareNumber(expected[0], score, scale, sums_exactly_, "predicted score");
      return;
    }
    for (size_t k = 0; k < expected.size(); ++k) {
      const float found = k < by_class.size() ? by_class[k] : NAN;
      CompareNumber(expected[k], found, scale, sums_exactly_, "predicted class score");
    }
  }
  void CompareLabel(const std::vector<double>& scores, int32_t label, double scale) const {
    std::vector<double> sorted;
    for (const double score : scores) {
      if (!std::isnan(score)) sorted.push_back(score);
    }
    if (classes_ == 0) sorted.push_back(0);
    std::sort(sorted.begin(), sorted.end());
    for (size_t k = 1; k < sorted.size(); ++k) {
      const double gap = sorted[k] - sorted[k - 1];
      if (!sums_exactly_ && gap < kBand * (1 + scale)) return;
    }
    Check(label == reference_.Predict(scores), "predicted label");
  }

  const CatalogueEntry& entry_;
  const v1::Model settings_;
  perceptrond::MemoryJournal journal_;
  const std::shared_ptr<perceptrond::Model> model_;
  perceptrond::Producer producer_{""};
  const int classes_;
  const bool has_kernel_;
  // Scores are sums without rounding, and so are predicted ones.
  const bool exact_;
  const bool sums_exactly_;
  const double bias_;
  ReferenceLearner reference_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;
  std::vector<Expected> expected_;
  int64_t pass_ = 0;
  int skipped_ = 0;
  // Updates that the two may differ by.
  int64_t slack_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  Pair(input).Run(input);
  return 0;
}
