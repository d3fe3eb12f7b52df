#include "client/load/load.h"

#include <sys/prctl.h>

#include <algorithm>
#include <utility>

#include "client/batch_builder.h"
#include "client/learn_stream.h"
#include "client/predict_stream.h"

namespace perceptrond::client {
namespace {

template <typename Stream>
absl::Status SendMessage(Stream& stream, MadeRows& rows, size_t count, uint64_t tag) {
  for (size_t i = 0; i < count; ++i) {
    if (absl::Status status = stream.Push(rows.Next(), tag); !status.ok()) return status;
  }
  return stream.Flush();
}

class LearnLoad final : public Load {
 public:
  LearnLoad(const Client& client, const LoadOptions& options, const MadeRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    LearnOptions options;
    options.numbered = options_.numbered;
    options.rows_per_message = options_.rows_per_message;
    options.window_messages = options_.window;
    options.retry = options_.retry;
    options.patience = options_.patience;
    options.on_result = [this](const LearnAnswer& answer) {
      LoadTally tally;
      if (answer.lost) {
        tally.lost = answer.tags.size();
      } else {
        tally.messages = 1;
        tally.examples = answer.result.examples();
        tally.mistakes = answer.result.mistakes();
        tally.updates = answer.result.updates();
        tally.refused = static_cast<uint64_t>(answer.result.errors_size());
      }
      Answered(answer.tags.front(), tally);
    };
    options.on_reconnect = [this](const absl::Status&) { Reconnected(); };
    auto stream = LearnStream::Open(client_.connection(), options_.model, std::move(options));
    if (!stream.ok()) return stream.status();
    stream_ = *std::move(stream);
    return absl::OkStatus();
  }
  absl::Status Send(uint64_t tag) override {
    return SendMessage(*stream_, rows_, options_.rows_per_message, tag);
  }
  absl::Status Finish() override { return stream_->Finish().status(); }
  void BreakOff() override { stream_->Cancel(); }

  const Client client_;
  std::unique_ptr<LearnStream> stream_;
};

class PredictLoad final : public Load {
 public:
  PredictLoad(const Client& client, const LoadOptions& options, const MadeRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    PredictOptions options;
    options.rows_per_message = options_.rows_per_message;
    options.window_messages = options_.window;
    options.retry = options_.retry;
    options.patience = options_.patience;
    options.on_answer = [this](const PredictAnswer& answer) {
      LoadTally tally;
      tally.messages = 1;
      tally.refused = static_cast<uint64_t>(answer.response.errors_size());
      tally.examples = answer.tags.size() - tally.refused;
      Answered(answer.tags.front(), tally);
    };
    options.on_reconnect = [this](const absl::Status&) { Reconnected(); };
    stream_ =
        std::make_unique<PredictStream>(client_.connection(), options_.model, std::move(options));
    return absl::OkStatus();
  }
  absl::Status Send(uint64_t tag) override {
    return SendMessage(*stream_, rows_, options_.rows_per_message, tag);
  }
  absl::Status Finish() override { return stream_->Finish(); }
  void BreakOff() override { stream_->Cancel(); }

  const Client client_;
  std::unique_ptr<PredictStream> stream_;
};

// One unary call after the other.
class CallLoad final : public Load {
 public:
  CallLoad(const Client& client, const LoadOptions& options, const MadeRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Send(uint64_t tag) override {
    BatchBuilder batch;
    for (size_t i = 0; i < options_.rows_per_message; ++i) {
      if (absl::Status status = batch.Add(rows_.Next()); !status.ok()) return status;
    }
    v1::ExampleColumns columns;
    batch.Build(&columns);
    const absl::StatusOr<v1::PredictResponse> answer =
        client_.Predict(options_.model, std::move(columns));
    if (!answer.ok()) return answer.status();
    LoadTally tally;
    tally.messages = 1;
    tally.examples = options_.rows_per_message;
    Answered(tag, tally);
    return absl::OkStatus();
  }

  const Client client_;
};

}  // namespace

void LoadTally::Add(const LoadTally& other) {
  messages += other.messages;
  examples += other.examples;
  refused += other.refused;
  mistakes += other.mistakes;
  updates += other.updates;
  lost += other.lost;
  reconnects += other.reconnects;
  latency.Add(other.latency);
}

std::unique_ptr<Load> Load::Make(const Client& client, const LoadOptions& options,
                                 const MadeRowsOptions& rows) {
  switch (options.work) {
    case LoadOptions::Work::kLearn:
      return std::make_unique<LearnLoad>(client, options, rows);
    case LoadOptions::Work::kPredict:
      return std::make_unique<PredictLoad>(client, options, rows);
    case LoadOptions::Work::kCall:
      break;
  }
  return std::make_unique<CallLoad>(client, options, rows);
}

absl::Status Load::Run() {
  // A wait would end up to 50 us late, which would count as the server's.
  prctl(PR_SET_TIMERSLACK, 1);
  if (absl::Status status = Open(); !status.ok()) return status;
  bool cancelled = false;
  {
    MonitorLock lock(&mutex_);
    opened_ = true;
    cancelled = cancelled_;
  }
  if (cancelled) BreakOff();
  absl::Status status;
  for (uint64_t message = 0; status.ok(); ++message) {
    LoadClock::time_point due = std::max(LoadClock::now(), options_.start);
    if (options_.rate > 0) {
      const std::chrono::duration<double> offset(static_cast<double>(message) / options_.rate);
      due = options_.start + std::chrono::duration_cast<LoadClock::duration>(offset);
    }
    if (due >= options_.end || !WaitUntil(due)) break;
    status = Send(TagOf(due));
  }
  const absl::Status finished = Finish();
  return status.ok() ? finished : status;
}

bool Load::WaitUntil(LoadClock::time_point due) {
  MonitorLock lock(&mutex_);
  while (!stopped_ && LoadClock::now() < due) mutex_.WaitUntil(due);
  return !stopped_;
}

void Load::Stop() {
  MonitorLock lock(&mutex_);
  stopped_ = true;
  mutex_.NotifyAll();
}

void Load::Cancel() {
  Stop();
  bool opened = false;
  {
    MonitorLock lock(&mutex_);
    cancelled_ = true;
    opened = opened_;
  }
  if (opened) BreakOff();
}

uint64_t Load::TagOf(LoadClock::time_point due) const {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(due - options_.start).count());
}

void Load::Answered(uint64_t tag, const LoadTally& answer) {
  const LoadClock::time_point due = options_.start + std::chrono::nanoseconds(tag);
  if (due < options_.counted_from || due >= options_.end) return;
  const LoadClock::time_point now = LoadClock::now();
  MonitorLock lock(&mutex_);
  tally_.messages += answer.messages;
  tally_.examples += answer.examples;
  tally_.refused += answer.refused;
  tally_.mistakes += answer.mistakes;
  tally_.updates += answer.updates;
  tally_.lost += answer.lost;
  if (answer.messages > 0) tally_.latency.Add(absl::FromChrono(now - due));
}

void Load::Reconnected() {
  MonitorLock lock(&mutex_);
  ++tally_.reconnects;
}

LoadTally Load::tally() const {
  MonitorLock lock(&mutex_);
  return tally_;
}

}  // namespace perceptrond::client
