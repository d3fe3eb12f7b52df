// What an empty server takes, what models take on disk, and how soon one of very many answers that is not in memory.
#include <rocksdb/db.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb_journal.h"
#include "core/store/store.h"
#include "tests/bench/benchmark.h"
#include "tests/bench/rows.h"
#include "tests/bench/servers.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {
namespace {

using Clock = std::chrono::steady_clock;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

void Require(const rocksdb::Status& status) {
  if (!status.ok()) Require(absl::InternalError(status.ToString()));
}

double Since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// What the directory's files take on the disk, not how long they say they are.
double DiskBytes(const std::string& directory) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    struct stat file = {};
    if (stat(entry.path().c_str(), &file) == 0 && S_ISREG(file.st_mode))
      bytes += 512.0 * static_cast<double>(file.st_blocks);
  }
  return bytes;
}

// The lengths of the log's files.
double LogBytes(const std::string& directory) {
  double bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.path().extension() == ".log") bytes += static_cast<double>(entry.file_size());
  }
  return bytes;
}

std::unique_ptr<Store> OpenStore(const std::string& directory, const Store::Options& options,
                                 bool never_sync = false) {
  RocksDbJournal::Options at;
  at.directory = directory;
  at.never_sync = never_sync;
  auto journal = RocksDbJournal::Open(at);
  Require(journal.status());
  return std::make_unique<Store>(*std::move(journal), options);
}

std::shared_ptr<Model> AddModel(Store& store, const std::string& id, uint32_t dimension) {
  ::perceptron::v1::Model settings;
  settings.set_name("models/" + id);
  settings.mutable_feature_space()->mutable_dense()->set_dimension(dimension);
  settings.mutable_learner()->set_bias_input(0);
  Require(store.Create(settings, "", false).status());
  auto model = store.Acquire(settings.name());
  Require(model.status());
  return *std::move(model);
}

// Learns the rows, all of them mistakes, a call for each thousand, until there are `updates`. Calls
// `after_commit` after each call's commit.
void Update(
    Store& store, const std::shared_ptr<Model>& model, const Rows& rows, uint64_t updates,
    const std::function<void()>& after_commit = [] {}) {
  constexpr size_t kRowsACall = 1000;
  Producer producer("");
  LearnOutcome outcome;
  for (size_t i = 0; model->revision() < updates; i = (i + kRowsACall) % rows.size()) {
    const Rows part = rows.Slice(i, std::min(i + kRowsACall, rows.size()));
    LearnCall call;
    call.batch = part.batch();
    call.producer = &producer;
    Require(model->Learn(call, outcome));
    Require(store.committer().Commit(model));
    after_commit();
  }
}

constexpr uint32_t kSize = 1U << 20;

Benchmark JournalBytes(const Options& options) {
  return {{{"journal_bytes_per_update", "bytes", Goal::kAtMost, 1.3}},
          [&options](int /*rep*/, std::vector<Figure>& figures) {
            const testing::TempDir dir;
            Store::Options store_options;
            store_options.snapshot_bytes = UINT64_MAX / 4;
            const auto store = OpenStore(dir.path() + "/journal", store_options);
            const auto model = AddModel(*store, "m", kSize);
            const Rows rows = MistakenRows(1, kSize, 1);
            const uint64_t updates = options.tiny ? 1000 : 20'000;
            const double before = LogBytes(dir.path() + "/journal");
            Update(*store, model, rows, updates);
            const double bytes = LogBytes(dir.path() + "/journal") - before;
            // Its indices and values, and its label.
            const double packed = kFeatures * (sizeof(uint32_t) + sizeof(float)) + 1;
            Add(figures[0], bytes / static_cast<double>(model->revision()), packed);
          }};
}

// As in a server's run: each commit synced, with the snapshots that it takes, and what RocksDB
// keeps; the most that there is at any time, and what there is in the end. Each repetition goes on
// where the one before ended, so that it finds the files at another place of their round.
Benchmark DiskOfUpdates(const Options& options) {
  struct State {
    testing::TempDir dir;
    std::unique_ptr<Store> store;
    std::shared_ptr<Model> model;
    Rows rows;
    uint64_t updates = 0;
  };
  auto state = std::make_shared<State>();
  return {{{"disk_peak_of_updates", "bytes", Goal::kAtMost, 5},
           {"disk_after_updates", "bytes", Goal::kAtMost, 5}},
          [state, &options](int /*rep*/, std::vector<Figure>& figures) {
            const std::string directory = state->dir.path() + "/journal";
            if (state->store == nullptr) {
              Store::Options store_options;
              store_options.committer.durability = Durability::kSync;
              state->store = OpenStore(directory, store_options);
              state->model = AddModel(*state->store, "m", kSize);
              state->rows = MistakenRows(1, kSize, 1);
              state->updates = options.tiny ? 1000 : 10'000'000;
            }
            double peak = 0;
            Update(*state->store, state->model, state->rows, state->updates,
                   [&] { peak = std::max(peak, DiskBytes(directory)); });
            state->updates += options.tiny ? 1000 : 300'000;
            Add(figures[0], peak, sizeof(float) * double{kSize});
            Add(figures[1], DiskBytes(directory), sizeof(float) * double{kSize});
          }};
}

// Very many models on disk, each with a snapshot, and as many values of a model's size in a
// database that is nothing else.
class ManyModels {
 public:
  explicit ManyModels(size_t models) : order_(models) {
    std::iota(order_.begin(), order_.end(), 0);
    std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
    AddModels();
    AddValues();
  }

  // Starts a server with them.
  std::vector<std::string> Command() const {
    std::vector<std::string> command = ServerCommand(Server::kReal, dir_.path());
    command.insert(command.end(), {"--memory-budget", "2GiB"});
    return command;
  }

  // Seconds from asking for a model that is not in memory to its prediction, `count` times.
  std::vector<double> PredictCold(size_t count) {
    Store::Options options;
    options.memory_budget = size_t{2} << 30;
    const auto store = OpenStore(models_directory(), options);
    std::vector<double> seconds;
    PredictOutcome outcome;
    for (size_t i = 0; i < count; ++i) {
      const Clock::time_point start = Clock::now();
      const auto model = store->Acquire("models/" + Id(Next()));
      Require(model.status());
      Require((*model)->Predict(example_.batch(), {}, 0, outcome));
      seconds.push_back(Since(start));
    }
    return seconds;
  }
  std::vector<double> Get(size_t count) {
    rocksdb::DB* opened = nullptr;
    Require(rocksdb::DB::Open(ValuesOptions(), values_directory(), &opened));
    const std::unique_ptr<rocksdb::DB> db(opened);
    std::vector<double> seconds;
    std::string value;
    for (size_t i = 0; i < count; ++i) {
      const Clock::time_point start = Clock::now();
      Require(db->Get(rocksdb::ReadOptions(), Id(Next()), &value));
      seconds.push_back(Since(start));
    }
    return seconds;
  }

 private:
  static constexpr uint32_t kWeights = 1000;
  // After this many updates a model of that size has a snapshot.
  static constexpr size_t kUpdates = 3;

  static std::string Id(size_t number) { return absl::StrCat("model-", number); }
  static rocksdb::Options ValuesOptions() {
    rocksdb::Options options;
    options.create_if_missing = true;
    return options;
  }
  std::string models_directory() const { return dir_.path() + "/data"; }
  std::string values_directory() const { return dir_.path() + "/values"; }
  size_t Next() { return order_[next_++ % order_.size()]; }

  void AddModels() {
    const Rows rows = MistakenDenseRows(kUpdates, kWeights, 1);
    Store::Options options;
    options.committer.durability = Durability::kNone;
    options.snapshot_bytes = 1;
    const auto store = OpenStore(models_directory(), options, /*never_sync=*/true);
    for (const size_t number : order_) {
      const auto model = AddModel(*store, Id(number), kWeights);
      Update(*store, model, rows, kUpdates);
    }
    example_ = rows.Slice(0, 1);
  }
  void AddValues() {
    rocksdb::DB* opened = nullptr;
    Require(rocksdb::DB::Open(ValuesOptions(), values_directory(), &opened));
    const std::unique_ptr<rocksdb::DB> db(opened);
    std::mt19937 random(1);
    std::vector<uint32_t> weights(kWeights);
    for (const size_t number : order_) {
      std::generate(weights.begin(), weights.end(), std::ref(random));
      const rocksdb::Slice value(reinterpret_cast<const char*>(weights.data()),
                                 weights.size() * sizeof(uint32_t));
      Require(db->Put(rocksdb::WriteOptions(), Id(number), value));
    }
  }

  const testing::TempDir dir_;
  std::vector<size_t> order_;
  size_t next_ = 0;
  Rows example_;
};

double Percentile99(std::vector<double> values) {
  const auto percentile = values.begin() + static_cast<std::ptrdiff_t>(values.size() * 99 / 100);
  std::nth_element(values.begin(), percentile, values.end());
  return *percentile;
}

Benchmark ColdModels(const Options& options) {
  auto many = std::make_shared<std::unique_ptr<ManyModels>>();
  return {{{"many_models_start", "s", Goal::kAtMost, 2},
           {"many_models_cold_p99", "us", Goal::kAtMost, 3}},
          [many, &options](int rep, std::vector<Figure>& figures) {
            if (*many == nullptr)
              *many = std::make_unique<ManyModels>(options.tiny ? 100 : 100'000);
            const testing::TempDir empty;
            double full_start = 0;
            double empty_start = 0;
            InTurn(
                rep, [&] { full_start = testing::Process((*many)->Command()).start_seconds(); },
                [&] {
                  empty_start =
                      testing::Process(ServerCommand(Server::kReal, empty.path())).start_seconds();
                });
            Add(figures[0], full_start, empty_start);
            const size_t asked = options.tiny ? 50 : 5'000;
            double cold = 0;
            double get = 0;
            InTurn(
                rep, [&] { cold = Percentile99((*many)->PredictCold(asked)); },
                [&] { get = Percentile99((*many)->Get(asked)); });
            Add(figures[1], 1e6 * cold, 1e6 * get);
          }};
}

}  // namespace

// Of an empty server, before rows that write gigabytes: after them, a start waits for the disk.
std::vector<Benchmark> ProcessBenchmarks(const Options& /*options*/) {
  return {{{{"empty_resident_memory", "bytes", Goal::kAtMost, 2},
            {"empty_start", "s", Goal::kAtMost, 2}},
           [](int rep, std::vector<Figure>& figures) {
             const testing::TempDir dir;
             std::unique_ptr<testing::Process> real;
             std::unique_ptr<testing::Process> null;
             InTurn(
                 rep,
                 [&] {
                   real =
                       std::make_unique<testing::Process>(ServerCommand(Server::kReal, dir.path()));
                 },
                 [&] {
                   null =
                       std::make_unique<testing::Process>(ServerCommand(Server::kNull, dir.path()));
                 });
             Add(figures[0], real->ResidentBytes(), null->ResidentBytes());
             Add(figures[1], real->start_seconds(), null->start_seconds());
           }}};
}

std::vector<Benchmark> StoreBenchmarks(const Options& options) {
  return {JournalBytes(options), DiskOfUpdates(options), ColdModels(options)};
}

}  // namespace perceptrond::bench
