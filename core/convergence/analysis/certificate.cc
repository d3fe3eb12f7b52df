#include "core/convergence/analysis/certificate.h"

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/convergence/analysis/integer_matrix.h"
#include "core/convergence/analysis/scaled_rows.h"

namespace perceptrond {
namespace {

// A multiplier below this is a rounded 0; they add up to 1.
constexpr double kLeastMultiplier = 1e-10;

// Clp copies its handlers; the copies share the token.
class Interrupter final : public ClpEventHandler {
 public:
  Interrupter(AnalysisMonitor& monitor, size_t work) : monitor_(&monitor), work_(work) {}

  int event(Event which) override {
    constexpr int kGoOn = -1;
    constexpr int kStop = 5;
    if (which != endOfIteration) return kGoOn;
    return monitor_->Spend(work_) ? kGoOn : kStop;
  }
  ClpEventHandler* clone() const override { return new Interrupter(*this); }

 private:
  AnalysisMonitor* monitor_;
  // Of one pivot, about.
  size_t work_;
};

// The program's matrix by columns: each chosen row as it is scaled, then a 1 for the sum.
struct Program {
  Program(const SignedRows& rows, std::span<const size_t> chosen) {
    const ScaledRows scaled(rows);
    std::map<size_t, int> numbers;
    for (const size_t i : chosen)
      rows.ForEach(i, [&](size_t column, double) { numbers.emplace(column, 0); });
    for (auto& [column, number] : numbers) number = height++;
    for (const size_t i : chosen) {
      scaled.ForEach(i, [&](size_t column, double value) {
        indices.push_back(numbers.at(column));
        values.push_back(value);
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
                                        AnalysisMonitor& monitor) {
  const Program program(rows, chosen);
  const auto height = static_cast<size_t>(program.height);
  const Interrupter interrupter(monitor, program.indices.size() + 10 * height * height);
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
  if (monitor.stopped() || !clp.isProvenOptimal()) return vertex;
  for (size_t k = 0; k < chosen.size(); ++k)
    if (clp.primalColumnSolution()[k] > kLeastMultiplier) vertex.push_back(chosen[k]);
  return vertex;
}

namespace {

struct Fraction {
  mpz_class numerator;
  mpz_class denominator;
};

// The fraction a = numerator / denominator modulo m with both at most `bound` in magnitude, if
// there is one: unique for 2 bound^2 < m. Euclid's algorithm, stopped half way (Wang 1981).
std::optional<Fraction> Reconstruct(const mpz_class& a, const mpz_class& m,
                                    const mpz_class& bound) {
  mpz_class r0 = m, r1 = a, t0 = 0, t1 = 1;
  while (r1 > bound) {
    const mpz_class quotient = r0 / r1;
    r0 -= quotient * r1;
    t0 -= quotient * t1;
    std::swap(r0, r1);
    std::swap(t0, t1);
  }
  if (t1 == 0 || abs(t1) > bound) return std::nullopt;
  if (t1 < 0) return Fraction{-r1, -t1};
  return Fraction{r1, t1};
}

// The solution x of the square system A x = -(free column), modulo a growing power of p.
class Lifting {
 public:
  Lifting(const IntegerMatrix& matrix, const SquarePart& part)
      : part_(part), size_(part.equations.size()), solution_(size_), residual_(size_) {
    for (size_t r = 0; r < size_; ++r) {
      rows_.emplace_back();
      for (const auto& [k, value] : matrix.equations()[part.equations[r]]) {
        if (k == part.free_column)
          residual_[r] = -value;
        else
          rows_[r].emplace_back(k < part.free_column ? k : k - 1, value);
      }
      work_ += 4 * rows_[r].size() + size_;
    }
  }

  // Multiplications of one digit, about.
  size_t work() const { return work_; }
  // Finds one more digit in base p of each unknown.
  void Step() {
    const std::vector<uint64_t> digits = Digits();
    for (size_t k = 0; k < size_; ++k)
      mpz_addmul_ui(solution_[k].get_mpz_t(), modulus_.get_mpz_t(), digits[k]);
    modulus_ *= kPrime;
    for (size_t r = 0; r < size_; ++r) {
      for (const auto& [k, value] : rows_[r])
        mpz_submul_ui(residual_[r].get_mpz_t(), value.get_mpz_t(), digits[k]);
      mpz_divexact_ui(residual_[r].get_mpz_t(), residual_[r].get_mpz_t(), kPrime);
    }
  }
  double bits() const { return static_cast<double>(mpz_sizeinbase(modulus_.get_mpz_t(), 2)); }
  // Integers proportional to (x, 1 at the free column), if the digits so far are enough to find
  // them. Empty if they are not, or if the analysis was stopped.
  std::vector<mpz_class> Read(AnalysisMonitor& monitor) const {
    const mpz_class bound = sqrt(mpz_class(modulus_ / 2));
    // Denominators divide one determinant: what was found serves the next unknowns too.
    mpz_class denominator = 1;
    std::vector<Fraction> fractions;
    for (const mpz_class& x : solution_) {
      const mpz_class scaled = x * denominator % modulus_;
      const auto fraction = Reconstruct(scaled, modulus_, bound);
      if (!fraction || !monitor.Spend(mpz_size(modulus_.get_mpz_t()) * 64)) return {};
      denominator *= fraction->denominator;
      if (denominator > bound) return {};
      fractions.push_back({fraction->numerator, denominator});
    }
    std::vector<mpz_class> result;
    for (const Fraction& one : fractions)
      result.push_back(one.numerator * (denominator / one.denominator));
    result.insert(result.begin() + static_cast<std::ptrdiff_t>(part_.free_column), denominator);
    return result;
  }

 private:
  // inverse * residual, modulo p.
  std::vector<uint64_t> Digits() const {
    std::vector<uint64_t> reduced;
    for (const mpz_class& one : residual_) reduced.push_back(mpz_fdiv_ui(one.get_mpz_t(), kPrime));
    std::vector<uint64_t> digits(size_);
    for (size_t r = 0; r < size_; ++r) digits[r] = SumOfProducts(part_.inverse[r], reduced);
    return digits;
  }

  const SquarePart& part_;
  const size_t size_;
  std::vector<IntegerMatrix::Equation> rows_;
  std::vector<mpz_class> solution_;
  std::vector<mpz_class> residual_;
  mpz_class modulus_ = 1;
  size_t work_ = 0;
};

// The one null vector; empty if there is none, or if the analysis was stopped.
std::vector<mpz_class> FindNullVector(const IntegerMatrix& matrix, AnalysisMonitor& monitor) {
  const SquarePart part = FindSquarePart(matrix, monitor);
  if (part.equations.size() + 1 != matrix.columns()) return {};
  Lifting lifting(matrix, part);
  // Cramer: numerators and denominator are minors, which this many digits determine.
  const double enough = 2 * matrix.determinant_bits() + 64;
  double next = 64;
  while (true) {
    if (lifting.bits() >= next) {
      std::vector<mpz_class> x = lifting.Read(monitor);
      if (!x.empty() && matrix.Annihilates(x)) return x;
      if (lifting.bits() >= enough) return {};
      next = std::min(enough, 1.4 * next);
    }
    if (!monitor.Spend(lifting.work())) return {};
    lifting.Step();
  }
}

}  // namespace

std::vector<CertificateEntry> FindExactCombination(const SignedRows& rows,
                                                   std::span<const size_t> chosen,
                                                   AnalysisMonitor& monitor) {
  const IntegerMatrix matrix(rows, chosen);
  std::vector<CertificateEntry> entries;
  if (matrix.columns() == 0) return entries;
  const std::vector<mpz_class> x = FindNullVector(matrix, monitor);
  if (x.empty() || std::any_of(x.begin(), x.end(), [](const auto& v) { return v < 0; }))
    return entries;
  const std::vector<mpz_class> multipliers = matrix.Unscale(x);
  for (size_t k = 0; k < chosen.size(); ++k) {
    if (multipliers[k] > 0)
      entries.push_back({rows.example(chosen[k]), rows.rival(chosen[k]), multipliers[k].get_str()});
  }
  return entries;
}

}  // namespace perceptrond
