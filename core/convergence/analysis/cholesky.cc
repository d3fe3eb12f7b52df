#include "core/convergence/analysis/cholesky.h"

#include <cmath>
#include <utility>

namespace perceptrond {
namespace {

// Of the plane of two columns (Givens).
struct Turn {
  double cosine;
  double sine;
};

// Four lanes: the compiler may not reorder a sum by itself.
double Dot(const double* a, const double* b, size_t n) {
  double lanes[4] = {};
  size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (size_t k = 0; k < 4; ++k) lanes[k] += a[i + k] * b[i + k];
  }
  for (; i < n; ++i) lanes[0] += a[i] * b[i];
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

}  // namespace

bool Cholesky::Append(std::span<const double> cross, double diagonal) {
  std::vector<double> row(size() + 1);
  for (size_t i = 0; i < size(); ++i)
    row[i] = (cross[i] - Dot(row.data(), rows_[i].data(), i)) / rows_[i][i];
  const double pivot = diagonal - Dot(row.data(), row.data(), size());
  if (!(pivot > 0) || !std::isfinite(pivot)) return false;
  row.back() = std::sqrt(pivot);
  rows_.push_back(std::move(row));
  return true;
}

void Cholesky::Remove(size_t i) {
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
  // The rows after it now have one column too many: rotating each pair of columns removes it. A row
  // needs the rotations of the rows before it, so that one pass over the rows is enough.
  std::vector<Turn> turns;
  for (size_t r = i; r < size(); ++r) {
    double* row = rows_[r].data() + i;
    for (size_t k = 0; k < turns.size(); ++k) {
      const double x = row[k];
      const double y = row[k + 1];
      row[k] = turns[k].cosine * x + turns[k].sine * y;
      row[k + 1] = turns[k].cosine * y - turns[k].sine * x;
    }
    double& diagonal = rows_[r][r];
    const double length = std::hypot(diagonal, rows_[r][r + 1]);
    turns.push_back({diagonal / length, rows_[r][r + 1] / length});
    diagonal = length;
    rows_[r].pop_back();
  }
}

std::vector<double> Cholesky::Solve(std::span<const double> b) const {
  std::vector<double> x(b.begin(), b.end());
  for (size_t i = 0; i < size(); ++i)
    x[i] = (x[i] - Dot(x.data(), rows_[i].data(), i)) / rows_[i][i];
  for (size_t i = size(); i-- > 0;) {
    x[i] /= rows_[i][i];
    for (size_t k = 0; k < i; ++k) x[k] -= rows_[i][k] * x[i];
  }
  return x;
}

}  // namespace perceptrond
