#include "server/rpc/backend.h"

#include "core/learner/catalogue.h"
#include "core/model/model.h"

namespace perceptrond {

bool CanRunInline(const Model* model) {
  if (model == nullptr || model->core().large_work.load(std::memory_order_relaxed) > 0)
    return false;
  const ModelSettings& settings = model->settings();
  const CatalogueEntry& learner = FindLearner(settings.learner);
  return learner.form == Form::kLinear && !learner.separate_prediction_weights &&
         !settings.is_multiclass() && settings.components.empty() &&
         settings.space.map.kind == FeatureMap::Kind::kIdentity;
}

}  // namespace perceptrond
