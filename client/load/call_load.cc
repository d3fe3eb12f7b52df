#include <utility>

#include "client/batch_builder.h"
#include "client/connection.h"
#include "client/load/load.h"

namespace perceptrond::client {
namespace {

// One attempt, as long as patience lasts.
ClientOptions AttemptOptions(const LoadOptions& load) {
  ClientOptions options;
  options.timeout = load.patience;
  options.retry.give_up_after = absl::ZeroDuration();
  return options;
}

class CallLoad final : public Load {
 public:
  CallLoad(const Client& client, const LoadOptions& options, const SyntheticRowsOptions& rows)
      : Load(options, rows),
        client_(client.connection(), AttemptOptions(options)),
        retry_(Reconnecting(options.retry, client.connection())) {}

 private:
  absl::Status Send(uint64_t tag) override {
    BatchBuilder batch;
    for (size_t i = 0; i < options_.rows_per_message; ++i) {
      if (absl::Status status = batch.Add(rows_.Next()); !status.ok()) return status;
    }
    v1::ExampleColumns columns;
    batch.Build(&columns);
    const absl::Status status = CallWithRetry(retry_, true, [&] { return Attempt(columns); });
    if (IsTransient(status)) return WithGaveUpAfter(status, retry_.give_up_after);
    if (!status.ok()) return status;
    LoadTally tally;
    tally.messages = 1;
    tally.examples = options_.rows_per_message;
    Answered(tag, tally);
    return absl::OkStatus();
  }

  absl::Status Attempt(const v1::ExampleColumns& columns) {
    absl::Status status = client_.Predict(options_.model, columns).status();
    if (!IsTransient(status)) return status;
    Away();
    return stopped() ? absl::CancelledError("stopped while the server was away") : status;
  }

  const Client client_;
  const RetryPolicy retry_;
};

}  // namespace

std::unique_ptr<Load> MakeCallLoad(const Client& client, const LoadOptions& options,
                                   const SyntheticRowsOptions& rows) {
  return std::make_unique<CallLoad>(client, options, rows);
}

}  // namespace perceptrond::client
