#include "core/model/snapshot.h"

#include "core/model/snapshot_codec.h"
#include "core/model/stored_examples_codec.h"

namespace perceptrond {

storage::Snapshot MakeSnapshot(const ModelReader& reader) {
  const ModelState& state = reader.state();
  storage::Snapshot snapshot = WriteState(state.learner->State());
  snapshot.set_revision(state.revision);
  for (uint32_t number = 1; number <= state.names.size(); ++number)
    snapshot.add_names(state.names.Name(number));
  for (uint32_t number = 1; number <= state.class_names.size(); ++number)
    snapshot.add_class_names(state.class_names.Name(number));
  const CurvePoints points = reader.ledger().curve_points();
  if (!points.points().empty()) *snapshot.mutable_learning_curve() = points.ToStorage();
  const StoredExamplesCopy stored = reader.ledger().stored_examples().Copy();
  if (!stored.updates.empty() || !stored.sample.empty())
    *snapshot.mutable_stored_rows() = ToStorage(stored);
  return snapshot;
}

}  // namespace perceptrond
