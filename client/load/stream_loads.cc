#include <utility>

#include "client/learn_stream.h"
#include "client/load/load.h"
#include "client/predict_stream.h"

namespace perceptrond::client {
namespace {

template <typename Stream>
absl::Status SendMessage(Stream& stream, SyntheticRows& rows, size_t count, uint64_t tag) {
  for (size_t i = 0; i < count; ++i) {
    if (absl::Status status = stream.Push(rows.Next(), tag); !status.ok()) return status;
  }
  return stream.Flush();
}

// What both kinds of stream are told.
template <typename Options>
Options StreamOptions(const LoadOptions& load) {
  Options options;
  options.rows_per_message = load.rows_per_message;
  options.window_messages = load.window;
  options.retry = load.retry;
  options.patience = load.patience;
  return options;
}

class LearnLoad final : public Load {
 public:
  LearnLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    auto options = StreamOptions<LearnOptions>(options_);
    options.numbered = options_.numbered;
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
    options.on_reconnect = [this](const absl::Status&) { Away(); };
    options.on_end = [this] { Ended(); };
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
  PredictLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows), client_(client) {}

 private:
  absl::Status Open() override {
    auto options = StreamOptions<PredictOptions>(options_);
    options.on_answer = [this](const PredictAnswer& answer) {
      LoadTally tally;
      tally.messages = 1;
      tally.refused = static_cast<uint64_t>(answer.response.errors_size());
      tally.examples = answer.tags.size() - tally.refused;
      Answered(answer.tags.front(), tally);
    };
    options.on_reconnect = [this](const absl::Status&) { Away(); };
    options.on_end = [this] { Ended(); };
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

}  // namespace

std::unique_ptr<Load> MakeLearnLoad(const Client& client, const LoadOptions& options,
                                    const SyntheticRowsOptions& rows) {
  return std::make_unique<LearnLoad>(client, options, rows);
}

std::unique_ptr<Load> MakePredictLoad(const Client& client, const LoadOptions& options,
                                      const SyntheticRowsOptions& rows) {
  return std::make_unique<PredictLoad>(client, options, rows);
}

}  // namespace perceptrond::client
