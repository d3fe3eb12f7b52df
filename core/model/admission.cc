#include "core/model/admission.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/ledger/producers.h"
#include "core/model/model.h"

namespace perceptrond {
namespace {

absl::Status OffsetGap(int64_t expected, int64_t got) {
  return MakeError(
      absl::StatusCode::kOutOfRange, "OFFSET_GAP",
      absl::StrCat("first_offset is ", got, ", but the next example of this producer is ", expected,
                   "; send the examples between first"),
      {{"expected_offset", absl::StrCat(expected)}});
}

absl::Status PassGap(int64_t expected, int64_t got) {
  return MakeError(absl::StatusCode::kOutOfRange, "PASS_GAP",
                   absl::StrCat("completed_pass is ", got, ", but the next pass is ", expected),
                   {{"expected_pass", absl::StrCat(expected)}});
}

}  // namespace

absl::StatusOr<NewRows> Admit(const LearnCall& call, size_t rows, const ProducerPosition& position,
                              bool frozen, absl::string_view model) {
  if (call.first_offset.value_or(0) < 0)
    return InvalidField("INVALID_FIELD", "first_offset", "is below 0");
  if (call.completed_pass < 0) return InvalidField("INVALID_FIELD", "completed_pass", "is below 0");
  const int64_t first = call.first_offset.value_or(position.next_offset);
  const bool new_rows = first > position.next_offset - static_cast<int64_t>(rows);
  NewRows fresh;
  fresh.ends_new_pass = call.completed_pass > position.passes;
  if (frozen && (new_rows || fresh.ends_new_pass)) return ModelFrozen(model);
  if (first > position.next_offset) return OffsetGap(position.next_offset, first);
  if (call.completed_pass > position.passes + 1)
    return PassGap(position.passes + 1, call.completed_pass);
  if (call.completed_pass > 0 && !fresh.ends_new_pass && new_rows) {
    return InvalidField(
        "PASS_ENDED", "completed_pass",
        absl::StrCat("pass ", call.completed_pass,
                     " has ended and takes no more examples; the next is ", position.passes + 1));
  }
  fresh.first_new_row = static_cast<size_t>(
      std::min<int64_t>(position.next_offset - first, static_cast<int64_t>(rows)));
  return fresh;
}

std::vector<uint64_t> TakeLearned(std::span<const PredictionOfRow>& predictions, size_t end,
                                  std::span<const RowError> refused) {
  std::vector<uint64_t> learned;
  for (; !predictions.empty() && predictions.front().row < end;
       predictions = predictions.subspan(1)) {
    const size_t row = predictions.front().row;
    const auto error =
        std::lower_bound(refused.begin(), refused.end(), row,
                         [](const RowError& one, size_t at) { return one.row < at; });
    if (error == refused.end() || error->row != row) learned.push_back(predictions.front().number);
  }
  return learned;
}

}  // namespace perceptrond
