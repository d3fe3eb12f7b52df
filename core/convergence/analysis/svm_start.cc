#include "core/convergence/analysis/svm_start.h"

#include <libsvm/svm.h>

#include <cmath>
#include <memory>

namespace perceptrond {
namespace {

// Of the gradient, for rows of length 1.
constexpr double kAccuracy = 1e-4;

struct ModelDeleter {
  void operator()(svm_model* model) const { svm_free_and_destroy_model(&model); }
};

// LIBSVM prints unless it is given a function, which is its one global variable: set once, to
// nothing, before the first use.
void Silence() {
  [[maybe_unused]] static const bool silenced = [] {
    svm_set_print_string_function([](const char*) {});
    return true;
  }();
}

// Q / R^2 as LIBSVM takes it: row k is its number, counted from 1, and its products with all rows.
// Divided, since LIBSVM's float32 must hold all of it. Empty if the token was cancelled.
std::vector<std::vector<svm_node>> Products(const SignedRows& rows, std::span<const size_t> working,
                                            CancellationToken& cancellation) {
  const size_t n = working.size();
  const double scale = rows.squared_radius() > 0 ? 1 / rows.squared_radius() : 1;
  std::vector<std::vector<svm_node>> products(n, std::vector<svm_node>(n + 1));
  std::vector<double> scattered(rows.columns());
  for (size_t i = 0; i < n; ++i) {
    products[i][0] = {0, static_cast<double>(i + 1)};
    rows.AddScaled(working[i], scale, scattered);
    size_t work = 0;
    for (size_t k = 0; k <= i; ++k) {
      const svm_node product{static_cast<int>(k + 1), rows.Dot(working[k], scattered)};
      products[i][k + 1] = products[k][i + 1] = product;
      work += rows.size(working[k]);
    }
    rows.ForEach(working[i], [&](size_t column, double) { scattered[column] = 0; });
    if (!cancellation.Spend(work)) return {};
  }
  return products;
}

svm_parameter Parameters(size_t n) {
  svm_parameter parameters{};
  parameters.svm_type = ONE_CLASS;
  parameters.kernel_type = PRECOMPUTED;
  parameters.nu = 1.0 / static_cast<double>(n);
  parameters.eps = kAccuracy;
  // Room for all of Q, in MB.
  parameters.cache_size = 2 + 4e-6 * static_cast<double>(n * n);
  return parameters;
}

}  // namespace

std::vector<RowMultiplier> SolveWithSvm(const SignedRows& rows, std::span<const size_t> working,
                                        CancellationToken& cancellation) {
  Silence();
  std::vector<std::vector<svm_node>> products = Products(rows, working, cancellation);
  std::vector<RowMultiplier> support;
  if (!cancellation.Ask()) return support;
  std::vector<svm_node*> starts;
  for (std::vector<svm_node>& one : products) starts.push_back(one.data());
  std::vector<double> ones(working.size(), 1);
  const svm_problem problem{static_cast<int>(working.size()), ones.data(), starts.data()};
  const svm_parameter parameters = Parameters(working.size());
  const std::unique_ptr<svm_model, ModelDeleter> model(svm_train(&problem, &parameters));
  for (int k = 0; k < model->l; ++k)
    support.push_back({working[model->sv_indices[k] - 1], model->sv_coef[0][k]});
  return support;
}

}  // namespace perceptrond
