// How a batch is learned: score under the shared lock until a row calls for an update; then, alone,
// judge that row again and apply it if it still does. (The one idea: mistakes are the only writes.)
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/convergence/update_proof.h"
#include "core/learner/catalogue.h"
#include "core/learner/kernel.h"
#include "core/model/error.h"
#include "core/model/evaluated_rows.h"
#include "core/model/label_reader.h"
#include "core/model/malformed.h"
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

}  // namespace

// The stretch of rows between two updates is one tally; the books take it in before the lock is
// let go, so that they never speak of another revision than the one that was judged on.
class Model::Learning {
 public:
  Learning(Model& model, const LearnCall& call, LearnOutcome& outcome)
      : model_(model),
        call_(call),
        outcome_(outcome),
        mapper_(model.settings_.space, model.expansion_, model.limits_.max_example_features),
        labels_(model.settings_, call.batch),
        evaluated_(call.batch, model.limits_.max_example_features),
        is_multiclass_(model.settings_.is_multiclass()),
        rows_(call.batch.rows()),
        augmented_(model.settings_.learner.bias_input * model.settings_.learner.bias_input),
        rule_(FindLearner(model.settings_.learner)),
        kernel_(model.settings_.learner),
        counts_examples_(rule_.counts_examples),
        batches_((rule_.options & kTakesMiniBatch) != 0) {
    StartStretch();
  }

  absl::Status Run() {
    ReaderMutexLock gate(&model_.gate_);
    if (absl::Status status = Begin(); !status.ok()) return status;
    while (row_ < rows_) {
      if (absl::Status status = Score(); !status.ok()) return status;
      if (row_ < rows_ && !batch_full_) {
        if (absl::Status status = Update(); !status.ok()) return status;
      }
      if (!batch_full_) continue;
      if (absl::Status status = EndBatch(/*whole_pass=*/false); !status.ok()) return status;
    }
    return End();
  }

 private:
  static constexpr size_t kLeastAhead = 4;
  static constexpr size_t kMostAhead = 64;
  // As if so many rows had called for no update before the first.
  static constexpr size_t kQuietBefore = 32;

  absl::Status Begin() ABSL_SHARED_LOCKS_REQUIRED(model_.gate_) {
    if (ValidationError error = CheckColumns(call_.batch)) return Malformed(error);
    if (rows_ > 0 && call_.batch.labels.empty()) {
      return Malformed(
          {ValidationCode::kMissingLabel, "labels", "every row to be learned needs a label"});
    }
    if (ValidationError error = mapper_.Begin(call_.batch)) return Malformed(error);
    ahead_ = mapper_.PassesThrough() && !is_multiclass_ && call_.batch.label_names.empty();
    only_counted_ = ahead_ && call_.batch.weights.empty() && rule_.form != Form::kKernel &&
                    !batches_ && !model_.ledger_.retention().samples();
    const ProducerPosition standing = model_.ledger_.Standing(*call_.producer);
    if (call_.first_offset.value_or(0) < 0) {
      return InvalidField("INVALID_FIELD", "first_offset", "is below 0");
    }
    if (call_.end_of_pass < 0) return InvalidField("INVALID_FIELD", "end_of_pass", "is below 0");
    const int64_t first = call_.first_offset.value_or(standing.next_offset);
    const bool new_rows = first > standing.next_offset - static_cast<int64_t>(rows_);
    new_pass_ = call_.end_of_pass > standing.passes;
    if (new_rows || new_pass_) {
      if (absl::Status status = CheckNotFrozen(); !status.ok()) return status;
    }
    if (first > standing.next_offset) return OffsetGap(standing.next_offset, first);
    if (call_.end_of_pass > standing.passes + 1)
      return PassGap(standing.passes + 1, call_.end_of_pass);
    if (call_.end_of_pass > 0 && call_.end_of_pass <= standing.passes && new_rows) {
      return InvalidField("PASS_ENDED", "end_of_pass",
                          absl::StrCat("pass ", call_.end_of_pass,
                                       " has ended, and these examples were not part of it; ",
                                       standing.passes + 1, " is the next"));
    }
    SkipReplayed(static_cast<size_t>(
        std::min<int64_t>(standing.next_offset - first, static_cast<int64_t>(rows_))));
    ResolveLabels();
    if (call_.all_or_nothing) {
      if (absl::Status status = CheckEveryRow(); !status.ok()) return status;
    }
    if (call_.detail) {
      outcome_.scores.resize(rows_, kNoScore);
      outcome_.predicted.resize(rows_, is_multiclass_ ? -1 : 0);
    }
    return absl::OkStatus();
  }

  absl::Status CheckNotFrozen() const ABSL_SHARED_LOCKS_REQUIRED(model_.gate_) {
    if (!model_.frozen_) return absl::OkStatus();
    return ModelFrozen(model_.name_);
  }

  // Refuses the batch for the first new row that is bad in itself.
  absl::Status CheckEveryRow() {
    const size_t first_new = row_;
    const size_t first_refused = next_refused_;
    for (; row_ < rows_; ++row_) {
      const ValidationCode code = CheckCurrent();
      if (code == ValidationCode::kNone) continue;
      outcome_.row_errors.push_back({static_cast<uint32_t>(row_), Describe(code)});
      return absl::InvalidArgumentError("a row is bad");
    }
    row_ = first_new;
    next_refused_ = first_refused;
    return absl::OkStatus();
  }

  void SkipReplayed(size_t rows) {
    row_ = rows;
    while (next_refused_ < call_.row_errors.size() && call_.row_errors[next_refused_].row < rows)
      ++next_refused_;
    outcome_.duplicates = rows;
    tally_.duplicates = rows;
  }

  // The row at row_: its fault, and if it has none its squared norm in the model's space.
  ValidationCode CheckCurrent() {
    if (next_refused_ < call_.row_errors.size() && call_.row_errors[next_refused_].row == row_) {
      return call_.row_errors[next_refused_++].error.code;
    }
    const ValidationCode code = mapper_.Check(row_, &squared_norm_);
    if (code != ValidationCode::kNone) return code;
    if (labels_.Check(row_) != ValidationCode::kNone) return ValidationCode::kUnknownLabel;
    return IsWeight(call_.batch.weight(row_)) ? ValidationCode::kNone : ValidationCode::kBadWeight;
  }

  // The same, and if the row has no fault what the learner thinks of it. Rows that stand in the
  // weights' space are judged some at a time: for as long as no update comes between.
  ValidationCode CheckAndEvaluate(Evaluation& evaluation)
      ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (!ahead_ || MayBeRefused()) {
      const ValidationCode code = CheckCurrent();
      if (code == ValidationCode::kNone)
        evaluation = model_.learner_->Evaluate(mapper_.Map(row_), labels_.Label(row_));
      return code;
    }
    if (!evaluated_.Has(row_)) EvaluateAhead();
    const EvaluatedRow& evaluated = evaluated_[row_];
    squared_norm_ = evaluated.squared_norm;
    evaluation = evaluated.evaluation;
    return evaluated.code;
  }

  void EvaluateAhead() ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    // What an update makes stale was judged in vain: far ahead only where updates are rare.
    const size_t quiet = row_ - quiet_since_ + (updated_ ? 0 : kQuietBefore);
    evaluated_.Evaluate(*model_.learner_, row_, std::clamp(quiet / 2, kLeastAhead, kMostAhead));
  }

  // For what stands beside the features.
  bool MayBeRefused() const {
    if (next_refused_ < call_.row_errors.size() && call_.row_errors[next_refused_].row == row_)
      return true;
    return labels_.Check(row_) != ValidationCode::kNone || !IsWeight(call_.batch.weight(row_));
  }

  static bool IsWeight(float weight) { return weight > 0 && std::isfinite(weight); }

  ValidationError Describe(ValidationCode code) {
    if (next_refused_ > 0 && call_.row_errors[next_refused_ - 1].row == row_)
      return call_.row_errors[next_refused_ - 1].error;
    if (code == ValidationCode::kUnknownLabel) return labels_.Describe(row_);
    if (code == ValidationCode::kBadWeight) {
      return {code, "weights",
              absl::StrCat(call_.batch.weight(row_), " is not above 0 and finite")};
    }
    return mapper_.Describe(row_, code);
  }

  void Refuse(ValidationError error) {
    tally_.Rejected(error.code);
    outcome_.row_errors.push_back({static_cast<uint32_t>(row_), std::move(error)});
    ++pending_;
    ++row_;
  }

  // Before the first row is checked; without names a lock is saved.
  void ResolveLabels() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    if (!labels_.Resolves()) return;
    ReaderMutexLock lock(&model_.mutex_);
    labels_.Resolve(model_.class_names_);
  }

  SeenExample Seen(const Row& row, int32_t label) {
    mapper_.UnknownNames(row_, unknown_);
    return {row, label, unknown_};
  }

  // Keeps the example for the sample, if it has a place there.
  void Offer(int32_t label) ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (!model_.ledger_.retention().samples()) return;
    Retention::Sampled candidate;
    if (model_.ledger_.retention().IsCandidate(Seen(mapper_.Map(row_), label), model_.dictionary_,
                                               candidate))
      candidates_.push_back(std::move(candidate));
  }

  Ledger::Offers Offers() const ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    return {candidates_, model_.dictionary_};
  }

  void Resolve() ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (labels_.Stale(model_.class_names_)) labels_.Resolve(model_.class_names_);
    if (!resolved_ || mapper_.resolved_size() != model_.dictionary_.size())
      mapper_.Resolve(model_.dictionary_);
    resolved_ = true;
  }

  // ||Phi(x)||^2 of the row at row_, in the space that the rule learns in.
  double SquaredImage() const {
    return rule_.form == Form::kKernel ? kernel_.OfItself(squared_norm_)
                                       : squared_norm_ + augmented_;
  }

  void Answer(size_t row, const Evaluation& evaluation) {
    if (!call_.detail) return;
    outcome_.scores[row] = Saturate(evaluation.score);
    outcome_.predicted[row] = evaluation.predicted;
  }

  void AddEvaluation(const Evaluation& evaluation, int32_t label) {
    // Of several classes the score is the margin.
    tally_.AddEvaluation(evaluation, is_multiclass_ ? 1 : label, SquaredImage());
    if (call_.batch.weight(row_) != 1) ++tally_.weighted_examples;
    Answer(row_, evaluation);
    ++pending_;
    ++row_;
  }

  // Passes the rows judged ahead up to one that there is more to do about than to count it.
  void SkipEvaluated() ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    size_t end = evaluated_.end();
    if (next_refused_ < call_.row_errors.size())
      end = std::min<size_t>(end, call_.row_errors[next_refused_].row);
    Tally tally = tally_;
    size_t row = row_;
    for (; row < end; ++row) {
      const EvaluatedRow& evaluated = evaluated_[row];
      if (evaluated.code != ValidationCode::kNone || evaluated.evaluation.update) break;
      if (labels_.Check(row) != ValidationCode::kNone) break;
      tally.AddEvaluation(evaluated.evaluation, call_.batch.labels[row],
                          evaluated.squared_norm + augmented_);
      Answer(row, evaluated.evaluation);
    }
    tally_ = tally;
    pending_ += static_cast<int64_t>(row - row_);
    row_ = row;
  }

  // Under the shared lock: passes correct and refused rows, stops at one that calls for an update
  // and where a batch is full.
  absl::Status Score() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    ReaderMutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Resolve();
    evaluated_.Clear();
    const uint64_t age = batches_ ? model_.ledger_.examples() : 0;
    // A crash may have come between the row that filled it and its end.
    batch_full_ = batches_ && BatchIsFull(age);
    while (row_ < rows_ && !batch_full_) {
      if (only_counted_ && evaluated_.Has(row_)) {
        SkipEvaluated();
        if (!evaluated_.Has(row_)) continue;
      }
      Evaluation evaluation;
      if (const ValidationCode code = CheckAndEvaluate(evaluation); code != ValidationCode::kNone) {
        Refuse(Describe(code));
        continue;
      }
      if (evaluation.update) {
        quiet_since_ = row_ + 1;
        updated_ = true;
        break;
      }
      const int32_t label = labels_.Label(row_);
      Offer(label);
      AddEvaluation(evaluation, label);
      batch_full_ = batches_ && BatchIsFull(age + tally_.examples);
    }
    Flush();
    return absl::OkStatus();
  }

  // Alone: the row at row_ called for an update a moment ago. Judges it again and applies it if it
  // still does.
  absl::Status Update() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    MutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Resolve();
    const absl::string_view new_class = labels_.NewClass(row_);
    if (!new_class.empty() && model_.class_names_.size() == model_.settings_.learner.classes.max) {
      tally_.unlearned = true;
      Refuse(ClassCap());
      Flush();
      return absl::OkStatus();
    }
    const Target target = CurrentTarget();
    Row row = mapper_.Map(row_);
    const Evaluation evaluation = model_.learner_->Evaluate(row, target.label);
    std::vector<absl::string_view> new_names;
    if (evaluation.update) {
      if (ValidationError error = Prepare(row, target, evaluation, new_names, new_class)) {
        tally_.unlearned = true;
        Refuse(std::move(error));
        Flush();
        return absl::OkStatus();
      }
      model_.learner_->Update(row, target, evaluation);
    }
    Offer(target.label);
    AddEvaluation(evaluation, target.label);
    batch_full_ = batches_ && BatchIsFull(target.age + 1);
    if (!evaluation.update) {
      Flush();
      return absl::OkStatus();
    }
    ++tally_.updates;
    NoteUpdate(model_.settings_.learner, *model_.learner_, row, target, tally_);
    ++model_.revision_;
    outcome_.updated_rows.push_back(static_cast<uint32_t>(row_ - 1));
    outcome_.update_revisions.push_back(model_.revision_);
    Count();
    Ledger::Update update;
    update.revision = model_.revision_;
    update.row = row;
    update.label = target.label;
    update.weight = call_.batch.weight(row_ - 1);
    if (counts_examples_) update.age = target.age;
    update.new_names = new_names;
    update.squared_norm = model_.learner_->augmented_squared_norm();
    update.new_class = new_class;
    update.theorem = model_.MakeTheoremContext(call_.components);
    if (model_.ledger_.retention().keeps_updates()) {
      update.retained = std::make_shared<const RetainedRow>(SeenExample{row, target.label, {}});
      update.score = Saturate(evaluation.score);
    }
    model_.ledger_.AddUpdate(tally_, *call_.producer, pending_, update, Offers());
    StartStretch();
    return absl::OkStatus();
  }

  // Alone: ends the batch of a rule that learns by batches, if one waits that is full or ends with
  // the pass. The rows judged so far are in the books.
  absl::Status EndBatch(bool whole_pass) ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    MutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    batch_full_ = false;
    Learner& learner = *model_.learner_;
    BatchLearning& batch = *learner.batch_learning();
    const uint64_t age = model_.ledger_.examples();
    // Another stream may have ended it a moment ago.
    if (!batch.IsFull(age) && !(whole_pass && batch.IsPending())) return absl::OkStatus();
    batch.EndBatch();
    ++model_.revision_;
    ++tally_.updates;
    Ledger::Update update;
    update.revision = model_.revision_;
    update.batch_end = true;
    if (counts_examples_) update.age = age;
    update.squared_norm = learner.augmented_squared_norm();
    update.theorem = model_.MakeTheoremContext(call_.components);
    model_.ledger_.AddUpdate(tally_, *call_.producer, pending_, update, Offers());
    StartStretch();
    return absl::OkStatus();
  }

  bool BatchIsFull(uint64_t age) const ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    return model_.learner_->batch_learning()->IsFull(age);
  }

  // What an update of the row at row_ is to learn. Whatever others judged is in the ledger: their
  // stretches end before they let go of the lock.
  Target CurrentTarget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_.mutex_) {
    const int32_t label = labels_.Label(row_);
    const double weight = call_.batch.weight(row_) * model_.settings_.learner.class_weight(label);
    return {label, weight, counts_examples_ ? model_.ledger_.examples() : 0};
  }

  // Makes sure that the row can be learned, gives its unknown names weights, and maps it again; and
  // names its class, if that is new.
  ValidationError Prepare(Row& row, const Target& target, const Evaluation& evaluation,
                          std::vector<absl::string_view>& new_names, absl::string_view new_class)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_.mutex_) {
    if (!model_.learner_->CanUpdate(row, target, evaluation)) {
      return {ValidationCode::kWeightOverflow, "values",
              "learning this example would take a weight out of float32's range"};
    }
    if (ValidationError error = GiveWeights(row, new_names)) return error;
    if (!new_class.empty()) model_.class_names_.Add(new_class);
    return {};
  }

  ValidationError ClassCap() const {
    return {ValidationCode::kClassCap, "labels",
            absl::StrCat("the model has its ", model_.settings_.learner.classes.max,
                         " classes, and this is another; it forgets none, so waiting does not "
                         "help: leave it out, or create a model with a larger max_classes")};
  }

  ValidationError GiveWeights(Row& row, std::vector<absl::string_view>& new_names)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(model_.mutex_) {
    if (model_.weight_space_.kind != FeatureSpace::Kind::kNamed) return {};
    mapper_.UnknownNames(row_, new_names);
    if (new_names.empty()) return {};
    Dictionary& dictionary = model_.dictionary_;
    if (dictionary.size() + new_names.size() > model_.settings_.space.size) {
      return {ValidationCode::kFeatureCap, "feature_names",
              absl::StrCat("the model holds ", dictionary.size(), " of at most ",
                           model_.settings_.space.size, " names, and this example needs ",
                           new_names.size(),
                           " new ones; it forgets none, so waiting does not help: leave them out, "
                           "or create a model with a larger max_features")};
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
    model_.ledger_.Add(tally_, *call_.producer, pending_, model_.revision_, Offers());
    StartStretch();
  }

  void Count() {
    outcome_.examples += tally_.examples;
    outcome_.mistakes += tally_.mistakes;
  }

  void StartStretch() {
    candidates_.clear();
    tally_ = Tally();
    tally_.components = call_.components;
    pending_ = 0;
  }

  absl::Status End() ABSL_LOCKS_EXCLUDED(model_.mutex_) {
    // A pass that is marked again ends no batch: what waits by then is another's.
    if (batches_ && new_pass_) {
      if (absl::Status status = EndBatch(/*whole_pass=*/true); !status.ok()) return status;
    }
    ReaderMutexLock lock(&model_.mutex_);
    if (!model_.closed_.ok()) return model_.closed_;
    Flush();
    outcome_.revision = model_.revision_;
    if (call_.end_of_pass > 0)
      outcome_.pass =
          model_.ledger_.EndPass(*call_.producer, call_.end_of_pass, model_.revision_, Norm());
    outcome_.next_offset = model_.ledger_.Standing(*call_.producer).next_offset;
    return absl::OkStatus();
  }

  // Of the weights, for the margin of a pass; 0, and so no margin, in a kernel's space: what
  // rounding may add to a score is not known there.
  double Norm() const ABSL_SHARED_LOCKS_REQUIRED(model_.mutex_) {
    if (rule_.form == Form::kKernel) return 0;
    return std::sqrt(std::max(0.0, model_.learner_->augmented_squared_norm()));
  }

  Model& model_;
  const LearnCall& call_;
  LearnOutcome& outcome_;
  Mapper mapper_;
  LabelReader labels_;
  EvaluatedRows evaluated_;
  const bool is_multiclass_;
  const size_t rows_;
  // b^2.
  const double augmented_;
  const CatalogueEntry& rule_;
  // Of a rule that has one.
  const Kernel kernel_;
  const bool counts_examples_;
  const bool batches_;
  // The message ends a pass for the first time.
  bool new_pass_ = false;
  // The row before row_ has filled a batch.
  bool batch_full_ = false;
  bool resolved_ = false;
  // The next row, and the next of the rows found bad beforehand.
  size_t row_ = 0;
  size_t next_refused_ = 0;
  double squared_norm_ = 0;
  // Rows are judged ahead.
  bool ahead_ = false;
  // Nothing is done about a right row but to count it.
  bool only_counted_ = false;
  // Behind the last row that called for an update, and whether there was one.
  size_t quiet_since_ = 0;
  bool updated_ = false;
  // The stretch: its tally, and how many rows it has, refused ones among them.
  Tally tally_;
  int64_t pending_ = 0;
  // Those of its examples that the sample may take. And the names of one without a weight.
  std::vector<Retention::Sampled> candidates_;
  std::vector<absl::string_view> unknown_;
};

void LearnOutcome::Clear() {
  examples = mistakes = duplicates = revision = 0;
  next_offset = 0;
  scores.clear();
  predicted.clear();
  updated_rows.clear();
  update_revisions.clear();
  row_errors.clear();
  pass.reset();
  component_revisions.clear();
}

absl::Status Model::Learn(const LearnCall& call, LearnOutcome& outcome) {
  outcome.Clear();
  if (settings_.components.empty()) return Learning(*this, call, outcome).Run();
  ComposedBatch composed;
  absl::Status status =
      Compose(settings_.components, components_, call.batch, call.row_errors, composed);
  if (!status.ok()) return status;
  LearnCall answers = call;
  answers.batch = composed.batch;
  answers.row_errors = composed.row_errors;
  answers.components = composed.fingerprint;
  outcome.component_revisions = std::move(composed.revisions);
  return Learning(*this, answers, outcome).Run();
}

}  // namespace perceptrond
