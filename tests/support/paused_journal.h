// The journal of a server that stands still: it neither says nor reads anything, until it goes on,
// and then goes on with what it was about to write.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "tests/support/journal_decorator.h"

namespace perceptrond::testing {

class PausedJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  void Pause() { *paused_ = true; }
  void Continue() { *paused_ = false; }

  // At one moment: other servers write.
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override {
    return base().Load(model_id);
  }
  absl::Status Announce(absl::string_view message) override {
    return *paused_ ? Paused() : JournalDecorator::Announce(message);
  }
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override {
    if (*paused_) return Paused();
    return JournalDecorator::TakeOver(partition, address, expected);
  }
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    if (*paused_) return Paused();
    absl::StatusOr<std::unique_ptr<JournalTail>> tail = JournalDecorator::Tail(partition, after);
    if (!tail.ok()) return tail;
    return std::make_unique<PausedTail>(*std::move(tail), paused_);
  }

 private:
  static absl::Status Paused() { return absl::UnavailableError("it stands still"); }

  class PausedTail final : public JournalTail {
   public:
    PausedTail(std::unique_ptr<JournalTail> base, std::shared_ptr<std::atomic<bool>> paused)
        : base_(std::move(base)), paused_(std::move(paused)) {}
    absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
      if (*paused_) return Paused();
      return base_->Next(timeout);
    }
    int64_t epoch() const override { return base_->epoch(); }

   private:
    const std::unique_ptr<JournalTail> base_;
    const std::shared_ptr<std::atomic<bool>> paused_;
  };

  const std::shared_ptr<std::atomic<bool>> paused_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace perceptrond::testing
