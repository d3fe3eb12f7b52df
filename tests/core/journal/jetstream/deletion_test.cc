// What a snapshot covers is deleted, and what cannot be deleted is reported and does no harm.
#include <nats/nats.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/journal/jetstream/connection.h"
#include "core/journal/jetstream/stream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/support/fleets.h"
#include "tests/support/journals.h"

namespace perceptrond {
namespace {

using ::testing::HasSubstr;

class DeletionTest : public ::testing::Test {
 protected:
  DeletionTest() : fleet_(testing::NewFleet()) {
    journal_ = testing::OpenFleet(testing::SharedNats(1), fleet_);
    jetstream::ConnectionOptions options;
    options.servers = testing::SharedNats(1).urls();
    auto connection = jetstream::Connection::Open(options);
    EXPECT_OK(connection.status());
    connection_ = *std::move(connection);
  }

  // As an operator may.
  void DenyDeletions(const std::string& stream) {
    const std::shared_ptr<jetstream::Link> link = connection_->link();
    jsStreamInfo* info = nullptr;
    ASSERT_EQ(js_GetStreamInfo(&info, link->context, stream.c_str(), nullptr, nullptr), NATS_OK);
    jsStreamConfig config = *info->Config;
    config.DenyDelete = true;
    jsStreamInfo* updated = nullptr;
    EXPECT_EQ(js_UpdateStream(&updated, link->context, &config, nullptr, nullptr), NATS_OK);
    jsStreamInfo_Destroy(updated);
    jsStreamInfo_Destroy(info);
  }

  const std::string fleet_;
  std::unique_ptr<Journal> journal_;
  std::shared_ptr<jetstream::Connection> connection_;
};

TEST_F(DeletionTest, ASnapshotWhoseEntriesCannotBeDeletedSaysSoAndIsWhole) {
  const uint64_t id = testing::CreateModel(*journal_, "a").id();
  const uint32_t partition = journal_->PartitionOf(id);
  ASSERT_OK(
      journal_->TakeOver(partition, "here", journal_->LastSequence(partition).value()).status());
  const JournalEntry entry = testing::MakeEntry(id, {testing::MakeRecord(1, 3)});
  ASSERT_OK(testing::CommitOne(*journal_, entry));
  DenyDeletions(absl::StrCat(fleet_, "-p", partition));
  storage::Snapshot snapshot;
  snapshot.set_revision(3);
  const absl::Status saved = journal_->SaveSnapshot(id, snapshot);
  EXPECT_TRUE(absl::IsUnavailable(saved)) << saved;
  EXPECT_THAT(std::string(saved.message()), HasSubstr("cannot be deleted"));
  EXPECT_THAT(std::string(saved.message()), HasSubstr("JetStream error"));
  const auto loaded = journal_->LoadSnapshot(id);
  ASSERT_OK(loaded.status());
  ASSERT_TRUE(loaded->has_value());
  EXPECT_EQ((*loaded)->revision(), 3U);
  EXPECT_EQ(journal_->LoadCounters(id)->report().updates(), 3U);
}

TEST_F(DeletionTest, WhatAnotherOneDeletesMeanwhileIsNoError) {
  const auto stream =
      jetstream::Stream::Open(connection_, {fleet_ + "-own", fleet_ + ".own", 1, false});
  ASSERT_OK(stream.status());
  std::vector<jetstream::NewMessage> messages;
  for (int i = 0; i < 1000; ++i) messages.push_back({fleet_ + ".own.a", "x", ""});
  ASSERT_EQ((*stream)->Append(messages, 0, absl::Seconds(60))->written, messages.size());
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] { EXPECT_OK((*stream)->DeleteAll(fleet_ + ".own.>")); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_FALSE((*stream)->Last(fleet_ + ".own.a")->has_value());
}

}  // namespace
}  // namespace perceptrond
