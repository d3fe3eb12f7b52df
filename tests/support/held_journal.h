// The journal of a server that reads its log late: what others have written arrives there, and waits.
#pragma once

#include <atomic>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/support/journal_decorator.h"

namespace perceptrond::testing {

class HeldJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  void Hold() { state_->held = true; }
  void Release() { state_->held = false; }
  // The log cannot be read at all.
  void BreakOff() { state_->broken = true; }

  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    if (state_->broken) return absl::UnavailableError("it cannot be read");
    absl::StatusOr<std::unique_ptr<JournalTail>> tail = JournalDecorator::Tail(partition, after);
    if (!tail.ok()) return tail;
    return std::make_unique<HeldTail>(*std::move(tail), state_);
  }

 private:
  struct State {
    std::atomic<bool> held = false;
    std::atomic<bool> broken = false;
  };

  class HeldTail final : public JournalTail {
   public:
    HeldTail(std::unique_ptr<JournalTail> base, std::shared_ptr<State> state)
        : base_(std::move(base)), state_(std::move(state)) {}
    absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
      if (state_->broken) return absl::UnavailableError("it cannot be read");
      absl::StatusOr<std::vector<SequencedEntry>> come =
          base_->Next(waiting_.empty() ? timeout : absl::ZeroDuration());
      if (!come.ok()) return come;
      for (SequencedEntry& entry : *come) waiting_.push_back(std::move(entry));
      std::vector<SequencedEntry> entries;
      if (!state_->held) {
        entries.assign(std::make_move_iterator(waiting_.begin()),
                       std::make_move_iterator(waiting_.end()));
        waiting_.clear();
      }
      return entries;
    }
    int64_t epoch() const override { return base_->epoch(); }
    uint64_t pending() const override { return waiting_.size(); }

   private:
    const std::unique_ptr<JournalTail> base_;
    const std::shared_ptr<State> state_;
    std::vector<SequencedEntry> waiting_;
  };

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace perceptrond::testing
