// Faults under RocksDB: each write of a workload fails, tears, takes long, or is the last before the
// power fails, which loses any part of what was not synced. Afterwards, in every durability mode, a
// model is what it was after some of its examples, to the bit: under sync after all that were
// acknowledged; and its producer goes on from there, so that each example is learned once.
//
// A sample of the boundaries by default; all of them, with several random choices each, if
// PERCEPTROND_ALL_FAULTS is set.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/memory_journal.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/store/store.h"
#include "gtest/gtest.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/journal_decorator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/traffic.h"

namespace perceptrond {
namespace {

using testing::FaultyFileSystem;
using testing::Message;
using testing::PositionOf;
using testing::Sent;
using testing::Space;
using testing::StateBytes;
using testing::TempDir;
using Fate = FaultyFileSystem::Fate;

constexpr size_t kMessages = 80;
const char* const kModels[] = {"a", "b"};

// By model: its messages, and its state and revision after each example, by the producer's position.
// What is written may end within a message.
struct Course {
  std::vector<Message> messages;
  std::map<int64_t, std::string> states;
  std::map<int64_t, uint64_t> revisions;
};

// The same with one example in each message.
std::vector<Message> OneByOne(const std::vector<Message>& messages) {
  std::vector<Message> single;
  for (const Message& message : messages) {
    for (size_t i = 0; i < message.examples.size(); ++i) {
      Message& one = single.emplace_back();
      one.producer = message.producer;
      one.examples = {message.examples[i]};
      one.first_offset = message.first_offset + static_cast<int64_t>(i);
    }
  }
  return single;
}

std::map<std::string, Course> MakeCourses() {
  std::map<std::string, Course> courses;
  Store store(std::make_unique<MemoryJournal>(), Store::Options());
  uint32_t seed = 1;
  for (const char* const name : kModels) {
    Course& course = courses[name];
    testing::TrafficOptions options;
    options.messages = kMessages;
    options.bad_rows = false;
    course.messages = testing::MakeTraffic(seed++, options);
    EXPECT_OK(store.Create(testing::DenseSettings(name, options.dimension), "", false).status());
    course.states[0] = StateBytes(*store.Acquire(name).value());
    course.revisions[0] = 0;
    for (const Message& message : OneByOne(course.messages)) {
      EXPECT_OK(testing::SendMessage(store, name, Space::kDense, message).status);
      const int64_t position = message.first_offset + 1;
      course.states[position] = StateBytes(*store.Acquire(name).value());
      course.revisions[position] = store.Acquire(name).value()->revision();
    }
  }
  return courses;
}

// Notes, with each sync of the log, what was acknowledged before it.
class SyncedJournal final : public testing::JournalDecorator {
 public:
  SyncedJournal(std::shared_ptr<Journal> base, std::function<void()> before,
                std::function<void()> after)
      : JournalDecorator(std::move(base)), before_(std::move(before)), after_(std::move(after)) {}

  absl::Status Sync() override {
    before_();
    const absl::Status status = JournalDecorator::Sync();
    if (status.ok()) after_();
    return status;
  }

 private:
  const std::function<void()> before_;
  const std::function<void()> after_;
};

class StorageFaults : public ::testing::TestWithParam<Durability> {
 protected:
  struct Acknowledged {
    bool created = false;
    std::atomic<int64_t> next_offset = 0;
    // Of it, what a sync came after.
    std::atomic<int64_t> syncing = 0;
    std::atomic<int64_t> synced = 0;
  };

  void Begin() {
    files_ = std::make_shared<FaultyFileSystem>();
    env_ = rocksdb::NewCompositeEnv(files_);
    directory_ = std::make_unique<TempDir>();
    boot_ = 0;
    acknowledged_.clear();
    for (const char* const name : kModels) acknowledged_[name];
  }
  absl::StatusOr<std::unique_ptr<Store>> Open() {
    RocksDbJournal::Options options;
    options.directory = directory_->path() + "/home";
    options.env = env_.get();
    options.boot_id = absl::StrCat("boot-", boot_);
    options.write_buffer_bytes = 64 << 10;
    options.reserve_bytes = 0;
    absl::StatusOr<std::unique_ptr<RocksDbJournal>> journal = RocksDbJournal::Open(options);
    if (!journal.ok()) return journal.status();
    Store::Options store;
    store.committer.durability = GetParam();
    store.committer.interval = absl::Milliseconds(1);
    store.snapshot_bytes = 8 << 10;
    const auto before = [this] {
      for (auto& [name, one] : acknowledged_) one.syncing = one.next_offset.load();
    };
    const auto after = [this] {
      for (auto& [name, one] : acknowledged_) one.synced = one.syncing.load();
    };
    return std::make_unique<Store>(
        std::make_unique<SyncedJournal>(std::shared_ptr<Journal>(*std::move(journal)), before,
                                        after),
        store);
  }
  // Creates the models and sends their messages, until something fails.
  void Work() {
    absl::StatusOr<std::unique_ptr<Store>> store = Open();
    if (!store.ok()) return;
    for (const char* const name : kModels) {
      const auto created = (*store)->Create(testing::DenseSettings(name, 24), "request", false);
      if (!created.ok()) return;
      acknowledged_[name].created = true;
    }
    for (size_t i = 0; i < kMessages; ++i) {
      for (const char* const name : kModels) {
        const Message& message = courses_.at(name).messages[i];
        if (!testing::SendMessage(**store, name, Space::kDense, message).status.ok()) return;
        acknowledged_[name].next_offset =
            message.first_offset + static_cast<int64_t>(message.examples.size());
      }
    }
  }
  // The position that the model must have: after a power failure the durability decides. Under sync
  // it is the first with all updates: messages without any are not synced.
  int64_t Least(const std::string& name, bool power_failed) const {
    const Acknowledged& acknowledged = acknowledged_.at(name);
    if (!power_failed) return acknowledged.next_offset;
    if (GetParam() == Durability::kInterval) return acknowledged.synced;
    if (GetParam() == Durability::kNone) return 0;
    const std::map<int64_t, uint64_t>& revisions = courses_.at(name).revisions;
    const uint64_t revision = revisions.at(acknowledged.next_offset);
    return std::find_if(revisions.begin(), revisions.end(),
                        [&](const auto& one) { return one.second == revision; })
        ->first;
  }
  void Check(bool power_failed) {
    std::map<std::string, int64_t> least;
    for (const char* const name : kModels) least[name] = Least(name, power_failed);
    absl::StatusOr<std::unique_ptr<Store>> store = Open();
    ASSERT_OK(store.status());
    for (const auto& [name, acknowledged] : acknowledged_) {
      absl::StatusOr<std::shared_ptr<Model>> model = (*store)->Acquire(name);
      if (!acknowledged.created && absl::IsNotFound(model.status())) {
        ASSERT_OK((*store)->Create(testing::DenseSettings(name, 24), "request", false).status());
        model = (*store)->Acquire(name);
      }
      ASSERT_TRUE(model.ok()) << name << ": " << model.status();
      const Course& course = courses_.at(name);
      const std::string& producer = course.messages[0].producer;
      const int64_t position = PositionOf(**(*model)->ledger().FindProducer(producer)).next_offset;
      EXPECT_GE(position, least.at(name)) << name;
      EXPECT_EQ(MakeReport(**model).examples(), static_cast<uint64_t>(position)) << name;
      EXPECT_EQ(StateBytes(**model), course.states.at(position)) << name << " at " << position;
      for (const Message& message : course.messages) {
        const int64_t end = message.first_offset + static_cast<int64_t>(message.examples.size());
        if (end < position) continue;
        ASSERT_OK(testing::SendMessage(**store, name, Space::kDense, message).status);
      }
      EXPECT_EQ(StateBytes(*(*store)->Acquire(name).value()), course.states.rbegin()->second);
    }
  }
  // The fate befalls the workload, then the process or the machine ends.
  void Run(uint64_t boundary, Fate fate, bool power_fails, uint32_t seed) {
    SCOPED_TRACE(absl::StrCat("boundary ", boundary, ", fate ", static_cast<int>(fate),
                              power_fails ? ", power failure, seed " : ", no power failure, seed ",
                              seed));
    Begin();
    files_->SetFate(boundary, fate);
    Work();
    if (power_fails) {
      std::mt19937 random(seed);
      files_->PowerFailure(random);
      ++boot_;
    } else {
      files_->Recover();
    }
    Check(power_fails);
    ++runs_;
  }
  // For docs/reliability.md.
  ~StorageFaults() override { std::printf("%d faults were injected\n", runs_); }
  // How many boundaries the workload has.
  uint64_t Count() {
    Begin();
    Work();
    return files_->boundaries();
  }

  const std::map<std::string, Course> courses_ = MakeCourses();
  const bool all_ = std::getenv("PERCEPTROND_ALL_FAULTS") != nullptr;
  std::shared_ptr<FaultyFileSystem> files_;
  std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<TempDir> directory_;
  int boot_ = 0;
  int runs_ = 0;
  std::map<std::string, Acknowledged> acknowledged_;
};

TEST_P(StorageFaults, AFailedTornOrDelayedWriteLosesNothingThatWasAcknowledged) {
  const uint64_t boundaries = Count();
  ASSERT_GT(boundaries, 2 * kMessages);
  std::mt19937 random(5);
  const uint64_t step = all_ ? 1 : boundaries / 12;
  for (const Fate fate : {Fate::kFails, Fate::kTears, Fate::kDelays}) {
    for (uint64_t at = all_ ? 0 : random() % step; at < boundaries; at += step) {
      Run(at, fate, /*power_fails=*/false, 0);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(StorageFaults, APowerFailureAtAnyWriteKeepsWhatTheDurabilityPromises) {
  const uint64_t boundaries = Count();
  std::mt19937 random(7);
  const uint64_t step = all_ ? 1 : boundaries / 20;
  for (const Fate fate : {Fate::kIsTheLast, Fate::kTears, Fate::kFails}) {
    for (uint64_t at = all_ ? 0 : random() % step; at <= boundaries; at += step) {
      for (int repeat = 0; repeat < (all_ ? 3 : 1); ++repeat) {
        Run(at, fate, /*power_fails=*/true, random());
        if (HasFatalFailure()) return;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, StorageFaults,
                         ::testing::Values(Durability::kSync, Durability::kInterval,
                                           Durability::kNone),
                         [](const auto& mode) {
                           return mode.param == Durability::kSync       ? "Sync"
                                  : mode.param == Durability::kInterval ? "Interval"
                                                                        : "None";
                         });

}  // namespace
}  // namespace perceptrond
