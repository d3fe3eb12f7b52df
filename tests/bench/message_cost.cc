// How long a multiply-add of a message's estimated cost (core/model/cost.h) really takes, for the
// feature maps and the kernel: about a nanosecond, or the limit of --max-message-cost means another
// time.
//   message_cost
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/columns.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// `rows` rows of `features` of `names` names.
std::vector<testing::NamedExample> Examples(size_t rows, size_t features, size_t names) {
  std::vector<testing::NamedExample> examples(rows);
  for (size_t row = 0; row < rows; ++row) {
    examples[row].label = row % 2 == 0 ? 1 : -1;
    const size_t shift = row * 7 % (names - features + 1);
    for (size_t i = 0; i < features; ++i)
      examples[row].features.emplace_back(absl::StrCat("name", shift + i), 1.0F);
  }
  return examples;
}

void Measure(const char* what, v1::Model settings,
             const std::vector<testing::NamedExample>& examples) {
  settings.set_name("models/m");
  testing::LoneModel lone(settings);
  const testing::NamedColumns rows(examples);
  if (settings.learner().has_kernel_perceptron()) lone.Learn(rows.batch());
  const uint64_t cost = lone.model->EstimateCost(rows.batch());
  const std::clock_t start = std::clock();
  lone.Predict(rows.batch());
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%-28s %12llu multiply-adds  %6.3f s  %5.2f ns each\n", what,
              static_cast<unsigned long long>(cost), seconds,
              seconds * 1e9 / static_cast<double>(cost));
}

v1::Model Fourier(uint32_t dimension) {
  v1::Model model = testing::NamedSettings("");
  auto& fourier = *model.mutable_feature_space()->mutable_map()->mutable_fourier();
  fourier.set_dimension(dimension);
  fourier.set_gamma(1);
  return model;
}

v1::Model Polynomial(v1::Model model, uint32_t degree) {
  model.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(degree);
  return model;
}

void MeasureAll() {
  const v1::Model named = testing::NamedSettings("");
  const v1::Model hashed = testing::HashedSettings("", 22);
  v1::Model kernel = named;
  kernel.mutable_learner()->mutable_kernel_perceptron();
  Measure("Fourier, new names", Fourier(1 << 20), Examples(1, 30, 30));
  Measure("Fourier, names again", Fourier(1 << 10), Examples(1000, 30, 100));
  Measure("polynomial 4, named", Polynomial(named, 4), Examples(4, 60, 100));
  Measure("polynomial 4, hashed", Polynomial(hashed, 4), Examples(4, 60, 100));
  Measure("polynomial 2, hashed", Polynomial(hashed, 2), Examples(20, 500, 1000));
  Measure("kernel, short rows", kernel, Examples(2000, 20, 2000));
  Measure("kernel, long rows", kernel, Examples(300, 1000, 4000));
}

}  // namespace
}  // namespace perceptrond

int main() { perceptrond::MeasureAll(); }
