// Damage to the files of a journal that has seen kills, flushes, compactions, snapshots and deletions: it is refused, or
// makes no difference. PERCEPTROND_DAMAGES: how many are drawn.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "gtest/gtest.h"
#include "tests/support/journals.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

namespace fs = std::filesystem;

using testing::CommitOne;
using testing::MakeAlias;
using testing::MakeEntry;
using testing::MakeRecord;
using testing::ReadRecords;

constexpr int kLives = 4;
constexpr int kStepsOfALife = 400;
constexpr int kDamages = 100;

absl::StatusOr<std::unique_ptr<RocksDbJournal>> OpenSmall(const std::string& directory) {
  RocksDbJournal::Options options;
  options.directory = directory;
  // Small, so that a short life has tables and compactions.
  options.write_buffer_bytes = 64 << 10;
  options.snapshot_part_bytes = 32 << 10;
  return RocksDbJournal::Open(options);
}

// Anything that a server does to its journal.
class Life {
 public:
  Life(Journal& journal, uint32_t seed) : journal_(journal), random_(seed) {}

  absl::Status Step() {
    const absl::StatusOr<std::vector<storage::ModelHeader>> models = journal_.List("", 1000);
    if (!models.ok()) return models.status();
    const uint32_t choice = Below(100);
    if (models->size() < 3 || choice < 4) return Create();
    const storage::ModelHeader& model = (*models)[Below(models->size())];
    const absl::StatusOr<storage::Counters> counters = journal_.LoadCounters(model.id());
    if (!counters.ok()) return counters.status();
    const auto revision = static_cast<uint64_t>(counters->report().updates());
    storage::ModelHeader changed = model;
    if (choice < 70) {
      const int rows = 1 + static_cast<int>(Below(20));
      return CommitOne(journal_, MakeEntry(model.id(), {MakeRecord(revision + 1, rows)}),
                       Below(4) == 0);
    }
    if (choice < 80) return journal_.SaveSnapshot(model.id(), State(revision));
    if (choice < 84) {
      storage::KeptSnapshot kept;
      kept.set_number(model.last_kept_number() + 1);
      changed.set_last_kept_number(kept.number());
      absl::Status status = journal_.SaveKept(model.id(), State(revision), kept);
      *changed.add_kept_snapshots() = kept;
      return status.ok() ? journal_.Replace(changed, model) : status;
    }
    if (choice < 88) {
      changed.mutable_model()->set_description(absl::StrCat("changed ", Below(1000)));
      return journal_.Replace(changed, model);
    }
    if (choice < 92) {
      changed.mutable_model()->set_name(Name());
      return journal_.Rename(changed, model);
    }
    if (choice < 96) {
      const std::string alias = absl::StrCat("aliases/", Below(5));
      const std::optional<Alias> before = journal_.aliases().Find(alias);
      return journal_.PutAlias(MakeAlias(alias, model.model().name(), Name()),
                               before.has_value() ? before->etag() : "");
    }
    return journal_.aliases().AllOf(model.model().name()).empty()
               ? journal_.Delete(model.model().name())
               : absl::OkStatus();
  }

 private:
  uint32_t Below(size_t end) { return static_cast<uint32_t>(random_() % end); }
  std::string Name() { return absl::StrCat("models/", random_()); }
  absl::Status Create() {
    storage::ModelHeader header;
    header.mutable_model()->set_name(Name());
    return journal_.Create(header);
  }
  storage::Snapshot State(uint64_t revision) {
    storage::Snapshot snapshot;
    snapshot.set_revision(revision);
    storage::StateArray& array = *snapshot.add_arrays();
    array.set_size(Below(30'000));
    for (uint64_t i = 0; i < array.size(); ++i)
      array.add_values(static_cast<float>(random_() % 1000));
    return snapshot;
  }

  Journal& journal_;
  std::mt19937 random_;
};

// Everything, by name; or why it cannot be had.
absl::StatusOr<std::map<std::string, std::string>> ReadAll(Journal& journal) {
  std::map<std::string, std::string> all;
  const auto add = [&](const std::string& key, const google::protobuf::MessageLite& message) {
    message.AppendToString(&all[key]);
  };
  const absl::StatusOr<std::vector<storage::ModelHeader>> models = journal.List("", 1000);
  if (!models.ok()) return models.status();
  for (const storage::ModelHeader& model : *models) {
    const std::string& name = model.model().name();
    add(name, model);
    const absl::StatusOr<CommittedState> committed = journal.LoadCommittedState(model.id());
    if (!committed.ok()) return committed.status();
    add(name + " counters", committed->counters);
    for (const storage::ProducerPosition& position : committed->positions)
      add(name + " position", position);
    const auto snapshot = journal.LoadSnapshot(model.id());
    if (!snapshot.ok()) return snapshot.status();
    uint64_t revision = 0;
    if (snapshot->has_value()) {
      add(name + " snapshot", **snapshot);
      revision = (*snapshot)->revision();
    }
    const auto records = ReadRecords(journal, model.id(), revision);
    if (!records.ok()) return records.status();
    // As a model that is loaded does.
    for (const storage::UpdateRecord& record : *records) {
      if (record.first_revision() > revision + 1) return absl::DataLossError("a record is missing");
      revision = LastRevision(record);
      add(name + " records", record);
    }
    if (revision != static_cast<uint64_t>(committed->counters.report().updates()))
      return absl::DataLossError("the last record is missing");
    for (const storage::KeptSnapshot& kept : model.kept_snapshots()) {
      const auto state = journal.LoadKept(model.id(), kept);
      if (!state.ok()) return state.status();
      add(name + " kept", *state);
    }
  }
  for (const Alias& alias : journal.aliases().List("", 1000)) add(alias.name(), alias);
  return all;
}

std::string ReadFile(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteFile(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

// Of the process that the tests below start: it uses a journal, and ends as by a failure.
TEST(DISABLED_Life, LivesOnceAndIsKilled) {
  const std::string life = std::getenv("PERCEPTROND_LIFE");
  const auto journal = OpenSmall(life.substr(1));
  ASSERT_OK(journal.status());
  Life one(**journal, static_cast<uint32_t>(life[0] - '0'));
  for (int i = 0; i < kStepsOfALife; ++i) ASSERT_OK(one.Step());
  kill(getpid(), SIGKILL);
}

class Damage : public ::testing::Test {
 protected:
  // The states that a directory was left in by kills, each the next one's beginning.
  Damage() {
    for (uint32_t life = 0; life < kLives; ++life) {
      const std::string directory = Left(static_cast<int>(life));
      if (life > 0) CopyTo(Left(static_cast<int>(life) - 1), directory);
      const pid_t child = fork();
      if (child == 0) {
        // RocksDB's threads are not in a process that was forked.
        setenv("PERCEPTROND_LIFE", absl::StrCat(life, directory).c_str(), 1);
        execl("/proc/self/exe", "damage_test", "--gtest_also_run_disabled_tests",
              "--gtest_filter=*LivesOnceAndIsKilled", nullptr);
        _exit(127);
      }
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << status;
      // RocksDB's notes, the lock, and space that is kept free.
      for (const auto& file : fs::directory_iterator(directory)) {
        const std::string name = file.path().filename();
        if (absl::StartsWith(name, "LO") || absl::StartsWith(name, "RESERVE"))
          fs::remove(file.path());
      }
    }
  }

  std::string Left(int life) const { return absl::StrCat(directory_.path(), "/", life); }
  static void CopyTo(const std::string& from, const std::string& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  }
  static std::vector<fs::path> FilesOf(const std::string& directory) {
    std::vector<fs::path> files;
    for (const auto& file : fs::directory_iterator(directory))
      if (file.is_regular_file()) files.push_back(file.path());
    std::sort(files.begin(), files.end());
    return files;
  }
  // Of the last life.
  std::string Copy() const {
    const std::string copy = directory_.path() + "/copy";
    CopyTo(Left(kLives - 1), copy);
    return copy;
  }

  const testing::TempDir directory_;
};

// Does some damage to a file of the directory, and says which. `before`: an earlier state of it.
std::string DoDamage(const std::vector<fs::path>& files, const std::string& before,
                     std::mt19937& random) {
  const auto below = [&](size_t end) { return static_cast<size_t>(random()) % end; };
  const fs::path& file = files[below(files.size())];
  std::string bytes = ReadFile(file);
  const std::string name = file.filename();
  const fs::path earlier = fs::path(before) / name;
  const size_t kind = below(6);
  if (kind == 0) {
    fs::remove(file);
    return "deleted " + name;
  }
  if (kind == 1 && fs::exists(earlier)) {
    fs::copy_file(earlier, file, fs::copy_options::overwrite_existing);
    return "set back " + name;
  }
  if (kind == 2) {
    const fs::path& other = files[below(files.size())];
    WriteFile(file, ReadFile(other));
    WriteFile(other, bytes);
    return absl::StrCat("swapped ", name, " and ", std::string(other.filename()));
  }
  if (kind == 3 && !bytes.empty()) {
    const size_t at = below(bytes.size());
    bytes[at] = static_cast<char>(bytes[at] ^ (1 + below(255)));
    WriteFile(file, bytes);
    return absl::StrCat("changed byte ", at, " of ", name);
  }
  if (kind == 4 && !bytes.empty()) {
    const size_t at = below(bytes.size()) / 4096 * 4096;
    const size_t size = std::min<size_t>(4096, bytes.size() - at);
    bytes.replace(at, size, size, '\0');
    WriteFile(file, bytes);
    return absl::StrCat("zeroed ", size, " bytes from ", at, " of ", name);
  }
  const size_t cut = std::min(bytes.size(), below(2) == 0 ? 1 + below(64) : 1 + below(1 << 20));
  WriteFile(file, bytes.substr(0, bytes.size() - cut));
  return absl::StrCat("cut ", cut, " bytes off ", name);
}

TEST_F(Damage, OfAnyFileIsRefusedOrMakesNoDifference) {
  const char* const given = std::getenv("PERCEPTROND_DAMAGES");
  int damages = kDamages;
  if (given != nullptr) ASSERT_TRUE(absl::SimpleAtoi(given, &damages));
  std::map<std::string, std::string> whole;
  {
    const auto journal = OpenSmall(Copy());
    ASSERT_OK(journal.status());
    const auto all = ReadAll(**journal);
    ASSERT_OK(all.status());
    whole = *all;
  }
  std::mt19937 random(1);
  int refused = 0;
  for (int i = 0; i < damages; ++i) {
    const std::string copy = Copy();
    const std::string what =
        DoDamage(FilesOf(copy), Left(static_cast<int>(random() % (kLives - 1))), random);
    const auto journal = OpenSmall(copy);
    absl::Status status = journal.status();
    if (status.ok()) {
      const auto all = ReadAll(**journal);
      status = all.status();
      if (status.ok()) EXPECT_TRUE(*all == whole) << i << ": " << what;
    }
    refused += status.ok() ? 0 : 1;
  }
  EXPECT_GT(refused, damages / 4);
  EXPECT_LT(refused, damages);
}

// Takes the end of the index, as far as the directory's watermark knows of it: what RocksDB was about to add when it was
// killed may be missing.
void CutIndex(const std::string& directory, uintmax_t bytes) {
  const std::string mark = ReadFile(directory + "/WATERMARK");
  uintmax_t known = 0;
  for (size_t at = 0; at < mark.size(); at += mark.size() / 2) {
    const size_t begin = mark.find("index_bytes ", at) + 12;
    known = std::max<uintmax_t>(known, std::strtoull(mark.c_str() + begin, nullptr, 10));
  }
  for (const auto& file : fs::directory_iterator(directory)) {
    if (absl::StartsWith(file.path().filename().string(), "MANIFEST"))
      fs::resize_file(file.path(), known - bytes);
  }
}

// A server started without a word, with half of what it had acknowledged, and deleted the table that had the rest.
TEST_F(Damage, ThatTakesTheEndOfTheIndexOfTablesIsRefusedAndChangesNothing) {
  for (const uintmax_t cut : {1, 16, 200}) {
    const std::string copy = Copy();
    CutIndex(copy, cut);
    std::map<std::string, std::string> before;
    for (const fs::path& file : FilesOf(copy)) before[file] = ReadFile(file);
    const absl::Status status = OpenSmall(copy).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    for (const auto& [file, bytes] : before) EXPECT_TRUE(ReadFile(file) == bytes) << file;
  }
}

// Of an index whose last change added a table: had one been replaced, those that it replaced would be gone.
TEST(DamageOfTheIndex, IsAcceptedWhenAskedTo) {
  const testing::TempDir directory;
  RocksDbJournal::Options options;
  options.directory = directory.path() + "/journal";
  // The second opening moves what the log has to a table.
  for (int i = 0; i < 2; ++i) {
    const auto journal = RocksDbJournal::Open(options);
    ASSERT_OK(journal.status());
    if (i == 0) testing::CreateModel(**journal, "a");
  }
  CutIndex(options.directory, 16);
  EXPECT_TRUE(absl::IsDataLoss(RocksDbJournal::Open(options).status()));
  options.accept_data_loss = true;
  const auto journal = RocksDbJournal::Open(options);
  ASSERT_OK(journal.status());
  EXPECT_TRUE((*journal)->Stats().may_lack_updates);
}

}  // namespace
}  // namespace perceptrond
