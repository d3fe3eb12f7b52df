#include "server/rpc/backend.h"

#include <memory>

#include "core/learner/catalogue.h"
#include "core/model/store.h"

namespace perceptrond {

bool CanRunInline(Store& store, absl::string_view model) {
  return CanRunInline(store.GetIfLoaded(model).get());
}

bool CanRunInline(const Model* model) {
  if (model == nullptr) return false;
  const ModelSettings& settings = model->settings();
  const CatalogueEntry& learner = FindLearner(settings.learner);
  return learner.form == Form::kLinear && !learner.separate_prediction_weights &&
         !settings.is_multiclass() && settings.components.empty() &&
         settings.space.map.kind == FeatureMap::Kind::kIdentity;
}

}  // namespace perceptrond
