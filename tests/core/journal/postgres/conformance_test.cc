// The journal in PostgreSQL: what every home must do, and that several servers may open it.
#include "core/journal/postgres/postgres_table.h"
#include "core/journal/table_journal.h"
#include "tests/core/journal/history_conformance.h"
#include "tests/core/journal/journal_openers.h"
#include "tests/core/journal/tail_conformance.h"
#include "tests/support/postgres_server.h"

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

INSTANTIATE_TEST_SUITE_P(Homes, JournalConformance,
                         ::testing::Values(Home{
                             .name = "Postgres",
                             .open = [](const std::string&) { return OpenIn(NewSchema(), 3); },
                             .models = 300}),
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

TEST(PostgresTableTest, ADatabaseWithoutTheSchemaIsNotChangedByAReader) {
  PostgresTable::Options options;
  options.connection = Server().connection();
  options.schema = NewSchema();
  options.read_only = true;
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(absl::IsNotFound(PostgresTable::Open(options).status()));
  OpenIn(options.schema, 2);
  EXPECT_OK(PostgresTable::Open(options).status());
}

}  // namespace
}  // namespace perceptrond
