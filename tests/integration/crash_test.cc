// The server is killed with SIGKILL again and again while producers send. After each kill the
// journal is read as a restart would read it: everything acknowledged is in, nothing is in twice,
// and the weights are those of a serial run over the journal, bit for bit.
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "client/client.h"
#include "client/learn_stream.h"
#include "core/journal/rocksdb_journal.h"
#include "core/model/model.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

constexpr int kProducers = 4;
constexpr int kKills = 50;
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

// What the server said it has done, as the producers heard it.
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
  // Waits for so many more.
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

// The textbook, over the journal's rows.
struct SerialRun {
  std::vector<float> weights = std::vector<float>(kDimension);
  float offset = 0;
  uint64_t revision = 0;
  std::map<Sent, uint64_t> learned;
  std::map<uint64_t, Sent> by_revision;

  void Learn(const uint32_t* indices, const float* values, size_t size, int label) {
    double score = offset;
    for (size_t i = 0; i < size; ++i) score += static_cast<double>(weights[indices[i]]) * values[i];
    // Lanes are summed in another order there: a score this close to 0 may fall on either side.
    EXPECT_LE(label * score, 1e-9) << "no mistake at revision " << revision;
    for (size_t i = 0; i < size; ++i) {
      weights[indices[i]] = static_cast<float>(static_cast<double>(weights[indices[i]]) +
                                               label * static_cast<double>(values[i]));
    }
    offset = static_cast<float>(static_cast<double>(offset) + label);
    ++revision;
    const Sent sent{static_cast<int>(indices[size - 1] - kShared),
                    static_cast<int64_t>(values[size - 1] / kNumberUnit)};
    EXPECT_TRUE(learned.emplace(sent, revision).second)
        << "learned twice: " << sent.producer << " " << sent.number;
    by_revision[revision] = sent;
  }
};

class CrashTest : public ServerTest {
 protected:
  // The whole log is kept, to be read.
  CrashTest() : ServerTest({"--snapshot-bytes", "1GiB"}) { CreateDense("m", kDimension); }

  void CheckJournal(Acknowledged& acknowledged, bool finished) {
    RocksDbJournal::Options options;
    options.directory = dir_.path() + "/data";
    auto journal = RocksDbJournal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    const auto header = (*journal)->Find("models/m");
    ASSERT_TRUE(header.ok()) << header.status();
    const auto standing = (*journal)->LoadStanding(header->id());
    ASSERT_TRUE(standing.ok()) << standing.status();

    SerialRun serial;
    const absl::Status replayed =
        (*journal)->Replay(header->id(), 0, [&](const storage::UpdateRecord& record, size_t) {
          EXPECT_EQ(record.first_revision(), serial.revision + 1);
          uint32_t begin = 0;
          for (int i = 0; i < record.labels_size(); ++i) {
            serial.Learn(record.indices().data() + begin, record.values().data() + begin,
                         record.row_ends(i) - begin, record.labels(i));
            begin = record.row_ends(i);
          }
          return absl::OkStatus();
        });
    ASSERT_TRUE(replayed.ok()) << replayed;

    std::map<std::string, int64_t> positions;
    int64_t accounted = 0;
    for (const auto& position : standing->positions) {
      positions[position.id()] = position.next_offset();
      accounted += position.next_offset();
    }
    // Counters and positions are one cut: each example counts once.
    EXPECT_EQ(standing->counters.examples(), accounted);
    EXPECT_EQ(standing->counters.updates(), serial.revision);
    for (int producer = 0; producer < kProducers; ++producer) {
      const int64_t position = positions["p" + std::to_string(producer)];
      EXPECT_GE(position, acknowledged.through(producer)) << "an acknowledged example is not in";
      if (finished) {
        EXPECT_EQ(position, acknowledged.through(producer));
      }
    }
    for (const auto& [sent, revision] : serial.learned) {
      EXPECT_LT(sent.number, positions["p" + std::to_string(sent.producer)])
          << "learned ahead of the position";
    }
    for (const auto& [revision, sent] : acknowledged.updates()) {
      ASSERT_TRUE(serial.by_revision.contains(revision)) << "an acknowledged update is not in";
      EXPECT_EQ(serial.by_revision[revision], sent);
    }
    const auto model = Model::Load(*header, **journal, {});
    ASSERT_TRUE(model.ok()) << model.status();
    const Model::View view = (*model)->MakeView();
    EXPECT_EQ(view.weights.revision, serial.revision);
    std::vector<float> loaded(kDimension);
    for (size_t i = 0; i < view.weights.indices.size(); ++i)
      loaded[view.weights.indices[i]] = view.weights.values[i];
    EXPECT_EQ(0, std::memcmp(loaded.data(), serial.weights.data(), kDimension * sizeof(float)));
    EXPECT_EQ(view.weights.offset, serial.offset);
  }
};

TEST_F(CrashTest, EverythingAcknowledgedIsInOnceAfterEachOfFiftyKills) {
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
      options.on_result = [&, producer](const client::LearnAnswer& answer) {
        acknowledged.Add(producer, answer);
      };
      auto stream = client::LearnStream::Open(
          client::Client::Connect(server_.address()).connection(), "m", options);
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
  for (int kill = 0; kill < kKills && !HasFailure(); ++kill) {
    acknowledged.Await(1 + random() % 3000);
    server_.Kill();
    CheckJournal(acknowledged, /*finished=*/false);
    server_.Restart();
  }
  stop = true;
  for (std::thread& producer : producers) producer.join();
  Connect();
  const v1::Model model = Get("m");
  EXPECT_EQ(server_.Terminate(), 0);
  CheckJournal(acknowledged, /*finished=*/true);
  EXPECT_GT(model.revision(), 0);
  std::printf("%d kills, %lld examples, %lld updates\n", kKills,
              static_cast<long long>(model.report().examples()),
              static_cast<long long>(model.revision()));
}

}  // namespace
}  // namespace perceptrond::testing
