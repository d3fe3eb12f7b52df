#include "core/journal/jetstream/partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/journal/jetstream/parts.h"

namespace perceptrond::jetstream {
namespace {

constexpr size_t kMostBytesAtOnce = 4 << 20;
// A model that gets a new snapshot while it is read is read again.
constexpr int kPartitionAttempts = 10;

// A log cannot have an entry of a writer whose take-over it lacks; a replica that NATS let diverge
// may (nats-server's issue 5957). What it has is not to be relied on: another leader has all of it.
absl::Status LacksTakeOver(uint64_t sequence, int64_t epoch) {
  return absl::UnavailableError(
      absl::StrCat("NATS: a server has message ", sequence, " of the writer ", epoch,
                   " and lacks that writer's take-over: its copy of the stream is not that of the "
                   "others; make another one the stream's leader, and remove this copy"));
}

// The whole messages of a subject after one sequence number, up to one that exists.
absl::StatusOr<std::vector<StreamMessage>> ReadRange(const Stream& stream,
                                                     const std::string& subject, uint64_t after,
                                                     uint64_t last) {
  std::vector<StreamMessage> messages;
  if (last <= after) return messages;
  const absl::StatusOr<std::unique_ptr<StreamReader>> reader = stream.Read(subject, after);
  if (!reader.ok()) return reader.status();
  PartJoiner joiner;
  for (uint64_t sequence = 0; sequence < last;) {
    absl::StatusOr<std::optional<StreamMessage>> message = (*reader)->Next(Partition::kTimeout);
    if (!message.ok()) return message.status();
    if (!message->has_value())
      return absl::UnavailableError(
          absl::StrCat("NATS: ", subject, " cannot be read to its end now"));
    sequence = (*message)->sequence;
    if (sequence > last) break;
    if (std::optional<StreamMessage> whole = joiner.Add(**std::move(message)))
      messages.push_back(*std::move(whole));
  }
  return messages;
}

absl::Status Parse(const StreamMessage& message, storage::LogEntry& entry) {
  if (entry.ParseFromString(message.data)) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("message ", message.sequence, " of ", message.subject, " does not parse"));
}

JournalEntry ToEntry(uint64_t model_id, storage::LogEntry&& from) {
  JournalEntry entry;
  entry.model_id = model_id;
  entry.records.assign(std::make_move_iterator(from.mutable_records()->begin()),
                       std::make_move_iterator(from.mutable_records()->end()));
  entry.counters = std::move(*from.mutable_counters());
  entry.positions.assign(std::make_move_iterator(from.mutable_positions()->begin()),
                         std::make_move_iterator(from.mutable_positions()->end()));
  return entry;
}

storage::LogEntry ToLog(const JournalEntry& from, int64_t epoch) {
  storage::LogEntry entry;
  entry.set_epoch(epoch);
  entry.mutable_records()->Assign(from.records.begin(), from.records.end());
  *entry.mutable_counters() = from.counters;
  entry.mutable_positions()->Assign(from.positions.begin(), from.positions.end());
  return entry;
}

class PartitionTail final : public JournalTail {
 public:
  // `subject` is the partition's; `epoch` that of the writer at `after`.
  PartitionTail(const Stream& stream, std::string subject, std::string writers, uint64_t after,
                int64_t epoch)
      : stream_(stream),
        subject_(std::move(subject)),
        writers_(std::move(writers)),
        after_(after),
        epoch_(epoch) {}

  absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
    std::vector<SequencedEntry> entries;
    for (size_t bytes = 0; bytes < kMostBytesAtOnce;) {
      if (reader_ == nullptr) {
        absl::StatusOr<std::unique_ptr<StreamReader>> reader =
            stream_.Read(subject_ + ".>", after_);
        if (!reader.ok()) return reader.status();
        reader_ = *std::move(reader);
        joiner_ = PartJoiner();
      }
      absl::StatusOr<std::optional<StreamMessage>> message =
          reader_->Next(entries.empty() ? timeout : absl::ZeroDuration());
      if (!message.ok()) {
        // Goes on from where it was with the next call.
        reader_.reset();
        if (entries.empty()) return message.status();
        break;
      }
      if (!message->has_value()) break;
      pending_ = (*message)->pending;
      std::optional<StreamMessage> whole = joiner_.Add(**std::move(message));
      if (!whole.has_value()) continue;
      bytes += whole->data.size();
      if (absl::Status status = Add(*std::move(whole), entries); !status.ok()) return status;
    }
    return entries;
  }
  uint64_t pending() const override {
    return std::max(pending_, reader_ == nullptr ? 0 : reader_->queued());
  }
  int64_t epoch() const override { return epoch_; }
  uint64_t TakeSuperseded() override { return std::exchange(superseded_, 0); }

 private:
  absl::Status Add(StreamMessage message, std::vector<SequencedEntry>& entries) {
    storage::LogEntry log;
    if (absl::Status status = Parse(message, log); !status.ok()) return status;
    after_ = message.sequence;
    SequencedEntry entry;
    entry.sequence = message.sequence;
    entry.time = message.time;
    if (message.subject == writers_) {
      epoch_ = static_cast<int64_t>(message.sequence);
      entry.epoch = epoch_;
      entry.take_over = log.take_over();
      entries.push_back(std::move(entry));
      return absl::OkStatus();
    }
    if (log.epoch() > epoch_) return LacksTakeOver(message.sequence, log.epoch());
    if (log.epoch() != epoch_) {
      ++superseded_;
      return absl::OkStatus();
    }
    uint64_t model_id = 0;
    const size_t dot = message.subject.rfind('.');
    if (!absl::SimpleAtoi(message.subject.substr(dot + 1), &model_id))
      return absl::DataLossError(absl::StrCat(message.subject, " names no model"));
    entry.epoch = log.epoch();
    if (log.has_snapshot()) {
      entry.entry.model_id = model_id;
      entry.covered = log.snapshot().sequence();
    } else {
      entry.entry = ToEntry(model_id, std::move(log));
    }
    entries.push_back(std::move(entry));
    return absl::OkStatus();
  }

  const Stream& stream_;
  const std::string subject_;
  const std::string writers_;
  std::unique_ptr<StreamReader> reader_;
  PartJoiner joiner_;
  uint64_t after_;
  int64_t epoch_;
  uint64_t pending_ = 0;
  uint64_t superseded_ = 0;
};

}  // namespace

std::string Partition::EntriesOf(uint64_t model_id) const {
  return absl::StrCat(stream_->options().subject, ".m.", model_id);
}

std::string Partition::HeadOf(uint64_t model_id) const {
  return absl::StrCat(stream_->options().subject, ".s.", model_id);
}

std::string Partition::Writers() const { return stream_->options().subject + ".writer"; }

absl::StatusOr<AppendOutcome> Partition::Append(std::span<const NewMessage> messages,
                                                uint64_t expected) {
  absl::StatusOr<AppendOutcome> outcome = stream_->Append(messages, expected, kTimeout);
  if (!outcome.ok() || outcome->stale) {
    // After an unknown outcome too: only a take-over makes sure that nothing comes of it any more.
    if (!absl::IsUnavailable(outcome.status())) own_last_.reset();
  } else if (outcome->written > 0) {
    own_last_ = outcome->sequence;
  }
  return outcome;
}

absl::StatusOr<CommitOutcome> Partition::Commit(std::span<const JournalEntry> entries,
                                                std::optional<uint64_t> expected) {
  MutexLock lock(&mutex_);
  if (!expected.has_value()) expected = own_last_;
  CommitOutcome result;
  if (!expected.has_value()) {
    result.stale = true;
    return result;
  }
  std::vector<NewMessage> messages;
  // How many messages there are up to each entry's last.
  std::vector<size_t> ends;
  std::string bytes;
  for (const JournalEntry& entry : entries) {
    const storage::LogEntry log = ToLog(entry, epoch_);
    if (log.ByteSizeLong() > std::numeric_limits<int>::max() || !log.SerializeToString(&bytes)) {
      return absl::ResourceExhaustedError(absl::StrCat("journal: an entry of ", log.ByteSizeLong(),
                                                       " bytes is too large to be written"));
    }
    const size_t first = messages.size();
    AddInParts(EntriesOf(entry.model_id), bytes, stream_->max_data(), messages);
    for (size_t i = first; i < messages.size(); ++i) messages[i].traceparent = entry.traceparent;
    ends.push_back(messages.size());
  }
  const absl::StatusOr<AppendOutcome> outcome = Append(messages, *expected);
  if (!outcome.ok()) return outcome.status();
  while (result.written < ends.size() && ends[result.written] <= outcome->written) ++result.written;
  result.stale = outcome->stale;
  result.sequence = outcome->first + ends[std::max<size_t>(result.written, 1) - 1] - 1;
  return result;
}

absl::StatusOr<CommitOutcome> Partition::TakeOver(const std::string& address, uint64_t expected) {
  storage::LogEntry log;
  log.set_epoch(static_cast<int64_t>(expected) + 1);
  log.mutable_take_over()->set_epoch(log.epoch());
  log.mutable_take_over()->set_address(address);
  const NewMessage message{Writers(), log.SerializeAsString(), ""};
  MutexLock lock(&mutex_);
  const absl::StatusOr<AppendOutcome> outcome = Append({&message, 1}, expected);
  if (!outcome.ok()) return outcome.status();
  if (!outcome->stale) epoch_ = log.epoch();
  return CommitOutcome{outcome->written, outcome->stale, outcome->sequence};
}

absl::StatusOr<std::unique_ptr<JournalTail>> Partition::Tail(uint64_t after) {
  if (absl::Status status = ReadTakeOvers(after); !status.ok()) return status;
  MutexLock lock(&mutex_);
  const auto next = std::upper_bound(take_overs_.begin(), take_overs_.end(), after);
  const int64_t epoch = next == take_overs_.begin() ? 0 : static_cast<int64_t>(*std::prev(next));
  return std::make_unique<PartitionTail>(*stream_, stream_->options().subject, Writers(), after,
                                         epoch);
}

absl::Status Partition::ReadTakeOvers(uint64_t up_to) {
  uint64_t known = 0;
  {
    MutexLock lock(&mutex_);
    if (take_overs_known_ >= up_to) return absl::OkStatus();
    known = take_overs_.empty() ? 0 : take_overs_.back();
  }
  // A leader that has not applied so much yet may not know the last take-over either.
  const absl::StatusOr<uint64_t> last = stream_->LastSequence();
  if (!last.ok()) return last.status();
  if (*last < up_to)
    return absl::UnavailableError("NATS: the partition's leader lacks its newest entries");
  const absl::StatusOr<std::optional<StreamMessage>> newest = stream_->Last(Writers());
  if (!newest.ok()) return newest.status();
  const uint64_t end = newest->has_value() ? (*newest)->sequence : 0;
  const absl::StatusOr<std::vector<StreamMessage>> found =
      ReadRange(*stream_, Writers(), known, end);
  if (!found.ok()) return found.status();
  MutexLock lock(&mutex_);
  for (const StreamMessage& message : *found) {
    if (take_overs_.empty() || message.sequence > take_overs_.back())
      take_overs_.push_back(message.sequence);
  }
  take_overs_known_ = std::max({take_overs_known_, up_to, end});
  return absl::OkStatus();
}

absl::StatusOr<bool> Partition::IsValid(int64_t epoch, uint64_t sequence) {
  if (absl::Status status = ReadTakeOvers(sequence); !status.ok()) return status;
  MutexLock lock(&mutex_);
  const auto next = std::upper_bound(take_overs_.begin(), take_overs_.end(), sequence);
  const uint64_t current = next == take_overs_.begin() ? 0 : *std::prev(next);
  if (static_cast<uint64_t>(epoch) > current) {
    // They may be those of such a copy: the next reader may find another.
    take_overs_.clear();
    take_overs_known_ = 0;
    return LacksTakeOver(sequence, epoch);
  }
  return current == static_cast<uint64_t>(epoch);
}

absl::StatusOr<std::optional<StreamMessage>> Partition::LastWhole(
    const std::string& subject) const {
  absl::StatusOr<std::optional<StreamMessage>> last = stream_->Last(subject);
  if (!last.ok() || !last->has_value() || (*last)->part.empty()) return last;
  // Its parts lie just before it; one that lacks the rest is not the last whole one, which is read
  // with all there are.
  const absl::StatusOr<std::vector<StreamMessage>> all =
      ReadRange(*stream_, subject, 0, (*last)->sequence);
  if (!all.ok()) return all.status();
  return all->empty() ? std::optional<StreamMessage>() : all->back();
}

absl::StatusOr<StoredEntries> Partition::Read(uint64_t model_id,
                                              std::optional<uint64_t> after_revision) {
  for (int attempt = 0; attempt < kPartitionAttempts; ++attempt) {
    StoredEntries stored;
    const absl::StatusOr<std::optional<StreamMessage>> head = LastWhole(HeadOf(model_id));
    if (!head.ok()) return head.status();
    const absl::StatusOr<std::optional<StreamMessage>> last = stream_->Last(EntriesOf(model_id));
    if (!last.ok()) return last.status();
    if (head->has_value()) {
      storage::LogEntry log;
      if (absl::Status status = Parse(**head, log); !status.ok()) return status;
      const absl::StatusOr<bool> valid = IsValid(log.epoch(), (*head)->sequence);
      if (!valid.ok()) return valid.status();
      if (!*valid) return absl::DataLossError("a snapshot is of a writer that was superseded");
      stored.head = std::move(*log.mutable_snapshot());
      stored.head_epoch = log.epoch();
    }
    uint64_t after = stored.head.has_value() ? stored.head->sequence() : 0;
    if (after_revision.has_value()) after = stored.LastCovered(*after_revision);
    const absl::StatusOr<std::vector<StreamMessage>> messages =
        ReadRange(*stream_, EntriesOf(model_id), after, last->has_value() ? (*last)->sequence : 0);
    const absl::StatusOr<std::optional<StreamMessage>> again = stream_->Last(HeadOf(model_id));
    if (!again.ok()) return again.status();
    // A new snapshot deletes entries.
    if (again->value_or(StreamMessage()).sequence != head->value_or(StreamMessage()).sequence)
      continue;
    if (!messages.ok()) return messages.status();
    for (const StreamMessage& message : *messages) {
      storage::LogEntry log;
      if (absl::Status status = Parse(message, log); !status.ok()) return status;
      const absl::StatusOr<bool> valid = IsValid(log.epoch(), message.sequence);
      if (!valid.ok()) return valid.status();
      if (*valid) stored.entries.emplace_back(message.sequence, std::move(log));
    }
    return stored;
  }
  return absl::UnavailableError("NATS: the model gets snapshots faster than it can be read");
}

absl::StatusOr<std::optional<storage::Counters>> Partition::LastCounters(uint64_t model_id) {
  const absl::StatusOr<std::optional<StreamMessage>> last = stream_->Last(EntriesOf(model_id));
  if (!last.ok()) return last.status();
  storage::LogEntry log;
  if (!last->has_value() || !(*last)->part.empty()) return std::nullopt;
  if (absl::Status status = Parse(**last, log); !status.ok()) return status;
  const absl::StatusOr<bool> valid = IsValid(log.epoch(), (*last)->sequence);
  if (!valid.ok()) return valid.status();
  return *valid ? std::optional(std::move(*log.mutable_counters())) : std::nullopt;
}

absl::StatusOr<uint64_t> Partition::SetSnapshot(uint64_t model_id,
                                                const storage::SnapshotHead& head) {
  MutexLock lock(&mutex_);
  if (!own_last_.has_value()) return WrittenByAnother();
  storage::LogEntry log;
  log.set_epoch(epoch_);
  *log.mutable_snapshot() = head;
  std::vector<NewMessage> messages;
  AddInParts(HeadOf(model_id), log.SerializeAsString(), stream_->max_data(), messages);
  const absl::StatusOr<AppendOutcome> outcome = Append(messages, *own_last_);
  if (!outcome.ok()) return outcome.status();
  if (outcome->written < messages.size()) return WrittenByAnother();
  return outcome->first;
}

bool Partition::ConfirmWriter() {
  if (!is_writer()) return false;
  const absl::StatusOr<uint64_t> last = stream_->LastSequence();
  if (!last.ok() || !ReadTakeOvers(*last).ok()) return false;
  MutexLock lock(&mutex_);
  if (!take_overs_.empty() && take_overs_.back() > static_cast<uint64_t>(epoch_)) own_last_.reset();
  return own_last_.has_value();
}

absl::Status Partition::DeleteCovered(uint64_t model_id, uint64_t last_entry, uint64_t head) {
  absl::Status status = stream_->DeleteUpTo(EntriesOf(model_id), last_entry);
  if (status.ok()) status = stream_->DeleteUpTo(HeadOf(model_id), head - 1);
  return status;
}

absl::Status Partition::Delete(uint64_t model_id) {
  absl::Status status = stream_->DeleteAll(EntriesOf(model_id));
  if (status.ok()) status = stream_->DeleteAll(HeadOf(model_id));
  return status;
}

}  // namespace perceptrond::jetstream
