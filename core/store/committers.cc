#include "core/store/committers.h"

#include <algorithm>
#include <utility>

namespace perceptrond {

Committers::Committers(Journal& journal, const Committer::Options& options,
                       const std::function<void(Model&, const absl::Status&)>& on_failure,
                       const std::function<void(const std::shared_ptr<Model>&)>& on_commit)
    : journal_(journal) {
  for (uint32_t i = 0; i < journal.partitions(); ++i)
    all_.push_back(std::make_unique<Committer>(journal, options, on_failure, on_commit));
}

void Committers::Submit(std::shared_ptr<Model> model, std::shared_ptr<CommitWaiter> waiter,
                        absl::Duration delay) {
  Committer& committer = Of(*model);
  committer.Submit(std::move(model), std::move(waiter), delay);
}

void Committers::Submit(std::shared_ptr<Model> model, Committer::Done done, bool whole) {
  Committer& committer = Of(*model);
  committer.Submit(std::move(model), std::move(done), whole);
}

uint64_t Committers::commits() const {
  uint64_t sum = 0;
  for (const auto& one : all_) sum += one->commits();
  return sum;
}

uint64_t Committers::failures() const {
  uint64_t sum = 0;
  for (const auto& one : all_) sum += one->failures();
  return sum;
}

absl::Duration Committers::busy() const {
  absl::Duration sum;
  for (const auto& one : all_) sum += one->busy();
  return sum;
}

absl::Duration Committers::oldest_wait() const {
  absl::Duration longest;
  for (const auto& one : all_) longest = std::max(longest, one->oldest_wait());
  return longest;
}

}  // namespace perceptrond
