// The server is killed with SIGKILL again and again while producers send, in every other round
// while it takes snapshot after snapshot, small ones and in another run large ones. After each kill the
// journal is read as a restart would read it: every update that was acknowledged is in, nothing is in
// twice, and the weights are those of a serial run over all updates there ever were, bit for bit.
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "client/client.h"
#include "client/learn_stream.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"
#include "core/model/views.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kProducers = 4;
constexpr uint32_t kShared = 60;
constexpr uint32_t kDimension = kShared + kProducers;
// An example's number stands in a value of its own, too small to matter to a score and exact in
// float32.
constexpr float kNumberUnit = 0x1p-60F;

struct Sent {
  int producer;
  int64_t number;
  bool operator==(const Sent&) const = default;
  auto operator<=>(const Sent&) const = default;
};

client::Row MakeRow(int producer, int64_t number, std::mt19937& random) {
  client::Row row;
  for (uint32_t i = 0; i < kShared; ++i) {
    if (random() % 8 != 0) continue;
    row.indices.push_back(i);
    row.values.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
  }
  row.indices.push_back(kShared + producer);
  row.values.push_back(static_cast<float>(number) * kNumberUnit);
  // Never separable, so that mistakes go on.
  row.label = random() % 2 == 0 ? 1 : -1;
  return row;
}

// The server's acknowledgements, as the producers heard them.
class Acknowledged {
 public:
  void Add(int producer, const client::LearnAnswer& answer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    through_[producer] = std::max(through_[producer],
                                  answer.first_offset + static_cast<int64_t>(answer.tags.size()));
    total_ += static_cast<int64_t>(answer.tags.size());
    for (int i = 0; i < answer.result.updated_rows_size(); ++i) {
      updates_[answer.result.update_revisions(i)] = {
          producer, answer.first_offset + answer.result.updated_rows(i)};
    }
    more_.notify_all();
  }
  // Waits until this many more are acknowledged.
  void Await(int64_t more) {
    std::unique_lock<std::mutex> lock(mutex_);
    const int64_t goal = total_ + more;
    more_.wait(lock, [&] { return total_ >= goal; });
  }
  int64_t through(int producer) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return through_[producer];
  }
  std::map<uint64_t, Sent> updates() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return updates_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  int64_t through_[kProducers] = {};
  int64_t total_ = 0;
  std::map<uint64_t, Sent> updates_;
};

// One producer's rows again, in its order.
class Rows {
 public:
  explicit Rows(int producer) : producer_(producer), random_(producer) {}
  const client::Row& operator[](int64_t number) {
    while (static_cast<int64_t>(rows_.size()) <= number)
      rows_.push_back(MakeRow(producer_, static_cast<int64_t>(rows_.size()), random_));
    return rows_[number];
  }

 private:
  const int producer_;
  std::mt19937 random_;
  std::vector<client::Row> rows_;
};

// Every update that is known of, by the revision it produced: from the journal's records, and where
// a snapshot has taken their place from what was acknowledged.
class History {
 public:
  void Add(uint64_t revision, const client::Row& row) {
    const auto [known, is_new] = rows_.emplace(revision, row);
    EXPECT_EQ(known->second.indices, row.indices) << "history has changed at " << revision;
    EXPECT_EQ(known->second.values, row.values) << "history has changed at " << revision;
    if (!is_new) return;
    const Sent sent = SentAs(row);
    EXPECT_TRUE(learned_.insert(sent).second)
        << "learned twice: " << sent.producer << " " << sent.number;
  }
  void Add(const storage::UpdateRecord& record) {
    int begin = 0;
    for (int i = 0; i < record.labels_size(); ++i) {
      client::Row row;
      const int end = static_cast<int>(record.row_ends(i));
      row.indices.assign(record.indices().begin() + begin, record.indices().begin() + end);
      row.values.assign(record.values().begin() + begin, record.values().begin() + end);
      row.label = record.labels(i);
      Add(record.first_revision() + i, row);
      begin = end;
    }
  }
  const client::Row* Find(uint64_t revision) const {
    const auto found = rows_.find(revision);
    return found == rows_.end() ? nullptr : &found->second;
  }
  const std::set<Sent>& learned() const { return learned_; }
  static Sent SentAs(const client::Row& row) {
    return {static_cast<int>(row.indices.back() - kShared),
            static_cast<int64_t>(row.values.back() / kNumberUnit)};
  }

 private:
  std::map<uint64_t, client::Row> rows_;
  std::set<Sent> learned_;
};

// The textbook.
struct SerialRun {
  FloatArray weights = FloatArray(kDimension);
  float offset = 0;
  uint64_t revision = 0;

  void Learn(const client::Row& row) {
    const int label = row.label;
    double score = offset;
    for (size_t i = 0; i < row.indices.size(); ++i)
      score += static_cast<double>(weights[row.indices[i]]) * row.values[i];
    // Lanes are summed in another order there: a score this close to 0 may fall on either side.
    EXPECT_LE(label * score, 1e-9) << "no mistake at revision " << revision;
    for (size_t i = 0; i < row.indices.size(); ++i) {
      float& weight = weights[row.indices[i]];
      weight = static_cast<float>(static_cast<double>(weight) +
                                  label * static_cast<double>(row.values[i]));
    }
    offset = static_cast<float>(static_cast<double>(offset) + label);
    ++revision;
  }
};

// Flags that change from start to start.
class ChangingConfig {
 protected:
  void SetSnapshotBytes(const char* bytes) const {
    std::ofstream(path()) << "snapshot-bytes = " << bytes << "\n";
  }
  std::string path() const { return config_dir_.path() + "/config"; }
  ChangingConfig() { SetSnapshotBytes(kNever); }

  static constexpr const char* kNever = "1GiB";
  // As often as can be.
  static constexpr const char* kOften = "4KiB";
  TempDir config_dir_;
};

struct Case {
  const char* name;
  // A sample of so many examples stands in the snapshots: 100,000 take some 8 MB.
  uint32_t sample;
  size_t largest_snapshot_at_least;
  int kills;
  // Acknowledged examples before a kill while snapshots are taken: some are to be finished.
  unsigned most_examples;
};

class CrashTest : private ChangingConfig,
                  public ServerTest,
                  public ::testing::WithParamInterface<Case> {
 protected:
  CrashTest() : ServerTest({"--config", path()}) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
    settings.mutable_stored_examples()->set_max_sample(GetParam().sample);
    Create("m", settings);
  }

  void StartWithSnapshots(bool often) {
    SetSnapshotBytes(often ? kOften : kNever);
    server_.Restart();
  }

  // Goes on with the serial run to the journal's end, and compares at the snapshot. What a snapshot
  // has taken the place of before anybody heard of it is not known: there its weights are taken
  // over.
  void RunTo(uint64_t end, const std::optional<storage::Snapshot>& snapshot) {
    SerialRun stored;
    if (snapshot.has_value()) {
      largest_snapshot_ = std::max(largest_snapshot_, snapshot->ByteSizeLong());
      const absl::StatusOr<LearnerState> state = ReadState(*snapshot);
      ASSERT_TRUE(state.ok()) << state.status();
      stored = {state->arrays.at(0), static_cast<float>(state->scalars.at(0)),
                snapshot->revision()};
    }
    while (serial_.revision < end) {
      if (const client::Row* row = history_.Find(serial_.revision + 1); row != nullptr) {
        serial_.Learn(*row);
        if (serial_.revision != stored.revision) continue;
        EXPECT_EQ(serial_.offset, stored.offset);
        EXPECT_EQ(serial_.weights, stored.weights);
      } else {
        ASSERT_LT(serial_.revision, stored.revision) << "an update is missing";
        serial_ = stored;
      }
    }
  }

  void CheckJournal(Acknowledged& acknowledged, bool finished) {
    RocksDbJournal::Options options;
    options.directory = dir_.path() + "/data";
    auto journal = RocksDbJournal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    const auto header = (*journal)->Find("models/m");
    ASSERT_TRUE(header.ok()) << header.status();
    const auto state = (*journal)->LoadCommittedState(header->id());
    ASSERT_TRUE(state.ok()) << state.status();
    const auto snapshot = (*journal)->LoadSnapshot(header->id());
    ASSERT_TRUE(snapshot.ok()) << snapshot.status();

    const absl::Status replayed =
        (*journal)->Replay(header->id(), 0, [&](const storage::UpdateRecord& record, size_t) {
          history_.Add(record);
          return absl::OkStatus();
        });
    ASSERT_TRUE(replayed.ok()) << replayed;
    const uint64_t updates = state->counters.report().updates();
    for (const auto& [revision, sent] : acknowledged.updates()) {
      ASSERT_LE(revision, updates) << "an acknowledged update is not in";
      history_.Add(revision, rows_[sent.producer][sent.number]);
    }
    ASSERT_NO_FATAL_FAILURE(RunTo(updates, *snapshot));

    std::map<std::string, int64_t> positions;
    int64_t accounted = 0;
    for (const auto& position : state->positions) {
      positions[position.id()] = position.next_offset();
      accounted += position.next_offset();
    }
    // Counters and positions are of one commit: no example counts twice. Counts of correct ones may have been lost.
    EXPECT_LE(state->counters.report().examples(), accounted);
    for (int producer = 0; producer < kProducers; ++producer) {
      const int64_t position = positions["p" + std::to_string(producer)];
      if (finished) {
        EXPECT_EQ(position, acknowledged.through(producer));
      }
    }
    for (const Sent& sent : history_.learned()) {
      EXPECT_LT(sent.number, positions["p" + std::to_string(sent.producer)])
          << "learned ahead of the position";
    }
    const auto model = Model::Load(*header, **journal, {});
    ASSERT_TRUE(model.ok()) << model.status();
    const WeightList list = ListWeights(**model)[0];
    EXPECT_EQ(list.revision, serial_.revision);
    std::vector<float> loaded(kDimension);
    for (size_t i = 0; i < list.indices.size(); ++i) loaded[list.indices[i]] = list.values[i];
    EXPECT_EQ(0, std::memcmp(loaded.data(), serial_.weights.data(), kDimension * sizeof(float)));
    EXPECT_EQ(list.bias, serial_.offset);
  }

  History history_;
  SerialRun serial_;
  Rows rows_[kProducers] = {Rows(0), Rows(1), Rows(2), Rows(3)};
  size_t largest_snapshot_ = 0;
};

TEST_P(CrashTest, EverythingAcknowledgedIsInOnceAfterEachKill) {
  Acknowledged acknowledged;
  std::atomic<bool> stop = false;
  std::vector<std::thread> producers;
  for (int producer = 0; producer < kProducers; ++producer) {
    producers.emplace_back([&, producer] {
      client::LearnOptions options;
      options.producer_id = "p" + std::to_string(producer);
      options.rows_per_message = 1 + 37 * producer;
      options.window_messages = 16;
      options.retry.initial_backoff = absl::Milliseconds(5);
      options.retry.max_backoff = absl::Milliseconds(50);
      options.retry.give_up_after = absl::Hours(1);
      options.on_result = [&, producer](const client::LearnAnswer& answer) {
        acknowledged.Add(producer, answer);
      };
      auto stream =
          client::LearnStream::Open(client::MakeConnection(server_.address()), "m", options);
      ASSERT_TRUE(stream.ok()) << stream.status();
      std::mt19937 random(producer);
      for (int64_t number = 0; !stop; ++number) {
        const absl::Status pushed = (*stream)->Push(MakeRow(producer, number, random));
        ASSERT_TRUE(pushed.ok()) << pushed;
      }
      const auto totals = (*stream)->Finish();
      ASSERT_TRUE(totals.ok()) << totals.status();
    });
  }
  std::mt19937 random(1);
  for (int kill = 0; kill < GetParam().kills && !HasFailure(); ++kill) {
    // Long enough for some snapshots to be over, and for others to be under way.
    const bool snapshots = kill % 2 == 1;
    const unsigned most = snapshots ? GetParam().most_examples : 3000;
    acknowledged.Await((snapshots ? most / 2 : 1) + random() % (most / 2));
    server_.Kill();
    CheckJournal(acknowledged, /*finished=*/false);
    StartWithSnapshots(/*often=*/!snapshots);
  }
  stop = true;
  for (std::thread& producer : producers) producer.join();
  Connect(server_.address());
  const v1::Model model = Get("m");
  EXPECT_EQ(server_.Terminate(), 0);
  CheckJournal(acknowledged, /*finished=*/true);
  EXPECT_GT(model.revision(), 0);
  EXPECT_GT(largest_snapshot_, GetParam().largest_snapshot_at_least);
}

// Few kills, in seconds; many, also amid large snapshots, if PERCEPTROND_ALL_KILLS is set.
std::vector<Case> Cases() {
  if (std::getenv("PERCEPTROND_ALL_KILLS") == nullptr) return {{"Small", 0, 0, 6, 3000}};
  return {{"Small", 0, 0, 40, 6000}, {"Large", 100'000, size_t{2} << 20, 20, 30'000}};
}

INSTANTIATE_TEST_SUITE_P(Snapshots, CrashTest, ::testing::ValuesIn(Cases()),
                         [](const auto& run) { return run.param.name; });

}  // namespace
}  // namespace perceptrond::testing
