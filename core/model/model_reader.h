// A model's state while it is read: the guard that views and reports work on.
#pragma once

#include <cstdint>
#include <optional>

#include "core/model/model.h"

namespace perceptrond {

// Holds the state's lock shared: what is read through one reader is of one revision. A thread has at
// most one reader of a model at a time, or it may wait for itself.
// Example:
//   const ModelReader reader(*model);
//   Show(MakeReport(reader), ListWeights(reader));  // of the same revision
// A view alone, as in MakeReport(*model), holds the lock only inside of the call.
//
// Of a composition its components are asked first, without a lock of this model. Claims that hold
// only while the components are unchanged are absent from reports if a component was not asked.
class ModelReader {
 public:
  explicit ModelReader(const Model& model, ComponentAccess access = ComponentAccess::kLoad)
      : core_(model.core()),
        components_(access == ComponentAccess::kNone ? std::nullopt
                                                     : model.ComponentsFingerprint(access)),
        state_(model.core().state) {}

  const ModelState& state() const { return *state_; }
  const ModelCore& core() const { return core_; }
  const ModelSettings& settings() const { return core_.settings; }
  Ledger& ledger() const { return core_.ledger; }
  uint64_t revision() const { return state_->revision; }
  // Of a composition, and if all components could be asked: their fingerprint.
  std::optional<StateFingerprint> components() const { return components_; }

 private:
  const ModelCore& core_;
  const std::optional<StateFingerprint> components_;
  const Guarded<ModelState>::Reader state_;
};

}  // namespace perceptrond
