#include "client/learn_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "client/learn_stream_core.h"
#include "client/names.h"

namespace perceptrond::client {

absl::StatusOr<std::unique_ptr<LearnStream>> LearnStream::Open(
    std::shared_ptr<Connection> connection, std::string_view model, Options options) {
  if (options.rows_per_message < 1 || options.rows_per_message > 65'536) {
    return absl::InvalidArgumentError(
        absl::StrCat("rows_per_message is ", options.rows_per_message, "; it must be 1 to 65,536"));
  }
  if (options.window_messages < 1) {
    return absl::InvalidArgumentError("window_messages is 0; it must be at least 1");
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

absl::Status LearnStream::Push(const Row& row, uint64_t tag) { return core_->Push(row, tag); }
absl::Status LearnStream::Flush() { return core_->Flush(); }
absl::StatusOr<perceptron::v1::PassSummary> LearnStream::MarkPass() { return core_->MarkPass(); }
absl::StatusOr<LearnTotals> LearnStream::Finish() { return core_->Finish(); }
void LearnStream::Cancel() { core_->Cancel(); }
absl::Status LearnStream::status() const { return core_->status(); }
LearnTotals LearnStream::totals() const { return core_->totals(); }
std::optional<perceptron::v1::ConvergenceReport> LearnStream::report() const {
  return core_->report();
}
const perceptron::v1::StreamOpened& LearnStream::opened() const { return core_->opened(); }
const std::string& LearnStream::producer_id() const { return core_->producer_id(); }

}  // namespace perceptrond::client
