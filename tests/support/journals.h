// Fills journals with something to find again.
#pragma once

#include <string>
#include <vector>

#include "core/journal/journal.h"
#include "tests/support/status.h"

namespace perceptrond::testing {

inline storage::ModelHeader CreateModel(Journal& journal, const std::string& name) {
  storage::ModelHeader header;
  header.mutable_model()->set_name(name);
  header.mutable_model()->set_description("of " + name);
  EXPECT_OK(journal.Create(header));
  return header;
}

// A record of `rows` rows, whose features say which revision each of them produces.
inline storage::UpdateRecord MakeRecord(uint64_t first_revision, int rows) {
  storage::UpdateRecord record;
  record.set_first_revision(first_revision);
  for (int i = 0; i < rows; ++i) {
    for (uint32_t feature = 0; feature < 4; ++feature) {
      record.add_indices(feature);
      record.add_values(static_cast<float>(first_revision + i) + 0.25F * feature);
    }
    record.add_row_ends(record.indices_size());
    record.add_labels(i % 2 == 0 ? 1 : -1);
  }
  record.set_squared_norm(0.1 * static_cast<double>(first_revision));
  return record;
}

// A cut that ends at the last of its records, and moves producer "p" there.
inline JournalEntry MakeEntry(uint64_t model_id, std::vector<storage::UpdateRecord> records) {
  JournalEntry entry;
  entry.model_id = model_id;
  entry.records = std::move(records);
  const uint64_t revision = entry.records.empty() ? 0 : LastRevision(entry.records.back());
  entry.counters.mutable_report()->set_updates(revision);
  entry.counters.mutable_report()->set_examples(10 * revision);
  entry.positions.emplace_back().set_id("p");
  entry.positions.back().set_next_offset(static_cast<int64_t>(10 * revision));
  return entry;
}

inline Alias MakeAlias(const std::string& name, const std::string& model, const std::string& etag) {
  Alias alias;
  alias.set_name(name);
  alias.set_model(model);
  alias.set_etag(etag);
  return alias;
}

// A state of three numbers.
inline storage::Snapshot MakeState(uint64_t revision, float weight) {
  storage::Snapshot snapshot;
  snapshot.set_revision(revision);
  storage::StateArray& array = *snapshot.add_arrays();
  array.set_size(3);
  for (int i = 0; i < 3; ++i) array.add_values(weight + static_cast<float>(i));
  return snapshot;
}

inline absl::Status CommitOne(Journal& journal, const JournalEntry& entry, bool sync = true) {
  return journal.Commit({&entry, 1}, {sync, std::nullopt}).status();
}

// All records after a revision, or why they cannot be read.
inline absl::StatusOr<std::vector<storage::UpdateRecord>> ReadRecords(Journal& journal,
                                                                      uint64_t model_id,
                                                                      uint64_t after = 0) {
  std::vector<storage::UpdateRecord> records;
  const absl::Status status =
      journal.Replay(model_id, after, [&](const storage::UpdateRecord& record, size_t bytes) {
        EXPECT_EQ(bytes, record.ByteSizeLong());
        records.push_back(record);
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return records;
}

// The revisions they end at: easier to read in a failure than the records.
inline std::vector<uint64_t> LastRevisions(const std::vector<storage::UpdateRecord>& records) {
  std::vector<uint64_t> revisions;
  for (const storage::UpdateRecord& record : records) revisions.push_back(LastRevision(record));
  return revisions;
}

}  // namespace perceptrond::testing
