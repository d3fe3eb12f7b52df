#include "client/ctl/bench/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/ctl/feature_space_flags.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

// Enough names for any load; a model that knows fewer learns them.
constexpr uint32_t kNames = 1U << 20;

}  // namespace

Outcome BenchModel::Find() {
  shape_.kind = options_.dense ? RowKind::kDense : RowKind::kSparse;
  shape_.size = options_.size;
  shape_.features = options_.Features();
  shape_.labels = options_.Work() == LoadOptions::Work::kLearn;
  shape_.mistakes = options_.mistakes;
  shape_.refused = options_.refused;
  shape_.parts = static_cast<uint32_t>(options_.streams);
  name_ = options_.name.empty() ? absl::StrCat("bench-", RandomId().substr(0, 12)) : options_.name;
  if (options_.name.empty()) return {};
  const absl::StatusOr<v1::Model> model = client_.GetModel(name_);
  return model.ok() ? ReadShape(*model) : Failed("bench", model.status());
}

Outcome BenchModel::Make() {
  if (!options_.name.empty()) return {};
  v1::Model model;
  model.set_description("Made by perceptronctl bench, which deletes it at its end.");
  model.mutable_feature_space()->mutable_dense()->set_dimension(options_.size);
  // Examples have no coordinate in common, so that those which are mistakes disturb no others.
  model.mutable_learner()->set_offset_value(0);
  const absl::StatusOr<v1::Model> created = client_.CreateModel(name_, model);
  made_ = created.ok();
  return made_ ? Outcome() : Failed("bench", created.status());
}

Outcome BenchModel::ReadShape(const v1::Model& model) {
  if (model.learner().has_classes() && shape_.labels) {
    return WrongUsage("bench: its examples have two labels, and " + name_ +
                      " tells several classes apart: --work predict asks such a model");
  }
  const v1::FeatureSpace& space = ExampleSpace(model.feature_space());
  if (space.has_dense()) {
    shape_.size = space.dense().dimension();
  } else if (space.has_hashed()) {
    shape_.size = 1U << std::min<uint32_t>(space.hashed().bits(), 31);
    shape_.kind = RowKind::kSparse;
  } else {
    shape_.size = kNames;
    shape_.kind = RowKind::kNamed;
  }
  shape_.features = std::min(shape_.features, shape_.size);
  return {};
}

void BenchModel::Delete() {
  if (!made_) return;
  made_ = false;
  RetryPolicy retry;
  retry.give_up_after = std::min(globals_.StreamTimeout(), absl::Seconds(3));
  // Its name is nobody else's, so that it may be deleted twice.
  const absl::Status status = CallWithRetry(Reconnecting(retry, client_.connection()), true,
                                            [this] { return client_.DeleteModel(name_); });
  if (status.ok() || absl::IsNotFound(status)) return;
  Complain(absl::StrCat("the model ", name_, " is left behind (", std::string(status.message()),
                        "): 'perceptronctl delete ", name_, "' removes it"));
}

}  // namespace perceptrond::client
