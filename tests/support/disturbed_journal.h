// The journal of a server that stands still, or reads its log late or not at all.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/journal_decorator.h"

namespace perceptrond::testing {

class DisturbedJournal final : public JournalDecorator {
 public:
  using JournalDecorator::JournalDecorator;

  // The server neither says nor reads anything until it goes on, and then goes on with what it was about to
  // write.
  void Pause() { state_->paused = true; }
  void Continue() { state_->paused = false; }
  // Entries that others have written arrive, and wait.
  void Hold() { state_->held = true; }
  void Release() { state_->held = false; }
  // The log cannot be read at all, until it can again.
  void BreakOff() { state_->broken = true; }
  void Mend() { state_->broken = false; }
  // What others announce is lost.
  void Deafen(bool is_deaf) { state_->deaf = is_deaf; }

  // At one moment: other servers write.
  absl::StatusOr<std::unique_ptr<StoredModel>> Load(uint64_t model_id) override {
    return base().Load(model_id);
  }
  void Listen(std::function<void(absl::string_view message)> listener) override {
    if (listener == nullptr) return JournalDecorator::Listen(nullptr);
    JournalDecorator::Listen([state = state_, listener](absl::string_view message) {
      if (!state->deaf) listener(message);
    });
  }
  absl::Status Announce(absl::string_view message) override {
    return state_->paused ? Unavailable() : JournalDecorator::Announce(message);
  }
  absl::StatusOr<CommitOutcome> TakeOver(uint32_t partition, const std::string& address,
                                         uint64_t expected) override {
    if (state_->paused) return Unavailable();
    return JournalDecorator::TakeOver(partition, address, expected);
  }
  absl::StatusOr<std::unique_ptr<JournalTail>> Tail(uint32_t partition, uint64_t after) override {
    if (!state_->reads()) return Unavailable();
    absl::StatusOr<std::unique_ptr<JournalTail>> tail = JournalDecorator::Tail(partition, after);
    if (!tail.ok()) return tail;
    return std::make_unique<DisturbedTail>(*std::move(tail), state_);
  }

 private:
  struct State {
    std::atomic<bool> paused = false;
    std::atomic<bool> held = false;
    std::atomic<bool> broken = false;
    std::atomic<bool> deaf = false;
    bool reads() const { return !paused && !broken; }
  };

  static absl::Status Unavailable() { return absl::UnavailableError("disturbed"); }

  class DisturbedTail final : public JournalTail {
   public:
    DisturbedTail(std::unique_ptr<JournalTail> base, std::shared_ptr<State> state)
        : base_(std::move(base)), state_(std::move(state)) {}
    absl::StatusOr<std::vector<SequencedEntry>> Next(absl::Duration timeout) override {
      if (!state_->reads()) return Unavailable();
      absl::StatusOr<std::vector<SequencedEntry>> come =
          base_->Next(waiting_.empty() ? timeout : absl::ZeroDuration());
      if (!come.ok()) return come;
      // They are read again once the server goes on.
      if (!state_->reads()) return Unavailable();
      for (SequencedEntry& entry : *come) waiting_.push_back(std::move(entry));
      if (state_->held) return std::vector<SequencedEntry>();
      return std::exchange(waiting_, {});
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
