#include "server/maintenance/journals.h"

#include <unistd.h>

#include <cstdio>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/postgres/uri.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "server/config/flag_list.h"
#include "server/open_store.h"

namespace perceptrond {
namespace {

constexpr absl::Duration kProgressInterval = absl::Milliseconds(200);

// Says on a terminal how far a step is.
class ProgressLine {
 public:
  ~ProgressLine() { Clear(); }
  void Show(const char* step, uint64_t done, uint64_t models) {
    if (!terminal_ || absl::Now() < next_) return;
    next_ = absl::Now() + kProgressInterval;
    std::fprintf(stderr, "\r%s %llu of %llu models", step, static_cast<unsigned long long>(done),
                 static_cast<unsigned long long>(models));
    std::fflush(stderr);
    shown_ = true;
  }
  void Clear() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    shown_ = false;
    next_ = absl::InfinitePast();
  }

 private:
  const bool terminal_ = isatty(STDERR_FILENO) == 1;
  absl::Time next_ = absl::InfinitePast();
  bool shown_ = false;
};

absl::StatusOr<std::unique_ptr<Journal>> OpenToImport(const std::string& journal,
                                                      const Options& options,
                                                      const ImportOptions& import, bool sync) {
  if (IsFleet(journal)) {
    Options fleet = options;
    if (absl::Status status = SetFleet(journal, fleet); !status.ok()) return status;
    return OpenFleetJournal(fleet, {.read_only = false, .import = import});
  }
  RocksDbJournal::Options rocksdb;
  rocksdb.directory = journal;
  rocksdb.import = import;
  rocksdb.never_sync = !sync;
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> opened = RocksDbJournal::Open(rocksdb);
  if (!opened.ok()) return opened.status();
  return *std::move(opened);
}

}  // namespace

bool IsFleet(const std::string& journal) { return IsPostgresUri(journal); }

absl::Status SetFleet(const std::string& journal, Options& options) {
  const std::vector<Flag> flags = MakeFlags(&options);
  const auto flag = absl::c_find_if(flags, [](const Flag& one) { return one.name == "journal"; });
  const std::string wrong = flag->set({journal});
  if (wrong.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(NotValid(journal, wrong));
}

absl::StatusOr<std::unique_ptr<Journal>> OpenToRead(const std::string& journal, Options options) {
  if (IsFleet(journal)) {
    if (absl::Status status = SetFleet(journal, options); !status.ok()) return status;
    return OpenFleetJournal(options, {.read_only = true, .import = std::nullopt});
  }
  RocksDbJournal::Options rocksdb;
  rocksdb.directory = journal;
  rocksdb.read_only = true;
  absl::StatusOr<std::unique_ptr<RocksDbJournal>> opened = RocksDbJournal::Open(rocksdb);
  if (!opened.ok()) return opened.status();
  return *std::move(opened);
}

absl::StatusOr<MadeCopy> MakeCopy(Journal& from, const std::string& to, const Options& options,
                                  const ImportOptions& import) {
  ProgressLine line;
  const char* step = "copied";
  JournalCopy copy([&](uint64_t done, uint64_t models) { line.Show(step, done, models); });
  // Nothing is whole before the end: the disk may write when it likes.
  absl::StatusOr<std::unique_ptr<Journal>> journal =
      OpenToImport(to, options, import, /*sync=*/false);
  if (!journal.ok()) return journal.status();
  if (absl::Status status = copy.Run(from, **journal); !status.ok()) return status;
  line.Clear();
  step = "compared";
  if (!IsFleet(to)) {
    // What a server would open.
    journal->reset();
    journal = OpenToImport(to, options, import, /*sync=*/true);
    if (!journal.ok()) return journal.status();
  }
  if (absl::Status status = copy.Verify(**journal); !status.ok()) return status;
  return MadeCopy{*std::move(journal), copy.statistics()};
}

}  // namespace perceptrond
