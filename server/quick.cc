#include "server/quick.h"

#include "core/learner/catalogue.h"
#include "core/model/store.h"

namespace perceptrond {

bool IsQuick(Store& store, absl::string_view model) {
  const std::shared_ptr<Model> loaded = store.Peek(model);
  if (loaded == nullptr) return false;
  const ModelSettings& settings = loaded->settings();
  const CatalogueEntry& learner = FindLearner(settings.learner.kind);
  return learner.form == Form::kLinear && !learner.answers_otherwise &&
         !settings.several_classes() && settings.components.empty() &&
         settings.space.map.kind == FeatureMap::Kind::kIdentity;
}

}  // namespace perceptrond
