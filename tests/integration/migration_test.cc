// The drill of docs/backup.md for a fleet: it is backed up while it learns, lost, and restored; producers that are ahead
// of the copy are told so. fleet_path_test has the copies that lose nothing.
#include <atomic>
#include <filesystem>
#include <thread>

#include "core/journal/jetstream/connection.h"
#include "core/journal/jetstream/stream.h"
#include "tests/integration/fleet_process.h"
#include "tests/support/status.h"

namespace perceptrond::testing {
namespace {

class MigrationTest : public FleetProcesses {
 protected:
  // One server, once it writes all models.
  Member& StartOnly() {
    members_.clear();
    Member& member = Start();
    return AwaitWriter(), member;
  }
  static void Create(Member& member, const std::string& id) {
    v1::CreateModelRequest create;
    create.set_model_id(id);
    create.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
    grpc::ClientContext context;
    v1::Model created;
    ASSERT_TRUE(member.models->CreateModel(&context, create, &created).ok());
  }
  // The i-th example: nearly every one is a mistake.
  static v1::LearnStreamRequest Row(int64_t i) {
    v1::LearnStreamRequest request;
    request.set_first_offset(i);
    *request.add_examples() =
        SparseExample(i % 2 == 0 ? 1 : -1, {{0, 1.0F + static_cast<float>(i % 7)}, {1, 0.5F}});
    return request;
  }
  // Producer p sends the rows [from, to); where it began, and in which history.
  static v1::StreamOpened LearnRange(Member& member, int64_t from, int64_t to) {
    RawLearnStream stream(*member.learning, "m", "p");
    v1::StreamOpened opened = stream.Open();
    for (int64_t i = from; i < to; ++i) EXPECT_EQ(stream.Ask(Row(i)).acknowledged_offset(), i);
    EXPECT_TRUE(stream.Finish().ok());
    return opened;
  }
  // What a producer hears that was acknowledged the rows up to `offset` when the model was so.
  static std::string ReasonOfClaim(Member& member, const v1::Model& model, int64_t offset,
                                   const std::string& history) {
    RawLearnStream stream(*member.learning, "m", "p");
    v1::Producer::Resume& claim = *stream.first().mutable_producer()->mutable_resume();
    claim.set_model_uid(model.uid());
    claim.set_acknowledged_offset(offset);
    claim.set_acknowledged_revision(model.revision());
    claim.set_history_id(history);
    stream.Send(stream.first());
    return Reason(stream.Finish());
  }
  static std::string Learned(const v1::Model& model) {
    return absl::StrCat(model.revision(), " ", model.report().examples(), " ",
                        model.report().mistakes(), " ", model.weights().SerializeAsString());
  }

  const std::string backups_ = dir_.path() + "/backups";
};

TEST_F(MigrationTest, ARestoredFleetRefusesProducersThatAreAheadAndLearnsTheRestAgain) {
  Member& first = StartOnly();
  Create(first, "m");
  const std::string history = LearnRange(first, 0, 300).history_id();
  const v1::Model at_backup = first.Get("m");
  // Another model learns meanwhile.
  Create(first, "busy");
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    RawLearnStream learning(*first.learning, "busy", "b");
    learning.Open();
    for (int64_t i = 0; !stop; ++i) learning.Ask(Row(i));
    EXPECT_TRUE(learning.Finish().ok());
  });
  const CommandResult backup = RunOnFleet("backup " + url() + " " + backups_ + " --keep 2");
  EXPECT_EQ(backup.exit_code, 0) << backup.out;
  EXPECT_EQ(RunOnFleet("verify " + url()).exit_code, 0);
  stop = true;
  busy.join();
  LearnRange(first, 300, 600);
  const v1::Model at_end = first.Get("m");
  first.process.Kill();
  EXPECT_EQ(RunServer("verify " + backups_).exit_code, 0);
  // The streams are lost.
  fleet_ = "again";
  const CommandResult restore = RunOnFleet("restore " + backups_ + " " + url());
  ASSERT_EQ(restore.exit_code, 0) << restore.out;
  Member& second = StartOnly();
  EXPECT_EQ(Learned(second.Get("m")), Learned(at_backup));
  EXPECT_EQ(ReasonOfClaim(second, at_end, 599, history), "UPDATES_LOST");
  // Also one whose revision the fleet has reached by other updates.
  EXPECT_EQ(ReasonOfClaim(second, at_backup, 599, history), "UPDATES_LOST");
  const v1::StreamOpened opened = LearnRange(second, 300, 600);
  EXPECT_EQ(opened.next_offset(), 300);
  EXPECT_NE(opened.history_id(), history);
  EXPECT_EQ(Learned(second.Get("m")), Learned(at_end));
  // The copy goes on with the backups of the fleet that it is a copy of, and a directory can have them, too.
  const CommandResult next = RunOnFleet("backup " + url() + " " + backups_ + " --keep 1");
  EXPECT_EQ(next.exit_code, 0) << next.out;
  EXPECT_EQ(second.process.Terminate(), 0);
  const std::string data = dir_.path() + "/data";
  EXPECT_EQ(RunServer("restore " + backups_ + " " + data).exit_code, 0);
  Member alone(data, {});
  EXPECT_EQ(Learned(alone.Get("m")), Learned(at_end));
}

TEST_F(MigrationTest, DamageInAFleetIsFoundAndNeitherCopiedNorBackedUp) {
  Member& member = StartOnly();
  Create(member, "m");
  LearnRange(member, 0, 50);
  EXPECT_EQ(member.process.Terminate(), 0);
  EXPECT_EQ(RunOnFleet("verify " + url()).exit_code, 0);
  jetstream::ConnectionOptions options;
  options.servers = nats_.urls();
  const auto connection = jetstream::Connection::Open(options);
  ASSERT_OK(connection.status());
  const auto stream =
      jetstream::Stream::Open(*connection, {.name = "f-p0", .subject = "f.p0", .must_exist = true});
  ASSERT_OK(stream.status());
  // Some of its records, from the first.
  ASSERT_OK((*stream)->DeleteUpTo("f.p0.m.>", (*stream)->LastSequence().value() / 2));
  for (const std::string& command :
       {"verify " + url(), "migrate " + url() + " " + dir_.path() + "/data",
        "backup " + url() + " " + backups_}) {
    const CommandResult refused = RunOnFleet(command);
    EXPECT_EQ(refused.exit_code, 1) << command;
    EXPECT_THAT(refused.out, ::testing::HasSubstr("models/m")) << command;
  }
}

TEST(MigrationFlags, WrongArgumentsEndTheCommandWithTwoAndTheServerRepeatsNoPassword) {
  for (const char* const arguments :
       {"migrate", "migrate /tmp/a /tmp/b", "migrate nats://user:secret@n:1 /tmp/a"})
    EXPECT_EQ(RunServer(arguments).exit_code, 2) << arguments;
  for (const char* const url :
       {"nats://user:secret@n:1", "nats://a:1,nats://user:top@secret@n:1"}) {
    const CommandResult refused = RunServer(absl::StrCat("--journal ", url));
    EXPECT_EQ(refused.exit_code, 2) << url;
    EXPECT_THAT(refused.out, ::testing::Not(::testing::HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace perceptrond::testing
