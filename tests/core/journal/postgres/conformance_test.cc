// The journal in PostgreSQL: what every home must do, and that several servers may open it.
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "core/journal/postgres/postgres_table.h"
#include "core/journal/table_journal.h"
#include "core/journal/table_keys.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/journal_openers.h"
#include "tests/core/journal/tail_conformance.h"
#include "tests/support/postgres_server.h"
#include "tests/support/wait_until.h"

namespace perceptrond {
namespace {

testing::PostgresServer& Server() {
  static testing::PostgresServer server;
  return server;
}

std::string NewSchema() {
  static int schemas = 0;
  return absl::StrCat("s", ++schemas, "_", getpid());
}

std::unique_ptr<Journal> OpenIn(const std::string& schema, uint32_t partitions) {
  PostgresTable::Options options;
  options.connection = Server().connection();
  options.schema = schema;
  options.connections = 2;
  auto table = PostgresTable::Open(options);
  EXPECT_OK(table.status());
  TableJournal::Options journal;
  journal.partitions = partitions;
  journal.held_bytes = kTailBytes;
  journal.keeps_predictions = true;
  auto opened = TableJournal::Open(*std::move(table), journal);
  EXPECT_OK(opened.status());
  return *std::move(opened);
}

const Home kHome{.name = "Postgres",
                 .open = [](const std::string&) { return OpenIn(NewSchema(), 3); },
                 .models = 300};
INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance, ::testing::Values(kHome),
                         [](const auto& info) { return info.param.name; });
INSTANTIATE_TEST_SUITE_P(Homes, TailConformance, ::testing::Values(kHome),
                         [](const auto& info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Homes, Openers,
                         ::testing::Values(SharedHome{"Postgres",
                                                      [](int openers) {
                                                        std::vector<std::unique_ptr<Journal>> all;
                                                        const std::string schema = NewSchema();
                                                        while (openers-- > 0)
                                                          all.push_back(OpenIn(schema, 2));
                                                        return all;
                                                      }}),
                         [](const auto& info) { return info.param.name; });

TEST(ConnectionTest, OneThatOnlyWaitsNoticesSoonThatItsServerIsGone) {
  const auto connection = postgres::Connection::Open(Server().connection(), -1);
  ASSERT_OK(connection.status());
  PQconninfoOption* const settings = PQconninfo((*connection)->get());
  const auto seconds = [&](absl::string_view name) {
    for (const PQconninfoOption* one = settings; one->keyword != nullptr; ++one)
      if (name == one->keyword && one->val != nullptr) return std::stoi(one->val);
    return 3600;
  };
  EXPECT_LE(
      seconds("keepalives_idle") + seconds("keepalives_interval") * seconds("keepalives_count"),
      15);
  PQconninfoFree(settings);
}

TEST(PostgresTableTest, ADatabaseWithoutTheSchemaIsNotChangedByAReader) {
  PostgresTable::Options options;
  options.connection = Server().connection();
  options.schema = NewSchema();
  options.read_only = true;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(absl::IsNotFound(PostgresTable::Open(options).status()));
  OpenIn(options.schema, 2);
  EXPECT_OK(PostgresTable::Open(options).status());
}

TEST(PostgresTableTest, RowsOfAnySizeAreReadInOrder) {
  PostgresTable::Options options;
  options.connection = Server().connection();
  options.schema = NewSchema();
  const auto table = PostgresTable::Open(options);
  ASSERT_OK(table.status());
  std::vector<size_t> sizes(300, 10);
  sizes.insert(sizes.end(), 3, 3 << 20);
  sizes.push_back(5 << 20);
  sizes.insert(sizes.end(), 300, 20);
  for (size_t i = 0; i < sizes.size();) {
    TableChange change;
    for (size_t bytes = 0; i < sizes.size() && bytes < (4 << 20); bytes += sizes[i++])
      change.puts.push_back({"e" + table_keys::Number(i), std::string(sizes[i], 'x')});
    ASSERT_TRUE(*(*table)->Commit(change, false));
  }
  std::vector<size_t> found;
  ASSERT_OK((*table)->Scan({"e", "f"}, [&](absl::string_view key, absl::string_view value) {
    EXPECT_EQ(table_keys::ReadNumber(key.substr(1)), found.size());
    found.push_back(value.size());
    return true;
  }));
  EXPECT_EQ(found, sizes);
}

// Commits wait for a standby that is not there.
void MissStandby(postgres::Connection& connection) {
  for (const char* sql :
       {"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()"})
    ASSERT_OK(connection.Run(sql).status());
  testing::WaitUntil([&] {
    const auto now = connection.Run(
        "SELECT 1 FROM pg_settings WHERE name = 'synchronous_standby_names' AND setting = "
        "'nobody'");
    return now.ok() && PQntuples(now->get()) > 0;
  });
}

TEST(PostgresTableTest, ANewOneThatWouldWaitForAStandbyForEverSaysSo) {
  testing::PostgresServer server;
  const auto connection = postgres::Connection::Open(server.connection(), -1);
  ASSERT_OK(connection.status());
  MissStandby(**connection);
  PostgresTable::Options options;
  options.connection = server.connection();
  for (const auto durability :
       {PostgresTable::Durability::kSync, PostgresTable::Durability::kReplicated}) {
    options.durability = durability;
    const absl::Status status = PostgresTable::Open(options).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "standby")) << status;
  }
}

TEST(PostgresTableTest, ADatabaseThatTakesNoMoreConnectionsIsLostForThatReasonAndIsFoundAgain) {
  testing::PostgresServer server;
  const auto connection = postgres::Connection::Open(server.connection(), -1);
  ASSERT_OK(connection.status());
  for (const char* sql : {"CREATE ROLE fleet LOGIN", "GRANT CREATE ON DATABASE postgres TO fleet"})
    ASSERT_OK((*connection)->Run(sql).status());
  Mutex mutex;
  std::vector<std::string> heard;
  const auto hear = [&](absl::string_view what) {
    MutexLock lock(&mutex);
    heard.emplace_back(what);
  };
  const auto has_heard = [&](absl::string_view what) {
    MutexLock lock(&mutex);
    return std::any_of(heard.begin(), heard.end(),
                       [&](const auto& one) { return absl::StrContains(one, what); });
  };
  PostgresTable::Options options;
  options.connection = absl::StrCat(server.connection(), " user=fleet");
  options.on_lost = [&](const absl::Status& why) { hear(why.message()); };
  options.on_found = [&] { hear("found"); };
  const auto table = PostgresTable::Open(options);
  ASSERT_OK(table.status());
  TableChange change;
  change.puts.push_back({"m/a", ""});
  ASSERT_OK((*table)->Commit(change, true).status());
  ASSERT_OK((*connection)->Run("ALTER ROLE fleet CONNECTION LIMIT 0").status());
  testing::WaitUntil([&] {
    const auto ended = (*connection)
                           ->Run(
                               "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                               "WHERE usename = 'fleet'");
    return ended.ok() && PQntuples(ended->get()) == 0 && has_heard("too many connections");
  });
  // A connection that was there before breaks within a commit.
  testing::WaitUntil([&] {
    return absl::StrContains((*table)->Commit(change, true).status().message(),
                             "too many connections");
  });
  EXPECT_FALSE(has_heard("found"));
  ASSERT_OK((*connection)->Run("ALTER ROLE fleet CONNECTION LIMIT -1").status());
  testing::WaitUntil([&] { return has_heard("found"); });
  testing::WaitUntil([&] { return (*table)->Commit(change, true).ok(); });
}

TEST(PostgresTableTest, WhoFollowsItLooksForCommitsAlsoWhileItsThreadWaits) {
  PostgresTable::Options options;
  options.connection = Server().connection();
  options.schema = NewSchema();
  const auto table = PostgresTable::Open(options);
  ASSERT_OK(table.status());
  const auto other = PostgresTable::Open(options);
  ASSERT_OK(other.status());
  absl::Notification waits;
  absl::Notification ends;
  (*table)->Listen([&](absl::string_view) {
    if (waits.HasBeenNotified()) return;
    waits.Notify();
    ends.WaitForNotification();
  });
  // One that nobody listens to yet is lost.
  testing::WaitUntil([&] { return (*other)->Announce("x").ok() && waits.HasBeenNotified(); });
  uint64_t seen = (*table)->AwaitCommit(0, absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) {
    const uint64_t last = seen;
    testing::WaitUntil([&] { return (seen = (*table)->AwaitCommit(last, absl::Hours(1))) > last; });
  }
  ends.Notify();
}

TEST(PostgresTableTest, NothingWaitsOnceItIsClosed) {
  testing::PostgresServer server;
  PostgresTable::Options options;
  options.connection = server.connection();
  const auto table = PostgresTable::Open(options);
  ASSERT_OK(table.status());
  const auto connection = postgres::Connection::Open(server.connection(), -1);
  ASSERT_OK(connection.status());
  MissStandby(**connection);
  absl::Status committed;
  std::thread commits([&] {
    while (committed.ok()) committed = (*table)->Commit({.puts = {{"m/a", ""}}}, true).status();
  });
  std::thread waits([&] { (*table)->AwaitCommit(UINT64_MAX, absl::InfiniteDuration()); });
  testing::WaitUntil([&] {
    const auto waiting =
        (*connection)->Run("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
    return waiting.ok() && PQntuples(waiting->get()) > 0;
  });
  (*table)->Close();
  commits.join();
  waits.join();
  EXPECT_TRUE(absl::IsUnknown(committed)) << committed;
}

}  // namespace
}  // namespace perceptrond
