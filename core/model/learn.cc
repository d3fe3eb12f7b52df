// How a batch is learned: score under the shared lock until a row is a mistake; then, alone, judge
// that row again and apply it if it still is one. (The one idea: mistakes are the only writes.)
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "core/model/error.h"
#include "core/model/model.h"
#include "core/vector/kernels.h"

namespace perceptrond {
namespace {

constexpr float kNoScore = std::numeric_limits<float>::quiet_NaN();

absl::Status PassGap(int64_t expected, int64_t got) {
  return MakeError(absl::StatusCode::kOutOfRange, "PASS_GAP",
                   absl::StrCat("pass ", got, " leaves a gap: ", expected, " is the next"),
                   {{"expected_pass", absl::StrCat(expected)}});
}

absl::Status OffsetGap(int64_t expected, int64_t got) {
  return MakeError(absl::StatusCode::kOutOfRange, "OFFSET_GAP",
                   absl::StrCat("offset ", got, " leaves a gap: ", expected, " is the next"),
                   {{"expected_offset", absl::StrCat(expected)}});
}

absl::Status Malformed(const Finding& finding) {
  return InvalidField(FaultReason(finding.fault), absl::StrCat("columns.", finding.field),
                      finding.description);
}

}  // namespace

// The stretch of rows between two mistakes is one tally; the books take it in before the lock is
// let go, so that they never speak of another revision than the one that was judged on.
class Model::Learning {
 public:
  Learning(Model& model, const LearnCall& call, LearnOutcome& outcome)
      : model_(model),
        call_(call),
        outcome_(outcome),
        mapper_(model.settings_.space),
        rows_(call.batch.rows()),
        augmented_(model.settings_.learner.offset_value * model.settings_.learner.offset_value) {}

  absl::Status Run() {
    ReaderMutexLock gate(&model_.gate_);
    if (absl::Status status = CheckNotFrozen(); !status.ok()) return status;
    if (absl::Status status = Begin(); !status.ok()) return status;
    while (row_ < rows_) {
      if (absl::Status status = Score(); !status.ok()) return status;
      if (row_ == rows_) break;
      if (absl::Status status = Update(); !status.ok()) return status;
    }
    return End();
  }

 private:
  absl::Status Begin() {
    if (Finding finding = CheckColumns(call_.batch)) return Malformed(finding);
    if (rows_ > 0 && call_.batch.labels.empty()) {
      return Malformed({Fault::kMissingLabel, "labels", "every row to be learned needs a label"});
    }
    if (Finding finding = mapper_.Begin(call_.batch)) return Malformed(finding);
    const ProducerStanding standing = model_.ledger_.Standing(*call_.producer);
    if (call_.first_offset.value_or(0) < 0) {
      return InvalidField("INVALID_FIELD", "first_offset", "is below 0");
    }
    if (call_.end_of_pass < 0) return InvalidField("INVALID_FIELD", "end_of_pass", "is below 0");
    const int64_t first = call_.first_offset.value_or(standing.next_offset);
    if (first > standing.next_offset) return OffsetGap(standing.next_offset, first);
    if (call_.end_of_pass > standing.passes + 1)
      return PassGap(standing.passes + 1, call_.end_of_pass);
    if (call_.all_or_nothing) {
      if (absl::Status status = CheckEveryRow(); !status.ok()) return status;
    }
    SkipReplayed(static_cast<size_t>(
        std::min<int64_t>(standing.next_offset - first, static_cast<int64_t>(rows_))));
    if (call_.detail) {
      outcome_.scores.resize(rows_, kNoScore);
      outcome_.predicted.resize(rows_, 0);
    }
    return absl::OkStatus();
  }

  absl::Status CheckNotFrozen() const ABSL_SHARED_LOCKS_REQUIRED(model_.gate_) {
    if (!model_.frozen_) return absl::OkStatus();
    return MakeError(
        absl::StatusCode::kFailedPrecondition, "MODEL_FROZEN",
        absl::StrCat("model \"", model_.name_, "\" is frozen; unfreeze it to let it learn"),
        {{"model", model_.name_}});
  }

  absl::Status CheckEveryRow() {
    for (row_ = 0; row_ < rows_; ++row_) {
      const Fault fault = CheckCurrent();
      if (fault == Fault::kNone) continue;
      outcome_.refused.push_back({static_cast<uint32_t>(row_), Describe(fault)});
      return absl::InvalidArgumentError("a row is bad");
    }
    row_ = 0;
    next_refused_ = 0;
    return absl::OkStatus();
  }

  void SkipReplayed(size_t rows) {
    row_ = rows;
    while (next_refused_ < call_.refused.size() && call_.refused[next_refused_].row < rows)
      ++next_refused_;
    outcome_.duplicates = rows;
    tally_.duplicates = rows;
  }

  // The row at row_: its fault, and if it has none its squared norm.
  Fault CheckCurrent() {
    if (next_refused_ < call_.refused.size() && call_.refused[next_refused_].row == row_) {
      return call_.refused[next_refused_++].finding.fault;
    }
    const Fault fault = CheckRow(call_.batch.row(row_), mapper_.index_limit(),
                                 model_.limits_.max_example_features, &squared_norm_);
    if (fault != Fault::kNone) return fault;
    const int32_t label = call_.batch.labels[row_];
    return label == 1 || label == -1 ? Fault::kNone : Fault::kUnknownLabel;
  }

  Finding Describe(Fault fault) const {
    if (next_refused_ > 0 && call_.refused[next_refused_ - 1].row == row_)
      return call_.refused[next_refused_ - 1].finding;
    if (fault == Fault::kUnknownLabel) {
      return {fault, "label", absl::StrCat(call_.batch.labels[row_], " is neither -1 nor +1")};
    }
    return DescribeRow(call_.batch.row(row_), mapper_.index_limit(),
                       model_.limits_.max_example_features, fault);
  }

  void Refuse(Finding finding) {
    tally_.Rejected(finding.fault);
    outcome_.refused.push_back({static_cast<uint32_t>(row_), std::move(finding)});
    ++pending_;
    ++row_;
  }

  void Resolve() ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (!resolved_ || mapper_.resolved_size() != model_.dictionary_.size())
      mapper_.Resolve(model_.dictionary_);
    resolved_ = true;
  }

  // The row at row_ in the model's space. Names that share a slot may add up to another norm, or to
  // no number.
  Row MapCurrent() {
    const Row row = mapper_.Map(row_);
    const bool hashed = model_.settings_.space.kind == FeatureSpace::Kind::kHashed;
    if (hashed && !call_.batch.names.empty()) squared_norm_ = SquaredNorm(row);
    return row;
  }

  void Judged(const Judgement& judgement, int32_t label) {
    tally_.Judged(judgement, label, squared_norm_ + augmented_);
    if (call_.detail) {
      outcome_.scores[row_] = Saturate(judgement.score);
      outcome_.predicted[row_] = judgement.predicted;
    }
    ++pending_;
    ++row_;
  }

  // Under the shared lock: passes correct and refused rows, stops at a mistake.
  absl::Status Score() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    ReaderMutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Resolve();
    while (row_ < rows_) {
      if (const Fault fault = CheckCurrent(); fault != Fault::kNone) {
        Refuse(Describe(fault));
        continue;
      }
      const Row row = MapCurrent();
      if (!std::isfinite(squared_norm_)) {
        Refuse({Fault::kNonFiniteValue, "values",
                "names that share a slot add up to no finite number"});
        continue;
      }
      const int32_t label = call_.batch.labels[row_];
      const Judgement judgement = model_.learner_->Judge(row, label);
      if (judgement.mistake) break;
      Judged(judgement, label);
    }
    Flush();
    return absl::OkStatus();
  }

  // Alone: the row at row_ was a mistake a moment ago. Judges it again and applies it if it still
  // is one.
  absl::Status Update() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    MutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Resolve();
    const int32_t label = call_.batch.labels[row_];
    Row row = MapCurrent();
    const Judgement judgement = model_.learner_->Judge(row, label);
    std::vector<absl::string_view> new_names;
    if (judgement.mistake) {
      if (Finding finding = Prepare(row, label, judgement, new_names)) {
        Refuse(std::move(finding));
        Flush();
        return absl::OkStatus();
      }
      model_.learner_->Update(row, label, judgement);
    }
    Judged(judgement, label);
    if (!judgement.mistake) {
      Flush();
      return absl::OkStatus();
    }
    ++tally_.updates;
    ++model_.revision_;
    outcome_.updated_rows.push_back(static_cast<uint32_t>(row_ - 1));
    outcome_.update_revisions.push_back(model_.revision_);
    Count();
    model_.ledger_.AddUpdate(
        tally_, *call_.producer, pending_,
        {model_.revision_, row, label, new_names, model_.learner_->augmented_squared_norm()});
    StartStretch();
    return absl::OkStatus();
  }

  // Makes sure that the row can be learned, gives its unknown names weights, and maps it again.
  Finding Prepare(Row& row, int32_t label, const Judgement& judgement,
                  std::vector<absl::string_view>& new_names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_.mutex_) {
    if (!model_.learner_->CanUpdate(row, label, judgement)) {
      return {Fault::kWeightOverflow, "values",
              "learning this example would take a weight out of float32's range"};
    }
    if (model_.settings_.space.kind != FeatureSpace::Kind::kNamed) return {};
    mapper_.UnknownNames(row_, new_names);
    if (new_names.empty()) return {};
    Dictionary& dictionary = model_.dictionary_;
    if (dictionary.size() + new_names.size() > model_.settings_.space.size) {
      return {Fault::kFeatureCap, "named.names",
              absl::StrCat("the model holds ", dictionary.size(), " of at most ",
                           model_.settings_.space.size, " names, and this example needs ",
                           new_names.size(), " new ones")};
    }
    for (const absl::string_view name : new_names) dictionary.Add(name);
    model_.learner_->Grow(dictionary.size() + 1);
    mapper_.Resolve(dictionary);
    row = mapper_.Map(row_);
    return {};
  }

  // Ends a stretch without an update. The lock it was judged under is still held.
  void Flush() ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (pending_ == 0 && tally_.duplicates == 0) return;
    Count();
    model_.ledger_.Add(tally_, *call_.producer, pending_, model_.revision_);
    StartStretch();
  }

  void Count() {
    outcome_.examples += tally_.examples;
    outcome_.mistakes += tally_.mistakes;
  }

  void StartStretch() {
    tally_ = Tally();
    pending_ = 0;
  }

  absl::Status End() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    ReaderMutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Flush();
    outcome_.revision = model_.revision_;
    if (call_.end_of_pass > 0) {
      outcome_.pass = model_.ledger_.EndPass(
          *call_.producer, call_.end_of_pass, model_.revision_,
          std::sqrt(std::max(0.0, model_.learner_->augmented_squared_norm())));
    }
    outcome_.next_offset = model_.ledger_.Standing(*call_.producer).next_offset;
    return absl::OkStatus();
  }

  Model& model_;
  const LearnCall& call_;
  LearnOutcome& outcome_;
  Mapper mapper_;
  const size_t rows_;
  // b^2.
  const double augmented_;
  bool resolved_ = false;
  // The next row, and the next of the rows found bad beforehand.
  size_t row_ = 0;
  size_t next_refused_ = 0;
  double squared_norm_ = 0;
  // The stretch: its tally, and how many rows it has, refused ones among them.
  Tally tally_;
  int64_t pending_ = 0;
};

void LearnOutcome::Clear() {
  examples = mistakes = duplicates = revision = 0;
  next_offset = 0;
  scores.clear();
  predicted.clear();
  updated_rows.clear();
  update_revisions.clear();
  refused.clear();
  pass.reset();
}

absl::Status Model::Learn(const LearnCall& call, LearnOutcome& outcome) {
  outcome.Clear();
  return Learning(*this, call, outcome).Run();
}

}  // namespace perceptrond
