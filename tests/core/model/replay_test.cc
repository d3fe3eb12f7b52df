// Replay gives the same bits. A model of each rule goes through a script of events, drawn from a seed: it learns, commits
// fail, the server is killed or restarted, the model leaves memory, is copied, renamed, written to a file and read from it,
// has its weights replaced, and is rolled back. After each event it equals, bit for bit, a twin that learned the same
// acknowledged rows undisturbed; and so do the model that a server would load at that moment, and one that follows the
// journal.
#include <google/protobuf/util/message_differencer.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/features/text.h"
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/model.h"
#include "core/store/model_history.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/faulty_journal.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tight.h"

namespace perceptrond::replay_test {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::util::MessageDifferencer;
using testing::ClassKind;
using testing::FaultyJournal;
using testing::Message;
using testing::Sent;
using testing::Space;
using testing::SvmExample;
using Call = FaultyJournal::Call;
using Fate = FaultyJournal::Fate;

constexpr char kName[] = "models/m";
constexpr int kClasses = 6;
constexpr uint32_t kDimension = 20;
constexpr size_t kMessages = 80;
constexpr uint64_t kNever = uint64_t{1} << 40;

struct Case {
  std::string name;
  v1::Model settings;
  Space space = Space::kNamed;
  std::optional<ClassKind> classes;
  bool on_disk = false;

  bool has_texts() const { return settings.feature_space().has_text(); }
  // Rows that change no weights leave something that only snapshots hold: examples of a sample, counts of documents.
  bool keeps_correct_rows() const {
    return has_texts() || settings.stored_examples().max_sample() > 0;
  }
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

Case MakeCase(const std::string& learner, Space space, std::optional<ClassKind> classes,
              const std::string& form = "") {
  Case one;
  one.name = absl::StrCat(testing::TestName(learner), "_",
                          classes.has_value() ? testing::ClassKindName(*classes) : "TwoLabels", "_",
                          testing::SpaceName(space), form);
  one.settings = testing::SpaceSettings(space, kName, kDimension);
  one.space = space;
  one.classes = classes;
  testing::SetLearner(*one.settings.mutable_learner(), learner);
  if (classes.has_value()) testing::SetClasses(*classes, kClasses, one.settings);
  return one;
}

Case MakeTextCase(const std::string& learner) {
  Case one = MakeCase(learner, Space::kHashed, std::nullopt, "_Texts");
  v1::FeatureSpace::Text& text = *one.settings.mutable_feature_space()->mutable_text();
  text.set_bits(10);
  text.set_max_words(1);
  text.set_inverse_document_frequency(true);
  return one;
}

void AddMaps(const std::string& learner, std::vector<Case>& cases) {
  cases.push_back(MakeCase(learner, Space::kDense, std::nullopt, "_Polynomial"));
  cases.back().settings.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(2);
  cases.push_back(MakeCase(learner, Space::kHashed, std::nullopt, "_Products"));
  cases.back().settings.mutable_feature_space()->mutable_map()->mutable_products()->add_pairs();
  cases.push_back(MakeCase(learner, Space::kNamed, ClassKind::kNamed, "_Fourier"));
  v1::FeatureMap::Fourier& fourier =
      *cases.back().settings.mutable_feature_space()->mutable_map()->mutable_fourier();
  fourier.set_dimension(40);
  fourier.set_gamma(0.3);
  fourier.set_seed(5);
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  std::vector<std::string> learners = testing::LogisticWithSteps();
  for (const CatalogueEntry& entry : Catalogue()) learners.emplace_back(entry.name);
  for (const std::string& learner : learners) {
    const bool tight = testing::CanBeTight(learner);
    const auto add = [&](Space space, std::optional<ClassKind> classes) {
      cases.push_back(MakeCase(learner, space, classes));
    };
    const auto add_tight = [&](std::optional<ClassKind> classes) {
      cases.push_back(MakeCase(learner, Space::kNamed, classes, "_Tight"));
      testing::Tighten(*cases.back().settings.mutable_learner());
    };
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed})
      add(space, std::nullopt);
    if (tight) add_tight(std::nullopt);
    cases.push_back(MakeTextCase(learner));
    if (!FindLearner(learner.substr(0, learner.find('/')))->has_classes()) continue;
    add(Space::kDense, ClassKind::kFixed);
    add(Space::kHashed, ClassKind::kFixedNamed);
    add(Space::kNamed, ClassKind::kNumbered);
    add(Space::kDense, ClassKind::kNamed);
    if (tight) add_tight(ClassKind::kNamed);
  }
  for (const std::string learner : {"perceptron", "averaged-perceptron"}) AddMaps(learner, cases);
  // A rule that learns from mistakes, and one that learns from every example.
  for (const std::string learner : {"perceptron", "logistic-regression"}) {
    for (const Space space : {Space::kDense, Space::kHashed, Space::kNamed}) {
      for (const std::optional<ClassKind> classes :
           {std::optional<ClassKind>(), std::optional(ClassKind::kNamed)}) {
        cases.push_back(MakeCase(learner, space, classes, "_Sample"));
        cases.back().settings.mutable_stored_examples()->set_max_sample(100'000);
      }
    }
  }
  const std::vector<Case> some = {
      MakeCase("perceptron", Space::kDense, std::nullopt, "_OnDisk"),
      MakeCase("arow", Space::kNamed, ClassKind::kNamed, "_OnDisk"),
      MakeCase("kernel-perceptron", Space::kHashed, std::nullopt, "_OnDisk")};
  for (const Case& one : some) {
    cases.push_back(one);
    cases.back().on_disk = true;
  }
  return cases;
}

// The first rows of a message as a batch of the case's form. In named spaces half of the messages have weights, where the
// rule defines them.
class RowBatch {
 public:
  RowBatch(const Case& one, const Model& model, const Message& message, size_t rows) {
    const std::vector<SvmExample> examples(
        message.examples.begin(), message.examples.begin() + static_cast<std::ptrdiff_t>(rows));
    if (one.has_texts()) {
      AddTexts(examples, model.settings().space);
    } else if (one.classes.has_value()) {
      classes_ = std::make_unique<testing::ClassBatch>(*one.classes, one.space, examples);
      batch_ = classes_->batch();
    } else {
      two_labels_ = std::make_unique<testing::SpaceBatch>(one.space, examples);
      batch_ = two_labels_->batch();
    }
    if (message.first_offset % 2 == 0 || one.space != Space::kNamed ||
        !FindLearner(model.settings().learner).takes_weights)
      return;
    for (size_t i = 0; i < rows; ++i) weights_.push_back(0.5F + static_cast<float>(i % 3));
    batch_.weights = weights_;
  }
  RowBatch(const RowBatch&) = delete;
  RowBatch& operator=(const RowBatch&) = delete;

  const Batch& batch() const { return batch_; }
  Batch unlabelled() const {
    Batch batch = batch_;
    batch.labels = {};
    batch.label_names = {};
    batch.weights = {};
    return batch;
  }

 private:
  void AddTexts(const std::vector<SvmExample>& examples, const FeatureSpace& space) {
    TextReader reader;
    for (const SvmExample& example : examples) {
      texts_.emplace_back();
      for (const uint32_t index : example.indices) absl::StrAppend(&texts_.back(), " w", index);
      EXPECT_EQ(
          reader.Read(texts_.back(), *space.text, space.size, kMaxBatchGrams, indices_, values_),
          ValidationCode::kNone);
      row_ends_.push_back(static_cast<uint32_t>(indices_.size()));
      labels_.push_back(example.label);
    }
    views_.assign(texts_.begin(), texts_.end());
    batch_.row_ends = row_ends_;
    batch_.indices = indices_;
    batch_.values = values_;
    batch_.labels = labels_;
    batch_.texts = views_;
  }

  std::unique_ptr<testing::ClassBatch> classes_;
  std::unique_ptr<testing::SpaceBatch> two_labels_;
  std::vector<std::string> texts_;
  std::vector<absl::string_view> views_;
  std::vector<uint32_t> row_ends_;
  std::vector<uint32_t> indices_;
  std::vector<float> values_;
  std::vector<int32_t> labels_;
  std::vector<float> weights_;
  Batch batch_;
};

// Two labels with invalid rows and passes, or classes that come up one after another, from three producers.
std::vector<Message> MakeMessages(const Case& one, uint32_t seed) {
  if (!one.classes.has_value()) {
    testing::TrafficOptions traffic;
    traffic.dimension = kDimension;
    traffic.messages = kMessages;
    traffic.producers = 3;
    return MakeTraffic(seed, traffic);
  }
  std::vector<Message> messages;
  int64_t offsets[3] = {};
  int64_t passes[3] = {};
  std::mt19937 random(seed);
  for (auto& examples : testing::ClassMessages(seed, kClasses, kDimension, kMessages)) {
    const size_t at = messages.size() % 3;
    Message& message = messages.emplace_back();
    message.producer = absl::StrCat("producer-", at);
    message.first_offset = offsets[at];
    offsets[at] += static_cast<int64_t>(examples.size());
    if (messages.size() % 8 == 0) message.completed_pass = ++passes[at];
    message.examples = std::move(examples);
    for (SvmExample& example : message.examples) {
      if (random() % 8 == 0) example.label = static_cast<int>(random() % kClasses);
    }
  }
  return messages;
}

enum class Event {
  kLearn,
  kFailedCommit,
  // It was written, and the answer was lost.
  kUnansweredCommit,
  kTornCommit,
  // A commit of any fate, after which the server is killed.
  kKillAtCommit,
  kKill,
  kRestart,
  kEvict,
  kSnapshot,
  kReplaceWeights,
  kCopy,
  kFile,
  kRename,
  kRollBackToKept,
  kRollBackToRevision,
};

// `learns` times kLearn, and the others, in random order.
std::vector<Event> Shuffled(size_t learns, std::vector<Event> others, std::mt19937& random) {
  others.insert(others.end(), learns, Event::kLearn);
  for (size_t i = others.size(); i > 1; --i) std::swap(others[i - 1], others[random() % i]);
  return others;
}

void ExpectEqual(const google::protobuf::Message& one, const google::protobuf::Message& other) {
  EXPECT_TRUE(MessageDifferencer::Equals(one, other)) << one.ShortDebugString() << "\n"
                                                      << other.ShortDebugString();
}

// A loaded model may lack the oldest hundred examples of the window, and the drift's begins again, so that it may not detect
// what the other does. Rows that were sent again after a failure are duplicates.
void ExpectEqualReports(ConvergenceReport one, ConvergenceReport other) {
  const bool has_drift = one.drift().detections() > 0 || other.drift().detections() > 0;
  for (ConvergenceReport* report : {&one, &other}) {
    report->clear_duplicates();
    report->clear_window_examples();
    report->clear_window_error();
    report->clear_window_risk();
    report->clear_drift();
    if (has_drift) report->clear_state();
  }
  ExpectEqual(one, other);
}

// A journal that saves no snapshot while a test reads it, as a store reads no model of which it saves one.
class UnsavedWhileRead final : public testing::JournalDecorator {
 public:
  UnsavedWhileRead(std::shared_ptr<Journal> base, Mutex& reading)
      : JournalDecorator(std::move(base)), reading_(reading) {}
  absl::Status SaveSnapshot(uint64_t model_id, const storage::Snapshot& snapshot) override {
    MutexLock lock(&reading_);
    return JournalDecorator::SaveSnapshot(model_id, snapshot);
  }

 private:
  Mutex& reading_;
};

class Replay : public ::testing::TestWithParam<Case> {
 protected:
  // A model learns the first rows of a message, or gets new weights.
  struct Step {
    const Message* message = nullptr;  // null: new weights
    size_t rows = 0;
    int64_t completed_pass = 0;
  };
  using Course = std::vector<Step>;

  // Opens the store, with snapshots as often as can be, now and then, or never.
  void Open(size_t memory_budget = size_t{1} << 30, bool has_snapshots = true) {
    store_.reset();
    if (GetParam().on_disk) {
      base_.reset();
      RocksDbJournal::Options options;
      options.directory = root_->path() + "/journal";
      base_ = RocksDbJournal::Open(options).value();
    }
    constexpr uint64_t kOften[] = {kNever, 700, 1};
    // Where a test saves snapshots, the store does not.
    snapshot_bytes_ =
        GetParam().keeps_correct_rows() || !has_snapshots ? kNever : kOften[random_() % 3];
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes_;
    options.memory_budget = memory_budget;
    const auto plan = [this](Call call, uint64_t) {
      if (is_dead_) return Fate::kFails;
      return call == Call::kCommit ? fate_.exchange(Fate::kWorks) : Fate::kWorks;
    };
    store_ = std::make_unique<Store>(
        std::make_unique<FaultyJournal>(std::make_shared<UnsavedWhileRead>(base_, reading_), plan),
        options);
  }
  // Nothing that is in memory alone reaches the journal.
  void Kill() {
    is_dead_ = true;
    store_.reset();
    is_dead_ = false;
    Open();
  }
  std::shared_ptr<Model> Get() { return store_->Acquire(name_).value(); }
  std::shared_ptr<Model> Load() {
    MutexLock lock(&reading_);
    return Model::Load(base_->Find(name_).value(), *base_, ModelLimits()).value();
  }
  Sent Deliver(const Message& message) {
    const RowBatch rows(GetParam(), *Get(), message, message.examples.size());
    return testing::Send(*store_, name_, message.producer, rows.batch(), message.first_offset,
                         message.completed_pass);
  }
  static std::unique_ptr<testing::LoneModel> MakeTwin() {
    return std::make_unique<testing::LoneModel>(GetParam().settings);
  }

  void Begin(uint32_t seed) {
    store_.reset();
    random_.seed(seed);
    messages_ = MakeMessages(GetParam(), seed);
    asked_ = MakeMessages(GetParam(), seed + 1);
    asked_.resize(6);
    next_ = 0;
    follower_ = nullptr;
    tail_ = nullptr;
    has_history_ = false;
    has_new_weights_ = false;
    past_.clear();
    course_.clear();
    name_ = kName;
    if (GetParam().on_disk) {
      base_.reset();
      root_ = std::make_unique<testing::TempDir>();
    } else {
      base_ = std::make_shared<MemoryJournal>(MemoryJournal::Options{.tail_bytes = 64 << 20});
    }
    Open();
    ASSERT_OK(store_->Create(GetParam().settings, "", false).status());
    for (const char* other : {"models/x", "models/y"})
      ASSERT_OK(store_->Create(testing::DenseSettings(other, 2), "", false).status());
    twin_ = MakeTwin();
  }
  static void Teach(Model& model, const Step& step, LearnOutcome& outcome) {
    if (step.message == nullptr) {
      NewWeights weights{{{{1, 2}, {0.5F, -1.5F}, 0.25F}}, {}, ~0U};
      if (GetParam().classes.has_value()) weights.vectors.push_back({{2}, {1}, -0.5F});
      const auto revision = model.ReplaceWeights(weights, std::nullopt);
      ASSERT_OK(revision.status());
      outcome.revision = *revision;
      return;
    }
    const RowBatch rows(GetParam(), model, *step.message, step.rows);
    const std::shared_ptr<Producer> producer =
        model.ledger().FindProducer(step.message->producer).value();
    LearnCall call;
    call.batch = rows.batch();
    call.producer = producer.get();
    call.completed_pass = step.completed_pass;
    MutexLock turn(&producer->turn);
    ASSERT_OK(model.Learn(call, outcome));
  }
  void Learn(Fate fate, bool killed) {
    // A message without rows may need no commit.
    while (fate != Fate::kWorks && messages_.at(next_).examples.empty()) {
      ASSERT_NO_FATAL_FAILURE(Learn(Fate::kWorks, false));
    }
    const Message& message = messages_.at(next_++);
    const Step step{&message, message.examples.size(), message.completed_pass};
    const uint64_t before = Get()->revision();
    if (GetParam().keeps_correct_rows() && fate != Fate::kWorks) SaveSnapshot();
    // The fate is the message's: no commit of a snapshot may meet it.
    if (fate != Fate::kWorks && snapshot_bytes_ != kNever) Open(size_t{1} << 30, false);
    fate_ = fate;
    Sent sent = Deliver(message);
    LearnOutcome expected;
    if (sent.status.ok()) {
      EXPECT_EQ(fate, Fate::kWorks);
      ASSERT_NO_FATAL_FAILURE(Teach(*twin_->model, step, expected));
    } else {
      ASSERT_EQ(testing::ReasonOf(sent.status), "JOURNAL_UNAVAILABLE") << sent.status;
      if (fate == Fate::kLeavesRecords) follower_ = nullptr;
      if (killed) Kill();
      const auto producer = Get()->ledger().FindProducer(message.producer).value();
      const bool is_written = testing::PositionOf(*producer).next_offset > message.first_offset;
      EXPECT_EQ(is_written, fate == Fate::kFailsAfterwards);
      if (is_written) {
        ASSERT_NO_FATAL_FAILURE(Teach(*twin_->model, step, expected));
      }
      ASSERT_NO_FATAL_FAILURE(Check());
      sent = Deliver(message);
      if (is_written) {
        EXPECT_EQ(sent.outcome.duplicates, message.examples.size());
        sent.outcome.update_revisions = expected.update_revisions;
        sent.outcome.row_errors = expected.row_errors;
      } else {
        ASSERT_NO_FATAL_FAILURE(Teach(*twin_->model, step, expected));
      }
    }
    ASSERT_OK(sent.status);
    EXPECT_EQ(sent.outcome.row_errors.size(), expected.row_errors.size());
    if (!has_history_) {
      EXPECT_EQ(sent.outcome.next_offset, expected.next_offset);
      EXPECT_EQ(sent.outcome.update_revisions, expected.update_revisions);
      ASSERT_EQ(sent.outcome.pass.has_value(), expected.pass.has_value());
      if (expected.pass.has_value()) {
        EXPECT_TRUE(MessageDifferencer::Equals(*sent.outcome.pass, *expected.pass))
            << sent.outcome.pass->ShortDebugString() << "\n"
            << expected.pass->ShortDebugString();
      }
    }
    // An update found the state that all rows before its own made. The end of a batch is one of no row.
    if (sent.outcome.revision > before) past_.erase(before);
    const uint64_t undone = sent.outcome.revision - expected.revision;
    for (size_t i = 0; i < expected.updated_rows.size(); ++i) {
      Course& past = past_[undone + expected.update_revisions[i] - 1];
      past = course_;
      past.push_back({&message, expected.updated_rows[i], 0});
    }
    course_.push_back(step);
    past_[sent.outcome.revision] = course_;
  }
  void ReplaceWeights() {
    const std::shared_ptr<Model> model = Get();
    // The weights are of two names and of classes 0 and 1.
    if (model->revision() < 5 || GetParam().classes == ClassKind::kNumbered) return;
    if (GetParam().classes.has_value() && ListWeights(*model).size() < 2) return;
    const Step step;
    LearnOutcome expected;
    LearnOutcome outcome;
    LearnerSettings settings;
    settings.rule = model->settings().learner.rule;
    settings.wrapper = model->settings().learner.wrapper;
    if (MakeLearner(settings, 1)->replaceable_weights() == nullptr) return;
    ASSERT_NO_FATAL_FAILURE(Teach(*twin_->model, step, expected));
    ASSERT_NO_FATAL_FAILURE(Teach(*model, step, outcome));
    ASSERT_OK(store_->committer().Commit(model));
    has_new_weights_ = true;
    course_.push_back(step);
    past_[outcome.revision] = course_;
  }
  void RollBack(const ModelHistory::RollbackTarget& target, const Course& past) {
    const uint64_t revision = Get()->revision();
    ASSERT_OK(ModelHistory(*store_).RollBack(name_, target, revision));
    EXPECT_EQ(Get()->revision(), revision + 1);
    twin_ = MakeTwin();
    course_ = past;
    LearnOutcome outcome;
    for (const Step& step : course_) ASSERT_NO_FATAL_FAILURE(Teach(*twin_->model, step, outcome));
    past_[revision + 1] = course_;
    follower_ = nullptr;
  }
  // Not beside those of the store, nor over the records that rollbacks need.
  void SaveSnapshot() {
    if (snapshot_bytes_ != kNever || has_history_) return;
    ASSERT_OK(base_->SaveSnapshot(Get()->id(), MakeSnapshot(*Get())));
  }
  void Evict() {
    // No room for any model: the next one that is loaded drives it out, once its commit has let go.
    Open(1);
    for (int i = 0; i < 2; ++i) {
      ASSERT_NO_FATAL_FAILURE(Learn(Fate::kWorks, false));
      if (GetParam().keeps_correct_rows()) SaveSnapshot();
      do {
        for (const char* other : {"models/x", "models/y"})
          ASSERT_OK(store_->Acquire(other).status());
      } while (store_->stats().models_in_memory > 1);
      ASSERT_EQ(store_->GetIfLoaded(name_), nullptr);
      ASSERT_NO_FATAL_FAILURE(Check());
    }
    if (GetParam().keeps_correct_rows()) SaveSnapshot();
    Open();
  }
  // The points of its curve, their times too, are in the journal.
  void Reload(const std::function<void()>& reload) {
    const std::string curve = MakeSnapshot(*Get()).learning_curve().SerializeAsString();
    reload();
    if (!has_history_) ExpectListed();
    EXPECT_TRUE(MakeSnapshot(*Get()).learning_curve().SerializeAsString() == curve);
  }
  void Run(Event event) {
    switch (event) {
      case Event::kLearn:
        return Learn(Fate::kWorks, false);
      case Event::kFailedCommit:
        return Learn(Fate::kFails, false);
      case Event::kUnansweredCommit:
        return Learn(GetParam().keeps_correct_rows() ? Fate::kFails : Fate::kFailsAfterwards,
                     false);
      case Event::kTornCommit:
        return Learn(Fate::kLeavesRecords, false);
      case Event::kKillAtCommit: {
        const bool answers_alone = !GetParam().keeps_correct_rows() && random_() % 2 == 0;
        return Learn(answers_alone ? Fate::kFailsAfterwards : Fate::kFails, true);
      }
      case Event::kKill:
        if (GetParam().keeps_correct_rows()) SaveSnapshot();
        return Reload([this] { Kill(); });
      case Event::kRestart:
        // A sample is saved by the store as it closes.
        if (GetParam().has_texts()) SaveSnapshot();
        return Reload([this] { Open(); });
      case Event::kEvict:
        if (GetParam().has_texts()) SaveSnapshot();
        return Evict();
      case Event::kSnapshot:
        return SaveSnapshot();
      case Event::kReplaceWeights:
        return ReplaceWeights();
      case Event::kRollBackToKept:
        return RollBack({"kept"}, kept_);
      case Event::kRollBackToRevision: {
        const auto past = std::next(past_.begin(), static_cast<int>(random_() % past_.size()));
        return RollBack({"", past->first}, Course(past->second));
      }
      case Event::kCopy:
      case Event::kFile:
      case Event::kRename:
        break;
    }
    const std::string name = absl::StrCat("models/m", ++names_);
    if (GetParam().keeps_correct_rows()) SaveSnapshot();
    ModelHistory history(*store_);
    if (event == Event::kRename) {
      ASSERT_OK(history.Rename(name_, name, ""));
    } else if (event == Event::kCopy) {
      ASSERT_OK(history.Copy(name_, name, "").status());
    } else {
      const std::string file = absl::StrJoin(history.Export(name_).value(), "");
      ModelFileReader reader = history.ReadFile();
      for (size_t at = 0; at < file.size(); at += 1000)
        ASSERT_OK(reader.Add(absl::string_view(file).substr(at, 1000)));
      ASSERT_OK(history.Import(std::move(reader), name, "").status());
    }
    name_ = name;
    follower_ = nullptr;
  }
  std::string StateOf(Model& model, bool whole) const {
    storage::Snapshot snapshot = MakeSnapshot(model);
    snapshot.clear_learning_curve();
    if (has_history_) snapshot.clear_revision();
    if (has_history_ || !whole) {
      snapshot.clear_stored_rows();
      snapshot.clear_document_counts();
    }
    return snapshot.SerializeAsString();
  }
  // Every bit that it answers with.
  std::vector<uint32_t> AnswersOf(Model& model) const {
    std::vector<uint32_t> bits;
    for (const Message& message : asked_) {
      const RowBatch rows(GetParam(), model, message, message.examples.size());
      PredictOutcome outcome;
      EXPECT_OK(model.Predict(rows.unlabelled(), {}, 0, outcome,
                              /*include_class_scores=*/GetParam().classes.has_value()));
      for (const auto* values : {&outcome.scores, &outcome.distances, &outcome.probabilities,
                                 &outcome.class_scores, &outcome.class_probabilities}) {
        for (const float value : *values) bits.push_back(std::bit_cast<uint32_t>(value));
      }
      for (const int32_t label : outcome.labels) bits.push_back(static_cast<uint32_t>(label));
    }
    return bits;
  }
  // A list has what is stored; what takes the weights is absent.
  void ExpectListed() {
    const ModelSummary listed = store_->GetSummary(name_).value();
    EXPECT_FALSE(listed.in_memory);
    EXPECT_EQ(listed.revision, twin_->model->revision());
    ConvergenceReport stored = MakeReport(*twin_->model);
    for (const char* figure :
         {"weight_norm", "separate_prediction_weights", "margin_ceiling", "margin_floor",
          "bound_in_use", "update_bound", "updates_left", "not_separable", "error_ceiling"})
      stored.GetReflection()->ClearField(&stored, stored.GetDescriptor()->FindFieldByName(figure));
    ExpectEqualReports(listed.report, stored);
    EXPECT_EQ(store_->GetIfLoaded(name_), nullptr);
  }
  void ExpectTwin(Model& model, bool whole) const {
    Model& twin = *twin_->model;
    EXPECT_TRUE(StateOf(model, whole) == StateOf(twin, whole));
    EXPECT_TRUE(AnswersOf(model) == AnswersOf(twin));
    if (has_history_) return ExpectSameRun(model);
    storage::Counters one = model.ledger().counters();
    storage::Counters other = twin.ledger().counters();
    for (storage::Counters* counters : {&one, &other}) {
      counters->mutable_report()->clear_duplicates();
      counters->mutable_report()->clear_drift();
      if (whole) continue;
      counters->clear_sampled();
      counters->clear_sample_complete();
      counters->clear_sample_bytes();
    }
    ExpectEqual(one, other);
    ExpectEqualReports(MakeReport(model), MakeReport(twin));
    for (int i = 0; i < 3; ++i) {
      const std::string id = absl::StrCat("producer-", i);
      const ProducerPosition position =
          testing::PositionOf(*model.ledger().FindProducer(id).value());
      const ProducerPosition expected =
          testing::PositionOf(*twin_->model->ledger().FindProducer(id).value());
      EXPECT_EQ(position.next_offset, expected.next_offset) << id;
      EXPECT_EQ(position.passes, expected.passes) << id;
    }
  }
  // The theorem's figures are equal. A proof about all data stays.
  void ExpectSameRun(Model& model) const {
    const storage::Counters one = model.ledger().counters();
    const storage::Counters other = twin_->model->ledger().counters();
    EXPECT_EQ(one.report().updates() - one.undone_updates(), other.report().updates());
    EXPECT_EQ(one.whole_steps(), other.whole_steps());
    EXPECT_EQ(one.rounding(), other.rounding());
    EXPECT_EQ(one.weighted_updates(), other.weighted_updates());
    EXPECT_EQ(one.weight_replacements(), other.weight_replacements());
    if (FindLearner(model.settings().learner).counts_examples) {
      EXPECT_EQ(model.ledger().examples(), twin_->model->ledger().examples());
    }
    EXPECT_GE(one.squared_radius(), other.squared_radius());
    if (other.has_margin_ceiling() && one.weighted_examples() == 0 && !has_new_weights_) {
      EXPECT_LE(one.margin_ceiling(), other.margin_ceiling());
    }
  }
  void CheckFollower(Model& model) {
    if (follower_ == nullptr) {
      tail_ = base_->Tail(0, base_->LastSequence(0).value()).value();
      follower_ = Load();
    }
    while (true) {
      const auto entries = tail_->Next(absl::ZeroDuration());
      ASSERT_OK(entries.status());
      if (entries->empty()) break;
      for (const SequencedEntry& one : *entries) {
        if (one.entry.model_id == follower_->id()) ASSERT_OK(Follow(one.entry, follower_->core()));
      }
    }
    EXPECT_EQ(follower_->revision(), model.revision());
    EXPECT_EQ(follower_->ledger().examples(), model.ledger().examples());
    EXPECT_TRUE(StateOf(*follower_, false) == StateOf(model, false));
  }
  void Check() {
    const std::shared_ptr<Model> model = Get();
    const uint64_t revision = model->revision();
    {
      SCOPED_TRACE("the model");
      ExpectTwin(*model, true);
    }
    {
      SCOPED_TRACE("loaded from the journal");
      ExpectTwin(*Load(), !GetParam().keeps_correct_rows());
    }
    if (!GetParam().on_disk) CheckFollower(*model);
    // Neither questions nor other openers change anything.
    EXPECT_EQ(model->revision(), revision);
  }

  std::mt19937 random_;
  std::vector<Message> messages_;
  size_t next_ = 0;
  std::vector<Message> asked_;

  std::shared_ptr<Journal> base_;
  std::unique_ptr<testing::TempDir> root_;
  // The fate of the next commit.
  std::atomic<Fate> fate_ = Fate::kWorks;
  std::atomic<bool> is_dead_ = false;
  // Held while the test reads the journal beside the store.
  Mutex reading_;
  uint64_t snapshot_bytes_ = kNever;
  std::unique_ptr<Store> store_;
  std::string name_;
  int names_ = 0;

  std::unique_ptr<testing::LoneModel> twin_;
  Course course_;
  // Since the model keeps snapshots: what was learned when it had each revision. Then revisions and reports go on, and the
  // rest is as in the twin.
  bool has_history_ = false;
  std::map<uint64_t, Course> past_;
  Course kept_;
  bool has_new_weights_ = false;

  std::unique_ptr<JournalTail> tail_;
  std::shared_ptr<Model> follower_;
};

TEST_P(Replay, ADisturbedModelIsAtEachMomentEqualToItsUndisturbedTwin) {
  const char* const seeds = std::getenv("PERCEPTROND_REPLAY_SEEDS");
  const int rounds = seeds == nullptr ? 1 : std::atoi(seeds);
  uint32_t seed = 1;
  for (const char c : GetParam().name) seed = 31 * seed + static_cast<unsigned char>(c);
  for (int round = 0; round < rounds; ++round, ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    ASSERT_NO_FATAL_FAILURE(Begin(seed));
    std::vector<Event> script = Shuffled(
        16,
        {Event::kFailedCommit, Event::kUnansweredCommit, Event::kTornCommit, Event::kKillAtCommit,
         Event::kKillAtCommit, Event::kKill, Event::kRestart, Event::kEvict, Event::kSnapshot,
         Event::kReplaceWeights, Event::kCopy, Event::kFile, Event::kRename},
        random_);
    const auto run = [&](size_t at) {
      SCOPED_TRACE(absl::StrCat("event ", at, ": ", static_cast<int>(script[at])));
      Run(script[at]);
      if (!HasFatalFailure()) Check();
    };
    for (size_t at = 0; at < script.size(); ++at) {
      run(at);
      if (HasFailure()) return;
    }
    EXPECT_GT(twin_->model->revision(), 10U);
    // Counts of documents are not rolled back.
    if (GetParam().has_texts()) continue;
    for (size_t i = next_; i < kMessages; ++i) messages_[i].completed_pass = 0;
    // A rollback does not bring the numbers of passes back.
    ASSERT_OK(ModelHistory(*store_).Keep(name_, "kept").status());
    has_history_ = true;
    kept_ = course_;
    past_.clear();
    past_[Get()->revision()] = course_;
    script = Shuffled(8,
                      {Event::kFailedCommit, Event::kUnansweredCommit, Event::kTornCommit,
                       Event::kKillAtCommit, Event::kKill, Event::kRestart, Event::kReplaceWeights,
                       Event::kRename, Event::kRollBackToKept, Event::kRollBackToRevision,
                       Event::kRollBackToRevision, Event::kRollBackToRevision},
                      random_);
    script.insert(script.begin(), 4, Event::kLearn);
    for (size_t at = 0; at < script.size(); ++at) {
      run(at);
      if (HasFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Replay, ::testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perceptrond::replay_test
