// The weights that matter most, without holding up updates: the lock is let go again and again.
#include <algorithm>
#include <cmath>

#include "core/learner/catalogue.h"
#include "core/model/model.h"

namespace perceptrond {
namespace {

// Weights looked at under the lock at once, some 0.2 ms.
constexpr size_t kStretch = size_t{1} << 15;

// The heaviest weights of those that were offered. Costs a comparison for most of them.
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
      if (!Heavier(weight, held_.front())) return;
      std::pop_heap(held_.begin(), held_.end(), Heavier);
      held_.pop_back();
    }
    held_.push_back(weight);
    std::push_heap(held_.begin(), held_.end(), Heavier);
  }

  // The heaviest first.
  std::vector<Weight> Take() {
    std::sort(held_.begin(), held_.end(), Heavier);
    return std::move(held_);
  }

 private:
  // So that the lightest is at the heap's front.
  static bool Heavier(const Weight& a, const Weight& b) {
    const double x = std::abs(a.value);
    const double y = std::abs(b.value);
    return x > y || (x == y && a.index < b.index);
  }

  const size_t limit_;
  std::vector<Weight> held_;
};

}  // namespace

size_t Model::weights() const {
  ReaderMutexLock lock(&mutex_);
  return learner_->size() * std::max<size_t>(classes(), 1);
}

Model::TopWeights Model::FindTopWeights(size_t limit) const {
  TopWeights heaviest;
  if (FindLearner(settings_.learner).form != Form::kLinear) return heaviest;
  size_t lists = 1;
  if (settings_.is_multiclass()) {
    ReaderMutexLock lock(&mutex_);
    lists = classes();
    heaviest.last_revision = revision_;
  }
  for (size_t number = 0; number < lists; ++number)
    heaviest.lists.push_back(TopWeightsOf(number, limit, heaviest.last_revision));
  return heaviest;
}

WeightList Model::TopWeightsOf(size_t number, size_t limit, uint64_t& last_revision) const {
  Heap heap(limit);
  WeightList list;
  for (size_t begin = 0;; begin += kStretch) {
    ReaderMutexLock lock(&mutex_);
    if (begin == 0) list.revision = revision_;
    last_revision = revision_;
    const uint64_t age = Age();
    const size_t end = std::min(begin + kStretch, learner_->size());
    for (size_t i = begin; i < end; ++i) {
      const auto index = static_cast<uint32_t>(i);
      heap.Offer(index, WeightOf(number, index, age));
    }
    if (end < learner_->size()) continue;
    for (const Heap::Weight& weight : heap.Take()) {
      list.values.push_back(static_cast<float>(weight.value));
      if (has_names()) {
        list.names.push_back(dictionary_.Name(weight.index));
      } else {
        list.indices.push_back(weight.index);
      }
    }
    list.offset = OffsetOf(number, age);
    return list;
  }
}

double Model::WeightOf(size_t number, uint32_t index, uint64_t age) const {
  return learner_->explainable()->FeatureWeight(number, index, age).value_or(0);
}

double Model::OffsetOf(size_t number, uint64_t age) const {
  const Row nothing{kNoIndices, nullptr, 0};
  const Predictor& predictor = learner_->predictor();
  std::vector<double> scores(predictor.scores());
  predictor.Score(nothing, age, scores);
  return std::isfinite(scores[number]) ? scores[number] : 0;
}

}  // namespace perceptrond
