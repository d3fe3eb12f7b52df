#include "core/learner/kernel_perceptron.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "core/learner/state.h"
#include "core/sync/cancellation.h"
#include "core/vector/kernels.h"
#include "core/vector/simd.h"

namespace perceptrond {
namespace {

constexpr double kMost = 1e150;

// A sum of products in eight lanes: term i, counted from 0, is in lane i % 8. The lanes are stored
// rotated, so that the terms of a whole block of rows are added vector by vector.
class LaneSum {
 public:
  // `first`: the position of term 0's row in its block.
  explicit LaneSum(size_t first) : first_(first), next_(first) {}

  void Add(const double* a, const double* b, size_t count) {
    size_t i = 0;
    for (; i < count && next_ % kLanes != 0; ++i) lanes_[next_++ % kLanes] += a[i] * b[i];
    simd::Best().add_products(a + i, b + i, count - i, lanes_.data());
    next_ += count - i;
  }
  double total() const {
    const auto lane = [this](size_t i) { return lanes_[(first_ + i) % kLanes]; };
    return ((lane(0) + lane(1)) + (lane(2) + lane(3))) +
           ((lane(4) + lane(5)) + (lane(6) + lane(7)));
  }

 private:
  static constexpr size_t kLanes = 8;
  const size_t first_;
  size_t next_;
  std::array<double, kLanes> lanes_{};
};

// A row with a value for each of `size` features, for as long as this lives. A thread has one at a
// time.
class WrittenOut {
 public:
  // The row must outlive this; its indices are below `size`.
  WrittenOut(size_t size, const Row& row) : row_(row) {
    if (Values().size() < size) Values().resize(size);
    for (size_t i = 0; i < row.size; ++i) Values()[row.index(i)] = row.value(i);
  }
  ~WrittenOut() {
    for (size_t i = 0; i < row_.size; ++i) Values()[row_.index(i)] = 0;
  }
  WrittenOut(const WrittenOut&) = delete;
  WrittenOut& operator=(const WrittenOut&) = delete;

  const float* values() const { return Values().data(); }

 private:
  // All 0 between two rows.
  static std::vector<float>& Values() {
    thread_local std::vector<float> values;
    return values;
  }

  const Row row_;
};

}  // namespace

Kernel::Example::Example(const Row& given)
    : row(given), squared_norm(perceptrond::SquaredNorm(given)) {}

Kernel::Kernel(const LearnerSettings& settings)
    : settings_(settings.kernel), bias_input_(settings.bias_input) {}

void Kernel::Apply(double squared_norm, std::span<const double> squared_norms,
                   std::span<double> values) const {
  const simd::Loops& loops = simd::Best();
  const double bias = bias_input_ * bias_input_;
  if (settings_.kind == KernelSettings::Kind::kRbf) {
    loops.gaussians(settings_.gamma, squared_norm, squared_norms.data(), bias, values.data(),
                    values.size());
  } else {
    const bool linear = settings_.kind == KernelSettings::Kind::kLinear;
    loops.powers(linear ? 0 : settings_.coef0, linear ? 1 : settings_.degree, bias, kMost,
                 values.data(), values.size());
  }
}

double Kernel::OfItself(double squared_norm) const {
  // Far from 0, so that the distance is 0.
  double value = squared_norm;
  Apply(squared_norm, {&squared_norm, 1}, {&value, 1});
  return value;
}

KernelExpansion::KernelExpansion(const LearnerSettings& settings, size_t size)
    : decision_{false, settings.tie_rule}, kernel_(settings), size_(size) {
  rows_.KeepBlocks();
}

size_t KernelExpansion::Multiply(const float* written_out, size_t first, double* products) const {
  // The most features of rows that are multiplied before the caller may stop.
  constexpr size_t kMostFeatures = size_t{1} << 16;
  const RowStore::Block block = rows_.block(first);
  if (block.columns != nullptr) {
    std::array<double, simd::kRowsInBlock> all;
    // Products with rows that are removed have no room.
    double* const dots = block.first == 0 ? products : all.data();
    simd::Best().block_dots(written_out, block.columns, block.width, dots);
    if (dots != products) std::copy_n(dots + block.first, block.rows, products);
    return block.rows;
  }
  // An empty row does not say where the next one begins.
  if (sizes_[first] == 0) {
    products[0] = 0;
    return 1;
  }
  size_t count = block.rows;
  while (count > 1 && rows_.features(first, count) > kMostFeatures) count /= 2;
  const Row begin = rows_.row(first);
  simd::Best().row_dots(written_out, begin.indices, begin.values,
                        std::span(sizes_).subspan(first, count), products);
  return count;
}

template <typename Take>
void KernelExpansion::ForEachKernel(const Kernel::Example& example, const Take& take) const {
  // Their kernels are computed together, but not for so long that cancellation waits.
  constexpr size_t kTogether = 256;
  constexpr uint64_t kMostWork = uint64_t{1} << 16;
  std::array<double, kTogether> values;
  const Row& x = example.row.row();
  const bool writes_out = size_ <= Kernel::kMostWrittenOut;
  const WrittenOut written(writes_out ? size_ : 0, writes_out ? x : Row{kNoIndices, nullptr, 0});
  size_t count = 0;
  for (size_t begin = 0; begin < rows_.size(); begin += count) {
    uint64_t work = 0;
    for (count = 0; begin + count < rows_.size() && count + simd::kRowsInBlock <= kTogether &&
                    work < kMostWork;) {
      const size_t first = begin + count;
      if (writes_out) {
        count += Multiply(written.values(), first, values.data() + count);
      } else {
        values[count++] = Dot(example.row, rows_.row(first));
      }
      const size_t rows = begin + count - first;
      work += rows * Kernel::Work(x.size, 0, size_) +
              Kernel::Work(0, rows_.features(first, rows), size_);
    }
    if (!KeepGoing(work)) return;
    kernel_.Apply(example.squared_norm, std::span(squared_norms_).subspan(begin, count),
                  std::span(values).first(count));
    take(begin, std::span<const double>(values).first(count));
  }
}

double KernelExpansion::Score(const Kernel::Example& example) const {
  LaneSum score(rows_.empty() ? 0 : rows_.block(0).first);
  ForEachKernel(example, [&](size_t begin, std::span<const double> kernels) {
    score.Add(rows_.coefficients() + begin, kernels.data(), kernels.size());
  });
  return score.total();
}

uint64_t KernelExpansion::ScoreCost(uint64_t features) const {
  return rows_.size() * Kernel::Work(std::min(features, kManyFeatures), 0, size_) +
         Kernel::Work(0, rows_.features(), size_);
}

void KernelExpansion::Score(const Row& row, uint64_t /*age*/, std::span<double> scores) const {
  scores[0] = Score(Kernel::Example(row));
}

double KernelExpansion::squared_norm(uint64_t /*age*/) const {
  double coefficients = 0;
  for (size_t i = 0; i < rows_.size(); ++i) coefficients += rows_.coefficient(i);
  const double bias_weight = kernel_.bias_input() * coefficients;
  return std::max(0.0, augmented_squared_norm() - bias_weight * bias_weight);
}

std::vector<ScoreTerm> KernelExpansion::Terms(uint64_t /*age*/) const {
  std::vector<ScoreTerm> terms(rows_.size());
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i].vector = rows_.row(i);
    terms[i].coefficient = rows_.coefficient(i);
  }
  return terms;
}

// Every update adds one row, and the oldest are removed first.
std::vector<SupportExample> KernelExpansion::SupportExamples(const Row& row) const {
  const Kernel::Example example(row);
  std::vector<SupportExample> support;
  support.reserve(rows_.size());
  ForEachKernel(example, [&](size_t begin, std::span<const double> kernels) {
    for (size_t i = begin; i < begin + kernels.size(); ++i) {
      const double coefficient = rows_.coefficient(i);
      // Coefficients that shrank to 0 keep their sign.
      support.push_back({rows_.size() - 1 - i, std::signbit(coefficient) ? -1 : 1,
                         kernels[i - begin], coefficient});
    }
  });
  return support;
}

void KernelExpansion::Add(const Row& row, const Kernel::Example& example, int32_t label,
                          double score) {
  squared_norm_ = augmented_squared_norm() + (2 * label * score + kernel_.OfItself(example));
  rows_.Push(row, label);
  AddFigures(rows_.row(rows_.size() - 1));
}

void KernelExpansion::AddFigures(const Row& row) {
  squared_norms_.push_back(SquaredNorm(row));
  sizes_.push_back(static_cast<uint32_t>(row.size));
}

void KernelExpansion::ShrinkAndRemoveOldest(double phi, double score) {
  const Kernel::Example oldest(rows_.row(0));
  const double coefficient = rows_.coefficient(0);
  squared_norm_ = phi * phi *
                  (squared_norm_ - 2 * coefficient * score +
                   coefficient * coefficient * kernel_.OfItself(oldest));
  rows_.Scale(phi);
  rows_.Pop();
  squared_norms_.erase(squared_norms_.begin());
  sizes_.erase(sizes_.begin());
}

void KernelExpansion::Grow(size_t size) { size_ = std::max(size_, size); }

void KernelExpansion::Restore(size_t size, double squared_norm, RowStore rows) {
  size_ = size;
  squared_norm_ = squared_norm;
  rows_ = std::move(rows);
  rows_.KeepBlocks();
  squared_norms_.clear();
  sizes_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) AddFigures(rows_.row(i));
}

namespace {

// The most damage per mistake.
constexpr double kMaxDamagePerMistake = 15.0 / 32;

// Psi.
double Damage(double coefficient, double margin) {
  return coefficient * coefficient + 2 * coefficient - 2 * coefficient * margin;
}

// The largest phi in (0, 1] with Damage(phi coefficient, phi margin) <= room: a parabola in phi,
// through 0 with slope 2 coefficient.
double LargestShrinkage(double coefficient, double margin, double room) {
  const double a = coefficient * coefficient - 2 * coefficient * margin;
  const double b = 2 * coefficient;
  if (a + b <= room) return 1;
  // Where it first reaches room, written so that no a is too small.
  return 2 * room / (b + std::sqrt(std::max(0.0, b * b + 4 * a * room)));
}

// Whether these can be support examples: coefficients begin at -1 or +1 and shrink, and images lie
// within the radius.
bool CanBeSupport(const RowStore& rows, const Kernel& kernel, double squared_radius) {
  for (size_t i = 0; i < rows.size(); ++i) {
    if (std::abs(rows.coefficient(i)) > 1) return false;
    // The sum was made in another order when the row was kept.
    const double squared_norm = kernel.OfItself(Kernel::Example(rows.row(i)));
    if (squared_norm > squared_radius * (1 + 1e-9)) return false;
  }
  return true;
}

}  // namespace

KernelPerceptron::KernelPerceptron(const LearnerSettings& settings, size_t size)
    : budget_(settings.budget), function_(settings, size) {}

Evaluation KernelPerceptron::Evaluate(const Row& row, int32_t label) const {
  const double score = function_.Score(Kernel::Example(row));
  Evaluation evaluation = function_.decision().Evaluate({&score, 1}, label);
  evaluation.update = evaluation.mistake;
  evaluation.loss = std::max(0.0, -label * score);
  return evaluation;
}

// An image beyond float32's range would leave no digit of any other.
bool KernelPerceptron::CanUpdate(const Row& row, const Target& /*target*/,
                                 const Evaluation& /*evaluation*/) const {
  return std::sqrt(function_.kernel().OfItself(Kernel::Example(row))) <=
         std::numeric_limits<float>::max();
}

void KernelPerceptron::Update(const Row& row, const Target& target, const Evaluation& evaluation) {
  const Kernel::Example example(row);
  ++mistakes_;
  squared_radius_ = std::max(squared_radius_, function_.kernel().OfItself(example));
  function_.Add(row, example, target.label, evaluation.score);
  if (function_.rows().size() > budget_) ShrinkAndRemove();
}

void KernelPerceptron::ShrinkAndRemove() {
  const double oldest = function_.rows().coefficient(0);
  const double score = function_.Score(Kernel::Example(function_.rows().row(0)));
  const double coefficient = std::abs(oldest);
  const double margin = (oldest < 0 ? -1 : 1) * score;
  // In units of R^2, which is 0 if every image is.
  const double scaled = squared_radius_ > 0 ? margin / squared_radius_ : 0;
  const double room =
      std::max(0.0, kMaxDamagePerMistake * static_cast<double>(mistakes_) - damage_);
  const double phi = LargestShrinkage(coefficient, scaled, room);
  damage_ += Damage(phi * coefficient, phi * scaled);
  function_.ShrinkAndRemoveOldest(phi, score);
}

LearnerStateView KernelPerceptron::State() const {
  LearnerStateView state;
  Append(static_cast<double>(size()), state);
  Append(static_cast<double>(mistakes_), state);
  Append(damage_, state);
  Append(squared_radius_, state);
  Append(function_.augmented_squared_norm(), state);
  Append(function_.rows(), state);
  return state;
}

bool KernelPerceptron::Restore(LearnerState state) {
  StateReader reader(std::move(state));
  const uint64_t size = reader.Count();
  const uint64_t mistakes = reader.Count();
  const double damage = reader.Scalar();
  const double squared_radius = reader.Scalar();
  const double squared_norm = reader.Scalar();
  RowStore rows = reader.Rows(budget_, size);
  if (!reader.Done() || squared_norm < 0 || !CanBeSupport(rows, function_.kernel(), squared_radius))
    return false;
  mistakes_ = mistakes;
  damage_ = damage;
  squared_radius_ = squared_radius;
  function_.Restore(size, squared_norm, std::move(rows));
  return true;
}

}  // namespace perceptrond
