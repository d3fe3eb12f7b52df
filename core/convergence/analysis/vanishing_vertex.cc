#include "core/convergence/analysis/vanishing_vertex.h"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <cmath>
#include <map>

namespace perceptrond {
namespace {

// A multiplier below this is a rounded 0; they add up to 1.
constexpr double kLeastMultiplier = 1e-10;

// Clp copies its handlers; the copies share the token.
class Interrupter final : public ClpEventHandler {
 public:
  Interrupter(CancellationToken& cancellation, size_t work)
      : cancellation_(&cancellation), work_(work) {}

  int event(Event which) override {
    constexpr int kGoOn = -1;
    constexpr int kStop = 5;
    if (which != endOfIteration) return kGoOn;
    return cancellation_->Spend(work_) ? kGoOn : kStop;
  }
  ClpEventHandler* clone() const override { return new Interrupter(*this); }

 private:
  CancellationToken* cancellation_;
  // Of one pivot, about.
  size_t work_;
};

// The program's matrix by columns: each chosen row divided by R, then a 1 for the sum.
struct Program {
  Program(const SignedRows& rows, std::span<const size_t> chosen) {
    const double radius = std::sqrt(rows.squared_radius());
    std::map<size_t, int> numbers;
    for (const size_t i : chosen)
      rows.ForEach(i, [&](size_t column, double) { numbers.emplace(column, 0); });
    for (auto& [column, number] : numbers) number = height++;
    for (const size_t i : chosen) {
      rows.ForEach(i, [&](size_t column, double value) {
        indices.push_back(numbers.at(column));
        values.push_back(value / radius);
      });
      indices.push_back(height);
      values.push_back(1);
      starts.push_back(static_cast<int>(indices.size()));
    }
    right_side.assign(height, 0);
    right_side.push_back(1);
  }

  int height = 0;
  std::vector<int> starts = {0};
  std::vector<int> indices;
  std::vector<double> values;
  std::vector<double> right_side;
};

}  // namespace

std::vector<size_t> FindVanishingVertex(const SignedRows& rows, std::span<const size_t> chosen,
                                        CancellationToken& cancellation) {
  const Program program(rows, chosen);
  const auto height = static_cast<size_t>(program.height);
  const Interrupter interrupter(cancellation, program.indices.size() + 10 * height * height);
  ClpSimplex clp;
  clp.setLogLevel(0);
  clp.passInEventHandler(&interrupter);
  // No bounds given: at least 0. No objective given: 0.
  clp.loadProblem(static_cast<int>(chosen.size()), static_cast<int>(program.right_side.size()),
                  program.starts.data(), program.indices.data(), program.values.data(), nullptr,
                  nullptr, nullptr, program.right_side.data(), program.right_side.data());
  clp.setPrimalTolerance(1e-9);
  clp.dual();
  std::vector<size_t> vertex;
  if (cancellation.cancelled() || !clp.isProvenOptimal()) return vertex;
  for (size_t k = 0; k < chosen.size(); ++k)
    if (clp.primalColumnSolution()[k] > kLeastMultiplier) vertex.push_back(chosen[k]);
  return vertex;
}

}  // namespace perceptrond
