// The largest weights, found without delaying updates: the lock is released again and again.
#include <algorithm>
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/model/views.h"

namespace perceptrond {
namespace {

// Weights read under one lock, in some 0.2 ms.
constexpr size_t kWeightsAtOnce = size_t{1} << 15;

// The weights of largest magnitude of those offered. Most offers cost one comparison.
class Heap {
 public:
  struct Weight {
    uint32_t index;
    double value;
  };

  explicit Heap(size_t limit) : limit_(limit) {}

  void Offer(uint32_t index, double value) {
    if (value == 0 || limit_ == 0) return;
    const Weight weight{index, value};
    if (held_.size() == limit_) {
      if (!IsLarger(weight, held_.front())) return;
      std::pop_heap(held_.begin(), held_.end(), IsLarger);
      held_.pop_back();
    }
    held_.push_back(weight);
    std::push_heap(held_.begin(), held_.end(), IsLarger);
  }

  // Largest first.
  std::vector<Weight> Take() {
    std::sort(held_.begin(), held_.end(), IsLarger);
    return std::move(held_);
  }

 private:
  // The order of the heap, whose front is the smallest.
  static bool IsLarger(const Weight& a, const Weight& b) {
    const double x = std::abs(a.value);
    const double y = std::abs(b.value);
    return x > y || (x == y && a.index < b.index);
  }

  const size_t limit_;
  std::vector<Weight> held_;
};

// The score of no features.
double ConstantOf(const Learner& learner, size_t k, uint64_t age) {
  const Predictor& predictor = learner.predictor();
  std::vector<double> scores(predictor.scores());
  predictor.Score(Row{kNoIndices, nullptr, 0}, age, scores);
  return std::isfinite(scores[k]) ? scores[k] : 0;
}

WeightList FindLargest(const ModelCore& core, size_t k, size_t limit, uint64_t& last_revision) {
  Heap heap(limit);
  WeightList list;
  for (size_t begin = 0;; begin += kWeightsAtOnce) {
    const Guarded<ModelState>::Reader state(core.state);
    const Learner& learner = *state->learner;
    if (begin == 0) list.revision = state->revision;
    last_revision = state->revision;
    const uint64_t age = core.Age();
    const size_t end = std::min(begin + kWeightsAtOnce, learner.size());
    for (size_t i = begin; i < end; ++i) {
      const auto index = static_cast<uint32_t>(i);
      heap.Offer(index, learner.explainable()->FeatureWeight(k, index, age).value_or(0));
    }
    if (end < learner.size()) continue;
    for (const Heap::Weight& weight : heap.Take()) {
      list.values.push_back(static_cast<float>(weight.value));
      if (core.has_names()) {
        list.names.push_back(state->names.Name(weight.index));
      } else {
        list.indices.push_back(weight.index);
      }
    }
    list.bias = ConstantOf(learner, k, age);
    return list;
  }
}

}  // namespace

TopWeights FindTopWeights(const Model& model, size_t limit) {
  TopWeights top;
  if (FindLearner(model.settings().learner).form != Form::kLinear) return top;
  size_t lists = 1;
  if (model.settings().is_multiclass()) {
    const Guarded<ModelState>::Reader state(model.core().state);
    lists = state->learner->predictor().scores();
    top.last_revision = state->revision;
  }
  for (size_t k = 0; k < lists; ++k)
    top.lists.push_back(FindLargest(model.core(), k, limit, top.last_revision));
  return top;
}

}  // namespace perceptrond
