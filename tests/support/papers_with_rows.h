// More rules as their papers print them (tests/support/papers.h): those that keep examples, or
// learn by batches. Float64, whole vectors, every hypothesis kept as it was. Uses nothing of core/.
#pragma once

#include <deque>
#include <span>

#include "tests/support/papers.h"

namespace perceptrond::testing {

// Duda, Hart, Stork 2001, section 5.5, with step size 1: w += sum of y x over the batch's mistakes,
// at the end of a pass and, with mini_batch > 0, after every mini_batch examples.
class PaperBatch final : public Paper {
 public:
  PaperBatch(size_t dimension, uint64_t mini_batch) : Paper(dimension), mini_batch_(mini_batch) {}
  void EndPass() override {
    if (mistakes_.empty()) return;
    for (const auto& [x, y] : mistakes_) Add(y, x);
    mistakes_.clear();
    ++updates_;
  }

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) return false;
    mistakes_.emplace_back(x, y);
    return true;
  }
  void AddEvaluation() override {
    if (mini_batch_ > 0 && ++examples_ % mini_batch_ == 0) EndPass();
  }
  const uint64_t mini_batch_;
  uint64_t examples_ = 0;
  std::vector<std::pair<Vector, int>> mistakes_;
};

// Freund, Schapire 1999, figure 1; only the latest budget + 1 hypotheses vote.
class PaperVoted final : public Paper {
 public:
  PaperVoted(size_t dimension, size_t budget)
      : Paper(dimension), budget_(budget), voters_({{w_, 0}}) {}
  std::function<double(const Vector&)> Answers() const override {
    return [voters = voters_](const Vector& x) {
      double sum = 0;
      double all = 0;
      for (const Voter& voter : voters) {
        sum += voter.votes * (Product(voter.v, x) > 0 ? 1 : -1);
        all += voter.votes;
      }
      return all > 0 ? sum / all : 0;
    };
  }

 private:
  struct Voter {
    Vector v;
    double votes;
  };
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) {
      voters_.back().votes += 1;
      return false;
    }
    Add(y, x);
    voters_.push_back({w_, 1});
    if (voters_.size() > budget_ + 1) voters_.pop_front();
    return true;
  }
  const size_t budget_;
  std::deque<Voter> voters_;
};

// Gallant 1990, the pocket algorithm with ratchet; the examples that the ratchet counts are the
// latest `kept` that caused updates, so that as many errors on them say nothing against a longer
// run.
class PaperRatchet final : public Paper {
 public:
  PaperRatchet(size_t dimension, size_t kept) : Paper(dimension), kept_(kept), pocket_(dimension) {}
  Vector Answer() const override { return pocket_; }

 private:
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) {
      // A run whose weights are in the pocket only gets longer there.
      if (++run_ > best_ && (in_pocket_ || Errors(w_) <= Errors(pocket_))) {
        best_ = run_;
        pocket_ = w_;
        in_pocket_ = true;
      }
      return false;
    }
    Add(y, x);
    run_ = 0;
    in_pocket_ = false;
    examples_.emplace_back(x, y);
    if (examples_.size() > kept_) examples_.pop_front();
    return true;
  }
  size_t Errors(const Vector& w) const {
    size_t errors = 0;
    for (const auto& [x, y] : examples_) errors += y * Product(w, x) <= 0 ? 1 : 0;
    return errors;
  }
  const size_t kept_;
  Vector pocket_;
  std::deque<std::pair<Vector, int>> examples_;
  uint64_t run_ = 0;
  uint64_t best_ = 0;
  bool in_pocket_ = false;
};

// What a kernel makes of two vectors without the offset's coordinate; it is not told of coordinates
// where both are 0.
using PaperKernel = double (*)(std::span<const double> x, std::span<const double> z);

// Dekel, Shalev-Shwartz, Singer 2008, the self-tuned Forgetron, for the kernel plus the offsets'
// product. Its damage is in units of the largest K(x, x), since the paper's are at most 1.
class PaperForgetron final : public Paper {
 public:
  PaperForgetron(size_t dimension, bool offset, PaperKernel kernel, size_t budget)
      : Paper(dimension), offset_(offset), kernel_(kernel), budget_(budget) {}
  double Score(const Vector& x) const override { return Score(NonZero(x, 0, 1)); }
  std::function<double(const Vector&)> Answers() const override {
    return [copy = *this](const Vector& x) { return copy.Score(x); };
  }
  // ||f||^2, by its definition.
  double SquaredNorm() const {
    double sum = 0;
    for (const Kept& one : kept_) sum += one.share * one.y * Score(one);
    return sum;
  }

 private:
  // An example, by the indices where it is not 0 but for the offset's; that is apart.
  struct Kept {
    std::vector<std::pair<size_t, double>> x;
    double offset;
    int y;
    double share;
  };
  Kept NonZero(const Vector& x, int y, double share) const {
    Kept kept{{}, offset_ ? x.back() : 0, y, share};
    for (size_t i = 0; i < x.size() - (offset_ ? 1 : 0); ++i) {
      if (x[i] != 0) kept.x.emplace_back(i, x[i]);
    }
    return kept;
  }
  double K(const Kept& x, const Kept& z) const {
    Vector& a = aligned_[0];
    Vector& b = aligned_[1];
    a.clear();
    b.clear();
    auto i = x.x.begin();
    for (const auto& [index, value] : z.x) {
      for (; i != x.x.end() && i->first < index; ++i) {
        a.push_back(i->second);
        b.push_back(0);
      }
      const bool both = i != x.x.end() && i->first == index;
      a.push_back(both ? (i++)->second : 0);
      b.push_back(value);
    }
    for (; i != x.x.end(); ++i) {
      a.push_back(i->second);
      b.push_back(0);
    }
    return kernel_(a, b) + x.offset * z.offset;
  }
  double Score(const Kept& x) const {
    double score = 0;
    for (const Kept& one : kept_) score += one.share * one.y * K(one, x);
    return score;
  }
  bool Move(const Vector& x, int y, double signed_score) override {
    if (signed_score > 0) return false;
    ++mistakes_;
    kept_.push_back(NonZero(x, y, 1));
    largest_ = std::max(largest_, K(kept_.back(), kept_.back()));
    if (kept_.size() <= budget_) return true;
    const Kept& oldest = kept_.front();
    const double mu = oldest.y * Score(oldest) / largest_;
    const double sigma = oldest.share;
    const auto damage = [&](double phi) {
      return sigma * sigma * phi * phi + 2 * sigma * phi - 2 * sigma * phi * phi * mu;
    };
    const double phi = Largest(damage);
    damage_ += damage(phi);
    kept_.pop_front();
    for (Kept& one : kept_) one.share *= phi;
    return true;
  }
  // The largest phi in (0, 1] whose damage is within 15/32 of the mistakes, by bisection: the
  // damage crosses the line once, from below.
  template <typename Damage>
  double Largest(const Damage& damage) const {
    const double most = 15.0 / 32 * static_cast<double>(mistakes_);
    if (damage_ + damage(1) <= most) return 1;
    double low = 0;
    double high = 1;
    for (int i = 0; i < 200; ++i) {
      const double middle = (low + high) / 2;
      (damage_ + damage(middle) <= most ? low : high) = middle;
    }
    return low;
  }
  const bool offset_;
  const PaperKernel kernel_;
  const size_t budget_;
  std::deque<Kept> kept_;
  uint64_t mistakes_ = 0;
  double damage_ = 0;
  double largest_ = 0;
  // Where K lays two examples side by side.
  mutable Vector aligned_[2];
};

}  // namespace perceptrond::testing
