#include "client/stream_models.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/error.h"

namespace perceptrond::client {

void StreamModels::OneModel::ClaimRevision(int64_t revision) {
  claim.set_acknowledged_revision(std::max(claim.acknowledged_revision(), revision));
}

perceptron::v1::Producer::Resume StreamModels::OneModel::Claim() const {
  perceptron::v1::Producer::Resume resume;
  if (totals.acknowledged_offset < 0) return resume;
  resume = claim;
  resume.set_acknowledged_offset(totals.acknowledged_offset);
  return resume;
}

void StreamModels::SetFirst(perceptron::v1::LearnStreamRequest& first) const {
  first.set_model(names_.front());
  for (size_t i = 1; i < size(); ++i) first.add_additional_models(names_[i]);
  if (!numbered()) return;
  perceptron::v1::Producer& producer = *first.mutable_producer();
  producer.set_id(producer_id_);
  perceptron::v1::Producer::Resume claim = models_.front().Claim();
  // A model's uid is known once a connection was opened.
  if (claim.model_uid().empty() && size() == 1) return;
  if (!claim.model_uid().empty()) *producer.mutable_resume() = std::move(claim);
  for (size_t i = 1; i < size(); ++i) *producer.add_additional_resumes() = models_[i].Claim();
}

absl::StatusOr<StreamModels::Opened> StreamModels::ReadOpened(
    const perceptron::v1::LearnStreamResponse& response, size_t models) {
  Opened opened = {response.opened()};
  opened.insert(opened.end(), response.additional_opened().begin(),
                response.additional_opened().end());
  if (opened.size() == models) return opened;
  return MakeError(absl::StatusCode::kUnimplemented, "UNSUPPORTED_FIELD",
                   absl::StrCat("the server opened ", opened.size(), " of ", models,
                                " models: use a newer server, or a stream for each model"));
}

int64_t StreamModels::LeastOffset(const Opened& opened) {
  int64_t least = opened.front().next_offset();
  for (const perceptron::v1::StreamOpened& one : opened) least = std::min(least, one.next_offset());
  return least;
}

absl::StatusOr<StreamModels::Start> StreamModels::Begin(const Opened& opened,
                                                        const LearnOptions& options) const {
  const perceptron::v1::StreamOpened& first = opened.front();
  for (size_t i = 1; i < size() && numbered() && !options.start_offset.has_value(); ++i) {
    if (opened[i].next_offset() == first.next_offset() && opened[i].passes() == first.passes())
      continue;
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "POSITIONS_DIFFER",
        absl::StrCat(names_.front(), " has learned ", first.next_offset(), " examples and ",
                     first.passes(), " passes of producer \"", producer_id_, "\", and ", names_[i],
                     " ", opened[i].next_offset(), " and ", opened[i].passes(),
                     ": state the offset of the first example, or use another producer"));
  }
  const int64_t least = LeastOffset(opened);
  Start start;
  start.next_offset = options.start_offset.value_or(least);
  if (numbered() && start.next_offset > least) {
    return MakeError(absl::StatusCode::kOutOfRange, "OFFSET_GAP",
                     absl::StrCat("the first example would have offset ", start.next_offset,
                                  ", but the server expects ", least, " next from producer \"",
                                  producer_id_, "\""));
  }
  const bool from_start = options.start_offset.has_value() && *options.start_offset == 0;
  start.passes = options.passes_before.value_or(from_start ? 0 : first.passes());
  return start;
}

absl::Status StreamModels::CheckSame(const Opened& first, const Opened& opened) const {
  for (size_t i = 0; i < size(); ++i) {
    if (opened[i].model_uid() != first[i].model_uid()) {
      return MakeError(absl::StatusCode::kAborted, "MODEL_REPLACED",
                       absl::StrCat(names_[i],
                                    " was deleted and created again while examples were "
                                    "being sent to it"));
    }
    const int64_t acknowledged = models_[i].totals.acknowledged_offset;
    if (numbered() && opened[i].next_offset() <= acknowledged) {
      return MakeError(absl::StatusCode::kDataLoss, "POSITION_LOST",
                       absl::StrCat("the server acknowledged examples through ", acknowledged,
                                    " but now expects ", opened[i].next_offset()));
    }
  }
  return absl::OkStatus();
}

void StreamModels::OnOpened(const Opened& opened) {
  for (size_t i = 0; i < size(); ++i) {
    OneModel& one = models_[i];
    if (numbered()) {
      one.totals.acknowledged_offset =
          std::max(one.totals.acknowledged_offset, opened[i].next_offset() - 1);
    }
    one.totals.revision = std::max(one.totals.revision, opened[i].revision());
    one.claim.set_model_uid(opened[i].model_uid());
    // Later connections stay on the model of an alias.
    if (!opened[i].model().empty()) names_[i] = opened[i].model();
    one.claim.set_history_id(opened[i].history_id());
    one.ClaimRevision(opened[i].revision());
  }
}

void StreamModels::AddResult(size_t model, const perceptron::v1::LearnResult& result) {
  OneModel& one = models_[model];
  LearnTotals& totals = one.totals;
  totals.examples += result.examples();
  totals.mistakes += result.mistakes();
  totals.updates += result.updates();
  totals.duplicates += result.duplicates();
  totals.row_errors += static_cast<uint64_t>(result.row_errors_size());
  totals.revision = result.revision();
  one.ClaimRevision(result.revision());
  if (numbered())
    totals.acknowledged_offset = std::max(totals.acknowledged_offset, result.acknowledged_offset());
  if (result.has_completed_pass()) one.last_pass = result.completed_pass();
}

void StreamModels::SetReports(perceptron::v1::LearnStreamResponse& response) {
  if (!response.has_report()) return;
  models_.front().report = std::move(*response.mutable_report());
  const size_t others = std::min<size_t>(size() - 1, response.additional_reports_size());
  for (size_t i = 0; i < others; ++i)
    models_[i + 1].report = std::move(*response.mutable_additional_reports(static_cast<int>(i)));
}

void StreamModels::OnMarked(int64_t pass) {
  for (OneModel& one : models_) {
    if (one.last_pass.number() == pass) continue;
    one.last_pass.Clear();
    one.last_pass.set_number(pass);
  }
}

}  // namespace perceptrond::client
