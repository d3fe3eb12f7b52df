// Any bytes as the settings of a new model: refused with a reason and a field, or a model that
// learns, predicts, and has the same settings when it is asked for them. Large models are only
// checked, not made.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/error/error.h"
#include "core/journal/memory_journal.h"
#include "core/settings/settings.h"
#include "core/store/store.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/columns.h"

namespace {

using perceptrond::Store;
using perceptrond::testing::Check;
namespace v1 = ::perceptron::v1;

// One for all inputs; each input's model is deleted.
Store& TheStore() {
  static Store store(std::make_unique<perceptrond::MemoryJournal>(), Store::Options());
  return store;
}

void CheckRefusal(const absl::Status& status) {
  // Not found: a component.
  Check(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status) ||
        absl::IsNotFound(status));
  Check(status.GetPayload(perceptrond::kErrorInfoUrl).has_value() && !status.message().empty());
  Check(!absl::IsInvalidArgument(status) ||
        status.GetPayload(perceptrond::kBadRequestUrl).has_value());
}

// True if a row costs little, and the weights too.
bool IsSmall(const v1::Model& settings) {
  const v1::FeatureSpace& space = settings.feature_space();
  const bool mapped = space.has_map();
  const v1::FeatureMap& map = space.map();
  return space.dense().dimension() <= (mapped ? 16 : 4096) && space.hashed().bits() <= 12 &&
         space.text().bits() <= 12 && !space.has_composition() &&
         map.fourier().dimension() <= 256 && settings.learner().classes().max_classes() <= 16;
}

// Some rows that the space takes.
void Use(perceptrond::Model& model, const v1::Model& settings) {
  const bool classes = settings.learner().has_classes();
  const bool by_name = !settings.feature_space().has_dense();
  const bool by_text = settings.feature_space().has_text();
  for (const int32_t label : {-1, 1, 0, 1}) {
    perceptrond::testing::NamedColumns named({{{{"a", 1.5F}, {"b^c", -2}}, label}});
    perceptrond::testing::Columns dense;
    dense.AddDense(std::vector<float>(settings.feature_space().dense().dimension(), 0.5F), label);
    perceptrond::testing::TextColumns text("Free prize, free", label, model.settings().space);
    perceptrond::LearnCall call;
    call.batch = by_text ? text.batch() : by_name ? named.batch() : dense.batch();
    perceptrond::Producer producer("");
    call.producer = &producer;
    perceptrond::LearnOutcome learned;
    Check(model.Learn(call, learned).ok());
    Check(learned.mistakes <= learned.examples);
    call.batch.labels = {};
    perceptrond::PredictOutcome predicted;
    Check(model.Predict(call.batch, {}, 0, predicted, classes).ok());
    Check(predicted.scores.size() == 1);
    Check(!predicted.row_errors.empty() || std::isfinite(predicted.scores[0]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  v1::Model settings;
  if (!settings.ParseFromArray(data, static_cast<int>(size))) return 0;
  settings.set_name("models/m");
  const auto checked = TheStore().Create(settings, "", /*validate_only=*/true);
  if (!checked.ok()) {
    CheckRefusal(checked.status());
    return 0;
  }
  if (!IsSmall(*checked)) return 0;
  const auto created = TheStore().Create(settings, "", false);
  Check(created.ok());
  // Defaults are filled in already.
  v1::Model again = *created;
  perceptrond::FillDefaults(again);
  Check(again.SerializeAsString() == created->SerializeAsString());
  const auto model = TheStore().Acquire("models/m");
  Check(model.ok());
  Use(**model, *created);
  Check(TheStore().Delete("models/m", "", false).ok());
  return 0;
}
