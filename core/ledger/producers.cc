#include "core/ledger/producers.h"

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"
#include "core/sync/current_call.h"

namespace perceptrond {
namespace {

// Approximate: the producer, its name here and as a key, and its entry.
size_t MemoryOf(const Producer& producer) {
  using Entry = std::pair<std::string, std::shared_ptr<Producer>>;
  return sizeof(Producer) + 2 * sizeof(Entry) + 2 * producer.id.size();
}

absl::Status TooManyProducers(size_t producers) {
  return WithRetry(
      MakeError(absl::StatusCode::kResourceExhausted, "PRODUCER_LIMIT",
                absl::StrCat("the model has ", producers,
                             " producers, the most it can have; it keeps every position, so that "
                             "nothing is learned twice, and waiting does not help. Reuse the id of "
                             "a producer that has finished and continue at its position, send "
                             "without a producer, create a new model, or raise the server's "
                             "--max-producers")),
      absl::Hours(24));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Producer>> ProducerTable::Find(absl::string_view id) {
  if (const auto found = producers_.find(id); found != producers_.end())
    return GiveToCaller(found->second);
  if (const auto found = new_.find(id); found != new_.end()) {
    if (std::shared_ptr<Producer> producer = found->second.lock())
      return GiveToCaller(std::move(producer));
  }
  if (producers_.size() + new_.size() >= max_producers_)
    absl::erase_if(new_, [](const auto& entry) { return entry.second.expired(); });
  if (producers_.size() + new_.size() >= max_producers_) return TooManyProducers(max_producers_);
  auto producer = std::make_shared<Producer>(std::string(id));
  new_[id] = producer;
  return GiveToCaller(std::move(producer));
}

absl::StatusOr<std::shared_ptr<Producer>> ProducerTable::GiveToCaller(
    std::shared_ptr<Producer> producer) {
  if (absl::Status status = CheckOwner("producer id", producer->owner_); !status.ok())
    return status;
  if (producer->owner_.empty()) producer->owner_ = CurrentPrincipal();
  return producer;
}

void ProducerTable::Restore(const ::perceptron::storage::v1::ProducerPosition& stored) {
  const auto found = producers_.find(stored.id());
  const bool is_new = found == producers_.end();
  auto producer = is_new ? std::make_shared<Producer>(stored.id()) : found->second;
  producer->owner_ = stored.owner();
  producer->position_.next_offset = stored.next_offset();
  producer->position_.passes = stored.passes();
  producer->pass_ = PassProgress(stored.pass());
  if (stored.has_last_pass()) producer->position_.last_pass = stored.last_pass();
  if (is_new) Add(std::move(producer));
}

void ProducerTable::Add(std::shared_ptr<Producer> producer) {
  bytes_ += MemoryOf(*producer) + producer->owner_.size();
  producers_.emplace(producer->id, producer);
}

ProducerTable::Mutable ProducerTable::Move(Producer& producer) {
  if (!producer.id.empty() && !producer.moved_) {
    if (const auto found = new_.find(producer.id); found != new_.end()) {
      Add(found->second.lock());  // the caller holds it
      new_.erase(found);
    }
    producer.moved_ = true;
    moved_.push_back(producers_.at(producer.id));
  }
  return {producer.position_, producer.pass_};
}

::perceptron::storage::v1::ProducerPosition ProducerTable::Store(const Producer& producer) {
  ::perceptron::storage::v1::ProducerPosition stored;
  stored.set_id(producer.id);
  stored.set_owner(producer.owner_);
  stored.set_next_offset(producer.position_.next_offset);
  stored.set_passes(producer.position_.passes);
  if (!producer.pass_.IsEmpty()) *stored.mutable_pass() = producer.pass_.stored();
  if (producer.position_.last_pass.has_value())
    *stored.mutable_last_pass() = *producer.position_.last_pass;
  return stored;
}

std::vector<::perceptron::storage::v1::ProducerPosition> ProducerTable::TakeMoved() {
  std::vector<::perceptron::storage::v1::ProducerPosition> positions;
  positions.reserve(moved_.size());
  for (const std::shared_ptr<Producer>& producer : moved_) {
    producer->moved_ = false;
    positions.push_back(Store(*producer));
  }
  moved_.clear();
  return positions;
}

std::vector<::perceptron::storage::v1::ProducerPosition> ProducerTable::CopyAll() const {
  std::vector<::perceptron::storage::v1::ProducerPosition> positions;
  positions.reserve(producers_.size());
  for (const auto& [id, producer] : producers_) positions.push_back(Store(*producer));
  return positions;
}

}  // namespace perceptrond
