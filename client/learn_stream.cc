#include "client/learn_stream.h"

#include <utility>

#include "client/learn_stream_core.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

std::shared_ptr<Outgoing> TakeBatch(LearnStreamCore* core) {
  auto message = std::make_shared<Outgoing>();
  if (core->batch.empty()) return message;
  message->bytes = core->batch.bytes();
  core->batch.Build(message->request.mutable_columns());
  message->tags = std::move(core->batch_tags);
  core->batch_tags.clear();
  core->batch_tags.reserve(message->tags.size());
  return message;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LearnStream>> LearnStream::Open(
    std::shared_ptr<Connection> connection, std::string_view model, Options options) {
  if (options.rows_per_message < 1 || options.rows_per_message > 65'536) {
    return absl::InvalidArgumentError("rows_per_message must be 1 to 65,536");
  }
  if (options.window_messages < 1) {
    return absl::InvalidArgumentError("window_messages must be at least 1");
  }
  if (options.start_offset.value_or(0) < 0 || options.passes_before.value_or(0) < 0) {
    return absl::InvalidArgumentError("start_offset and passes_before must not be negative");
  }
  auto core = std::make_unique<LearnStreamCore>(std::move(connection), ModelName(model),
                                                std::move(options));
  if (absl::Status status = core->Open(); !status.ok()) return status;
  return std::unique_ptr<LearnStream>(new LearnStream(std::move(core)));
}

LearnStream::LearnStream(std::unique_ptr<LearnStreamCore> core) : core_(std::move(core)) {}
LearnStream::~LearnStream() = default;

absl::Status LearnStream::Push(const Row& row, uint64_t tag) {
  if (!core_->batch.Fits(row)) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  if (absl::Status status = core_->batch.Add(row); !status.ok()) return status;
  core_->batch_tags.push_back(tag);
  if (core_->batch.rows() >= core_->options().rows_per_message ||
      core_->batch.bytes() >= core_->options().bytes_per_message) {
    return Flush();
  }
  return absl::OkStatus();
}

absl::Status LearnStream::Flush() {
  if (core_->batch.empty()) return core_->status();
  return core_->Send(TakeBatch(core_.get()));
}

absl::StatusOr<perceptron::v1::PassSummary> LearnStream::MarkPass() {
  return core_->SendMark(TakeBatch(core_.get()));
}

absl::StatusOr<LearnTotals> LearnStream::Finish() {
  if (!core_->batch.empty()) {
    if (absl::Status status = Flush(); !status.ok()) return status;
  }
  if (absl::Status status = core_->FinishAndWait(); !status.ok()) return status;
  return core_->totals();
}

void LearnStream::Cancel() { core_->Cancel(); }
absl::Status LearnStream::status() const { return core_->status(); }
LearnTotals LearnStream::totals() const { return core_->totals(); }
std::optional<perceptron::v1::ConvergenceReport> LearnStream::report() const {
  return core_->report();
}
const perceptron::v1::StreamOpened& LearnStream::opened() const { return core_->opened(); }
const std::string& LearnStream::producer_id() const { return core_->producer_id(); }

}  // namespace perceptrond::client
