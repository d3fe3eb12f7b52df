// Model's part in what is retained, and in weights that come from it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/learner/catalogue.h"
#include "core/model/error.h"
#include "core/model/model.h"
#include "core/model/retention_codec.h"
#include "core/vector/kernels.h"

namespace perceptrond {

Model::RetainedView Model::MakeRetainedView() const {
  const std::optional<StateFingerprint> components = FingerprintComponents(/*load=*/true);
  ReaderMutexLock lock(&mutex_);
  // Before the copy: what comes between makes that incomplete by itself.
  const bool stand =
      settings_.components.empty() || ledger_.examples() == 0 || ledger_.components() == components;
  RetainedView view{ledger_.retention().Copy(), revision_};
  view.examples.complete = view.examples.complete && stand;
  return view;
}

std::vector<std::string> Model::FeatureNames(std::span<const uint32_t> numbers) const {
  std::vector<std::string> names;
  names.reserve(numbers.size());
  ReaderMutexLock lock(&mutex_);
  for (const uint32_t number : numbers) names.push_back(dictionary_.Name(number));
  return names;
}

Model::FeatureNumbers Model::FindFeatures(std::span<const absl::string_view> names) const {
  FeatureNumbers found;
  found.numbers.reserve(names.size());
  ReaderMutexLock lock(&mutex_);
  for (const absl::string_view name : names) found.numbers.push_back(dictionary_.Find(name));
  found.next = dictionary_.size() + 1;
  return found;
}

absl::Status Model::RestoreRetained(const storage::Retained& retained) {
  const RetainedShape shape{learner_->size(), has_names()};
  absl::StatusOr<RetainedExamples> examples = FromStorage(retained, shape, dictionary_);
  if (!examples.ok()) return Contradiction(examples.status().message());
  const bool labels = std::all_of(retained.rows().begin(), retained.rows().end(),
                                  [this](const auto& row) ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
                                    return TakesLabel(row.label());
                                  });
  if (!labels) return Contradiction("a retained example's label is none of the model's");
  ledger_.retention().Restore(*std::move(examples));
  return absl::OkStatus();
}

void Model::RetainReplayed(const RetainedUpdate& update) {
  Retention& retention = ledger_.retention();
  std::vector<absl::string_view> unknown;
  Retention::Sampled candidate;
  if (retention.samples() &&
      retention.IsCandidate(update.row->Seen(unknown), dictionary_, candidate))
    retention.Add({&candidate, 1}, dictionary_);
  if (retention.keeps_updates()) retention.AddUpdate(update);
}

absl::Status Model::ReplayWeightReplacement(const storage::UpdateRecord& record,
                                            const Batch& batch) {
  if (batch.rows() != 1 || batch.dense_width > 0 || batch.labels[0] != 0 ||
      learner_->replaceable_weights() == nullptr)
    return Contradiction("weights were adopted that are none");
  const Row row = batch.row(0);
  for (size_t j = 0; j < row.size; ++j) {
    if (row.index(j) >= learner_->size() || (has_names() && row.index(j) == 0))
      return Contradiction("an adopted weight lies outside the model");
  }
  const bool counts = FindLearner(settings_.learner).counts_examples;
  learner_->replaceable_weights()->ReplaceWeights(row, record.adopted_offset_weight(),
                                                  counts ? record.ages(0) : 0);
  ++revision_;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint32_t>> Model::NumberWeights(const NewWeights& weights,
                                                           std::vector<absl::string_view>& added) {
  std::vector<uint32_t> numbers = weights.indices;
  for (const uint32_t index : weights.indices) {
    if (index < weights.first_new) continue;
    const std::string& name = weights.new_names[index - weights.first_new];
    if (dictionary_.Find(name) == Dictionary::kUnknown) added.push_back(name);
  }
  if (dictionary_.size() + added.size() > weight_space_.size && has_names()) {
    return WithRetry(
        MakeError(absl::StatusCode::kResourceExhausted, "FEATURE_CAP",
                  absl::StrCat("the model holds ", dictionary_.size(), " of at most ",
                               weight_space_.size, " names, and the separator needs ", added.size(),
                               " new ones; it forgets none, so waiting does not "
                               "help: create a model with a larger max_features")),
        absl::Hours(24));
  }
  for (const absl::string_view name : added) dictionary_.Add(name);
  for (uint32_t& number : numbers) {
    if (number >= weights.first_new)
      number = dictionary_.Find(weights.new_names[number - weights.first_new]);
  }
  return numbers;
}

absl::StatusOr<uint64_t> Model::ReplaceWeights(const NewWeights& weights,
                                               std::optional<uint64_t> if_revision) {
  ReaderMutexLock gate(&gate_);
  if (frozen_) return ModelFrozen(name_);
  MutexLock lock(&mutex_);
  if (!closed_.ok()) return closed_;
  if (learner_->replaceable_weights() == nullptr) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "NOT_ADOPTABLE",
                     absl::StrCat("the learner ", FindLearner(settings_.learner).name,
                                  " keeps no weights that others could take the place of"),
                     {{"model", name_}});
  }
  if (if_revision.has_value() && *if_revision != revision_) {
    return MakeError(absl::StatusCode::kAborted, "REVISION_MISMATCH",
                     absl::StrCat("the model stands at revision ", revision_, ", not at ",
                                  *if_revision, ": it has learned since; analyze it again"),
                     {{"revision", absl::StrCat(revision_)}});
  }
  std::vector<absl::string_view> added;
  absl::StatusOr<std::vector<uint32_t>> numbers = NumberWeights(weights, added);
  if (!numbers.ok()) return numbers.status();
  if (!added.empty()) learner_->Grow(dictionary_.size() + 1);
  const Row row{numbers->empty() ? kNoIndices : numbers->data(), weights.values.data(),
                numbers->size()};
  const bool counts = FindLearner(settings_.learner).counts_examples;
  const uint64_t age = ledger_.examples();
  learner_->replaceable_weights()->ReplaceWeights(row, weights.offset_weight, age);
  ++revision_;
  Ledger::Update update;
  update.revision = revision_;
  update.row = row;
  if (counts) update.age = age;
  update.new_names = added;
  update.squared_norm = learner_->augmented_squared_norm();
  ledger_.AddWeightReplacement(update, weights.offset_weight);
  return revision_;
}

}  // namespace perceptrond
