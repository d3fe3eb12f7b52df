// A model's entries as they are read back from a partition.
#include <algorithm>
#include <map>

#include "core/journal/jetstream/partition.h"

namespace perceptrond::jetstream {

CommittedState StoredEntries::StateAt(uint64_t sequence) const {
  CommittedState state;
  std::map<std::string, const storage::ProducerPosition*> positions;
  const auto move = [&](const auto& moved) {
    for (const storage::ProducerPosition& position : moved) positions[position.id()] = &position;
  };
  const storage::Counters* counters = nullptr;
  state.epoch = head_epoch;
  if (head.has_value()) {
    counters = &head->counters();
    move(head->positions());
    state.sequence = head->sequence();
  }
  for (const auto& [own, entry] : entries) {
    if (own > sequence) break;
    counters = &entry.counters();
    move(entry.positions());
    state.sequence = own;
    state.epoch = entry.epoch();
  }
  if (counters != nullptr) state.counters = *counters;
  for (const auto& [id, position] : positions) state.positions.push_back(*position);
  return state;
}

uint64_t StoredEntries::LastCovered(uint64_t revision) const {
  uint64_t last = 0;
  if (!head.has_value()) return last;
  for (const storage::HistorySegment& segment : head->history().segments()) {
    if (segment.revision() <= revision) last = std::max(last, segment.sequence());
  }
  return head->revision() <= revision ? std::max(last, head->sequence()) : last;
}

storage::History StoredEntries::GetHistory() const {
  storage::History history;
  if (!head.has_value()) return history;
  if (head->has_history()) return head->history();
  history.set_revision(head->revision());
  history.set_begin(head->revision());
  return history;
}

absl::Status StoredEntries::Replay(uint64_t after_revision, const ReplayCallback& replay) const {
  for (const auto& [sequence, entry] : entries) {
    for (const storage::UpdateRecord& record : entry.records()) {
      if (LastRevision(record) <= after_revision) continue;
      if (absl::Status status = replay(record, record.ByteSizeLong()); !status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

}  // namespace perceptrond::jetstream
