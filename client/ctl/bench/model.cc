#include "client/ctl/bench/model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/connection.h"
#include "client/ctl/feature_space_flags.h"

namespace perceptrond::client {
namespace {

// Number of feature names; the model learns those it does not know.
constexpr uint32_t kNames = 1U << 20;

}  // namespace

Outcome BenchModel::Find() {
  shape_.kind = options_.dense ? RowKind::kDense : RowKind::kSparse;
  shape_.size = options_.size;
  shape_.features = options_.Features();
  shape_.labels = options_.Work() == LoadOptions::Work::kLearn;
  shape_.mistakes = options_.mistakes;
  shape_.invalid = options_.invalid;
  shape_.parts = static_cast<uint32_t>(options_.streams);
  name_ = options_.name.empty() ? absl::StrCat("bench-", RandomId().substr(0, 12)) : options_.name;
  if (options_.name.empty()) return {};
  const absl::StatusOr<v1::Model> model = client_.GetModel(name_);
  return model.ok() ? ReadShape(*model) : Failed("bench", model.status());
}

Outcome BenchModel::Create() {
  if (!options_.name.empty()) return {};
  v1::Model model;
  model.set_description("Temporary model of perceptronctl bench, deleted at the end of the run.");
  model.mutable_feature_space()->mutable_dense()->set_dimension(options_.size);
  // No bias: flipping examples must share no feature with the others.
  model.mutable_learner()->set_bias_input(0);
  const absl::StatusOr<v1::Model> created = client_.CreateModel(name_, model);
  created_ = created.ok();
  return created_ ? Outcome() : Failed("bench", created.status());
}

Outcome BenchModel::ReadShape(const v1::Model& model) {
  if (model.learner().has_classes() && shape_.labels) {
    return UsageError("bench: the synthetic examples have two labels, and " + name_ +
                      " is multiclass: use --work predict");
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
  if (!created_) return;
  created_ = false;
  RetryPolicy retry;
  retry.give_up_after = std::min(globals_.StreamTimeout(), absl::Seconds(3));
  // The random name makes it safe to repeat the deletion.
  const absl::Status status = CallWithRetry(Reconnecting(retry, client_.connection()), true,
                                            [this] { return client_.DeleteModel(name_); });
  if (status.ok() || absl::IsNotFound(status)) return;
  PrintStderr(absl::StrCat("could not delete the temporary model (", std::string(status.message()),
                           "): delete it with 'perceptronctl delete ", name_, "'"));
}

}  // namespace perceptrond::client
