// What a kernel of two rows costs the kernel perceptron: processor time of an evaluation with 1000
// stored rows, the least of several, for each of them. In a checkout of an older revision the same
// program has its figures.
//
//   kernel_cost [ROUNDS]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "core/learner/catalogue.h"

namespace perceptrond::bench {
namespace {

constexpr uint32_t kBudget = 1000;
constexpr size_t kEvaluated = 50;

// Rows with this many of a number of features; all of them: dense.
struct Shape {
  uint32_t features;
  uint32_t dimension;
};

struct Example {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  Row row(const Shape& shape) const {
    const bool dense = shape.features == shape.dimension;
    return {dense ? nullptr : indices.data(), values.data(), values.size()};
  }
};

Example Draw(const Shape& shape, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<uint32_t> all(shape.dimension);
  std::iota(all.begin(), all.end(), 0U);
  Example example;
  std::sample(all.begin(), all.end(), std::back_inserter(example.indices), shape.features, random);
  for (uint32_t i = 0; i < shape.features; ++i) example.values.push_back(normal(random));
  return example;
}

double ProcessorNanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

double Cost(KernelSettings::Kind kind, const Shape& shape, int rounds) {
  LearnerSettings settings;
  settings.rule = RuleKind::kKernelPerceptron;
  settings.budget = kBudget;
  settings.kernel = {kind, 2, 1, 1.0 / shape.features};
  const std::unique_ptr<Learner> learner = MakeLearner(settings, shape.dimension);
  std::mt19937 random(1);
  for (uint32_t i = 0; i < kBudget; ++i) {
    const Example example = Draw(shape, random);
    const Target target{random() % 2 == 0 ? 1 : -1, 1, i};
    const Row row = example.row(shape);
    learner->Update(row, target, learner->Evaluate(row, target.label));
  }
  std::vector<Example> examples;
  for (size_t i = 0; i < kEvaluated; ++i) examples.push_back(Draw(shape, random));
  double least = 1e18;
  for (int round = 0; round < rounds; ++round) {
    double sum = 0;
    const double start = ProcessorNanoseconds();
    for (const Example& example : examples) sum += learner->Evaluate(example.row(shape), 1).score;
    const double taken = ProcessorNanoseconds() - start;
    // Keeps the compiler from leaving out what computes it.
    asm volatile("" : : "x"(sum) : "memory");
    least = std::min(least, taken / (kEvaluated * kBudget));
  }
  return least;
}

void PrintAll(int rounds) {
  std::puts("features      Gaussian ns   polynomial ns");
  for (const Shape& shape :
       {Shape{2, 2}, {8, 8}, {16, 16}, {30, 30}, {64, 64}, {5, 100}, {22, 127}}) {
    std::printf("%2u of %-7u %11.1f %15.1f\n", shape.features, shape.dimension,
                Cost(KernelSettings::Kind::kRbf, shape, rounds),
                Cost(KernelSettings::Kind::kPolynomial, shape, rounds));
  }
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::PrintAll(argc > 1 ? std::max(1, std::atoi(argv[1])) : 25);
}
