// How a stream holds on to its model from message to message.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/model/store.h"

namespace perceptrond {

// Finds a model by name. While it stays in memory and open, finding it again takes no lock. Does
// not keep the model in memory between calls, so that idle streams hold no memory; each call counts
// as a use.
//
// Thread contract: not thread-safe.
class ModelHandle {
 public:
  // The store must outlive it.
  explicit ModelHandle(Store& store) : store_(store) {}

  // As Store::Acquire. Returns the model of the last call if it is of that name, in memory and
  // open.
  absl::StatusOr<std::shared_ptr<Model>> Acquire(const std::string& name) {
    if (std::shared_ptr<Model> model = GetIfLoaded(); model != nullptr && name == name_) {
      model->core().used.store(true, std::memory_order_relaxed);
      return model;
    }
    absl::StatusOr<std::shared_ptr<Model>> model = store_.Acquire(name);
    if (model.ok()) {
      name_ = name;
      model_ = *model;
    }
    return model;
  }
  // The model of the last Acquire if it is still in memory and open, else null. Does not count as a
  // use.
  std::shared_ptr<Model> GetIfLoaded() const {
    std::shared_ptr<Model> model = model_.lock();
    return model != nullptr && model->closed().ok() ? model : nullptr;
  }

 private:
  Store& store_;
  std::string name_;
  std::weak_ptr<Model> model_;
};

}  // namespace perceptrond
