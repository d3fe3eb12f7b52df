#include "core/learner/catalogue.h"

#include "core/learner/perceptron.h"

namespace perceptrond {
namespace {

template <typename L>
std::unique_ptr<Learner> Make(const LearnerSettings& settings, size_t size) {
  return std::make_unique<L>(settings, size);
}

constexpr CatalogueEntry kCatalogue[] = {
    {LearnerKind::kPerceptron, "perceptron",
     "Rosenblatt's perceptron: updates on mistakes, certified when separable",
     /*convergence_theorem=*/true, &Make<Perceptron>},
};

}  // namespace

std::span<const CatalogueEntry> Catalogue() { return kCatalogue; }

const CatalogueEntry& FindLearner(LearnerKind kind) {
  return kCatalogue[static_cast<size_t>(kind)];
}

}  // namespace perceptrond
