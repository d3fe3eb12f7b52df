// Models move from a data directory to a fleet and back, and a fleet's backups are made, checked and restored: with real
// servers, whose producers go on exactly once.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/journal/jetstream/connection.h"
#include "core/journal/jetstream/stream.h"
#include "tests/integration/storage_fixture.h"
#include "tests/support/nats_cluster.h"
#include "tests/support/own_port.h"
#include "tests/support/status.h"

namespace perceptrond::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::Not;

class MigrationTest : public StorageTest {
 protected:
  static constexpr int kPartitions = 2;

  static NatsCluster& Nats() {
    static NatsCluster nats(1);
    return nats;
  }
  MigrationTest() {
    static int fleets = 0;
    fleet_ = absl::StrCat("f", ++fleets);
  }
  std::string backups() const { return dir_.path() + "/backups"; }
  static std::string url() { return Nats().url(0); }
  static std::shared_ptr<jetstream::Connection> Connect() {
    jetstream::ConnectionOptions options;
    options.servers = Nats().urls();
    auto connection = jetstream::Connection::Open(options);
    EXPECT_OK(connection.status());
    return connection.ok() ? *std::move(connection) : nullptr;
  }
  std::string FleetFlags() const {
    return absl::StrCat(" --fleet ", fleet_, " --fleet-replicas 1 --fleet-partitions ",
                        kPartitions);
  }
  CommandResult RunOnFleet(const std::string& arguments) const {
    return RunServer(arguments + FleetFlags());
  }
  // A server of the fleet, once it writes all models.
  void StartFleet() {
    StartOn(absl::StrCat(dir_.path(), "/", fleet_),
            {"--journal", url(), "--fleet", fleet_, "--fleet-replicas", "1", "--fleet-partitions",
             absl::StrCat(kPartitions), "--fleet-timeout", "1s", "--fleet-address",
             absl::StrCat("127.0.0.1:", OwnPort())});
    const std::string all = absl::StrCat(kPartitions, "\n");
    for (const absl::Time end = absl::Now() + absl::Minutes(1);
         Metric("perceptrond_fleet_partitions_written") != all;) {
      ASSERT_LT(absl::Now(), end) << "the server does not write all partitions";
    }
  }
  // What a producer claims that was acknowledged everything up to `offset` by the server as it is.
  v1::Producer Claim(const v1::Model& model, int64_t offset, const std::string& history) {
    v1::Producer producer;
    producer.set_id("p");
    v1::Producer::Resume& claim = *producer.mutable_resume();
    claim.set_model_uid(model.uid());
    claim.set_acknowledged_offset(offset);
    claim.set_acknowledged_revision(model.revision());
    claim.set_history_id(history);
    return producer;
  }
  // Producer p sends the examples [from, to), and returns where it began and in which history.
  v1::StreamOpened LearnRange(const std::string& model, int64_t from, int64_t to,
                              const v1::Producer* claim = nullptr) {
    RawLearnStream stream(*learning_, model, "p");
    if (claim != nullptr) *stream.first().mutable_producer() = *claim;
    v1::StreamOpened opened = stream.Open();
    SendExamples(stream, from, to);
    EXPECT_TRUE(stream.Finish().ok());
    return opened;
  }
  // What may not differ, whatever keeps the model.
  static std::string Learned(const v1::Model& model) {
    return absl::StrCat(model.revision(), " ", model.report().examples(), " ",
                        model.report().mistakes(), " ", model.weights().SerializeAsString());
  }
  // Of a server that has learned all of it.
  std::string LearnedAtOnce(int64_t examples) {
    StartOn(dir_.path() + "/reference", {"--journal", "memory"});
    Create("m");
    LearnRange("m", 0, examples);
    return Learned(Get("m"));
  }

  std::string fleet_;
};

TEST_F(MigrationTest, ProducersGoOnExactlyOnceInTheFleetAndBack) {
  Start();
  Create("m");
  Create("other");
  const std::string history = LearnRange("m", 0, 500).history_id();
  const v1::Model before = Get("m");
  const CommandResult in_use = RunOnFleet("migrate " + data() + " " + url());
  EXPECT_EQ(in_use.exit_code, 1);
  EXPECT_THAT(in_use.out, HasSubstr("in use by another server"));
  EXPECT_EQ(server_->Terminate(), 0);

  const CommandResult there = RunOnFleet("migrate " + data() + " " + url() + " -o json");
  ASSERT_EQ(there.exit_code, 0) << there.out;
  EXPECT_THAT(there.out, HasSubstr("\"models\":\"2\""));
  EXPECT_THAT(there.out, HasSubstr(history));
  StartFleet();
  const v1::Model moved = Get("m");
  EXPECT_EQ(moved.uid(), before.uid());
  EXPECT_EQ(moved.etag(), before.etag());
  EXPECT_EQ(Learned(moved), Learned(before));
  const v1::Producer claim = Claim(before, 499, history);
  // The last hundred come once more.
  EXPECT_EQ(LearnRange("m", 400, 600, &claim).next_offset(), 500);
  const v1::Model in_fleet = Get("m");
  EXPECT_EQ(in_fleet.report().examples(), 600U);
  const std::string back = dir_.path() + "/back";
  const CommandResult serves = RunOnFleet("migrate " + url() + " " + back);
  EXPECT_EQ(serves.exit_code, 1);
  EXPECT_THAT(serves.out, HasSubstr("stop them first"));
  EXPECT_FALSE(fs::exists(back));
  EXPECT_EQ(server_->Terminate(), 0);

  const CommandResult here = RunOnFleet("migrate " + url() + " " + back);
  ASSERT_EQ(here.exit_code, 0) << here.out;
  const CommandResult verify = RunServer("verify " + back);
  EXPECT_EQ(verify.exit_code, 0) << verify.out;
  EXPECT_THAT(verify.out, HasSubstr("models/m  revision"));
  StartOn(back);
  EXPECT_EQ(Learned(Get("m")), Learned(in_fleet));
  const v1::Producer later = Claim(in_fleet, 599, history);
  EXPECT_EQ(LearnRange("m", 550, 700, &later).next_offset(), 600);
  const std::string learned = Learned(Get("m"));
  EXPECT_EQ(LearnedAtOnce(700), learned);
}

// The drill of docs/backup.md, of a fleet.
TEST_F(MigrationTest, ARestoredFleetRefusesProducersThatAreAheadAndLearnsTheRestAgain) {
  StartFleet();
  Create("m");
  const std::string history = LearnRange("m", 0, 300).history_id();
  const v1::Model at_backup = Get("m");
  // Another model learns meanwhile.
  Create("busy");
  std::atomic<bool> stop = false;
  std::atomic<int64_t> sent = 0;
  std::thread busy([&] {
    RawLearnStream learning(*learning_, "busy", "b");
    learning.Open();
    for (; !stop; ++sent) learning.Ask(Example(sent));
    EXPECT_TRUE(learning.Finish().ok());
  });
  const CommandResult backup = RunOnFleet("backup " + url() + " " + backups() + " --keep 2");
  EXPECT_EQ(backup.exit_code, 0) << backup.out;
  EXPECT_THAT(backup.out, HasSubstr("backups/1"));
  EXPECT_FALSE(fs::exists(backups() + "/copy"));
  const int64_t learned_meanwhile = sent;
  const CommandResult verify_fleet = RunOnFleet("verify " + url());
  EXPECT_EQ(verify_fleet.exit_code, 0) << verify_fleet.out;
  EXPECT_THAT(verify_fleet.out, HasSubstr("models/busy  revision"));
  stop = true;
  busy.join();
  EXPECT_GT(learned_meanwhile, 0);
  LearnRange("m", 300, 600);
  const v1::Model at_end = Get("m");
  server_->Kill();
  const CommandResult verify = RunServer("verify " + backups());
  EXPECT_EQ(verify.exit_code, 0) << verify.out;
  EXPECT_THAT(verify.out, HasSubstr(absl::StrCat("models/m  revision ", at_backup.revision(),
                                                 "  examples 300")));

  // The streams are lost.
  fleet_ += "-again";
  const CommandResult restore = RunOnFleet("restore " + backups() + " " + url());
  ASSERT_EQ(restore.exit_code, 0) << restore.out;
  StartFleet();
  EXPECT_EQ(Learned(Get("m")), Learned(at_backup));
  EXPECT_EQ(Reason(ClaimStatus("m", Claim(at_end, 599, history))), "UPDATES_LOST");
  // Also one whose revision the fleet has reached by other updates.
  EXPECT_EQ(Reason(ClaimStatus("m", Claim(at_backup, 599, history))), "UPDATES_LOST");
  EXPECT_EQ(Learned(Get("m")), Learned(at_backup));
  const v1::StreamOpened opened = LearnRange("m", 300, 600);
  EXPECT_EQ(opened.next_offset(), 300);
  EXPECT_NE(opened.history_id(), history);
  EXPECT_EQ(Learned(Get("m")), Learned(at_end));
  // The copy goes on with the backups of the fleet that it is a copy of.
  const CommandResult next = RunOnFleet("backup " + url() + " " + backups() + " --keep 1");
  EXPECT_EQ(next.exit_code, 0) << next.out;
  EXPECT_THAT(next.out, HasSubstr("backups/2"));
  server_->Terminate();
  // And a directory can have them, too.
  EXPECT_EQ(RunServer("restore " + backups() + " " + data()).exit_code, 0);
  Start();
  EXPECT_EQ(Learned(Get("m")), Learned(at_end));
}

TEST_F(MigrationTest, ACopyThatWasKilledIsUsedByNoServerAndGoesOnWhereItWas) {
  constexpr int kModels = 300;
  Start({"--durability", "none"});
  for (int i = 0; i < kModels; ++i) {
    const std::string name = absl::StrCat("m", i);
    Create(name);
    v1::LearnRequest request;
    request.set_model("models/" + name);
    *request.add_examples() = SparseExample(1, {{0, static_cast<float>(i)}, {1, -1}});
    grpc::ClientContext context;
    v1::LearnResponse result;
    ASSERT_TRUE(learning_->Learn(&context, request, &result).ok());
  }
  EXPECT_EQ(server_->Terminate(), 0);
  const auto kill_in_the_middle = [&](const std::string& arguments,
                                      const std::function<bool()>& begun) {
    const pid_t pid = fork();
    if (pid == 0) {
      const std::string command =
          absl::StrCat("exec ", PERCEPTROND_BINARY, " ", arguments, FleetFlags());
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    while (!begun() && waitpid(pid, nullptr, WNOHANG) == 0) {
    }
    kill(pid, SIGKILL);
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status));
  };
  // To the fleet.
  const auto connection = Connect();
  kill_in_the_middle("migrate " + data() + " " + url(), [&] {
    auto catalogue = jetstream::Stream::Open(
        connection,
        {.name = fleet_ + "-catalogue", .subject = fleet_ + ".catalogue", .must_exist = true});
    return catalogue.ok() && (*catalogue)->LastSequence().value_or(0) > 10;
  });
  const CommandResult verify = RunOnFleet("verify " + url());
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.out, HasSubstr("not whole"));
  const CommandResult server =
      RunOnFleet(absl::StrCat("--journal ", url(), " --address 127.0.0.1:0 --metrics-address off"));
  EXPECT_EQ(server.exit_code, 1);
  EXPECT_THAT(server.out, HasSubstr("not whole"));
  const CommandResult again = RunOnFleet("migrate " + data() + " " + url() + " -o json");
  ASSERT_EQ(again.exit_code, 0) << again.out;
  EXPECT_THAT(again.out, HasSubstr(absl::StrCat("\"models\":\"", kModels, "\"")));
  EXPECT_THAT(again.out, Not(HasSubstr("\"copiedBefore\":\"0\"")));
  const CommandResult once_more = RunOnFleet("migrate " + data() + " " + url());
  EXPECT_EQ(once_more.exit_code, 1);
  EXPECT_THAT(once_more.out, HasSubstr("has 300 models"));
  // And to a directory.
  const std::string back = dir_.path() + "/back";
  kill_in_the_middle("migrate " + url() + " " + back, [&] { return fs::exists(back + "/IMPORT"); });
  EXPECT_THAT(RunServer("verify " + back).out, HasSubstr("not whole"));
  EXPECT_THAT(RunServer("--data-dir " + back).out, HasSubstr("not whole"));
  const CommandResult here = RunOnFleet("migrate " + url() + " " + back);
  ASSERT_EQ(here.exit_code, 0) << here.out;
  const CommandResult sound = RunServer("verify " + back);
  EXPECT_EQ(sound.exit_code, 0) << sound.out;
  EXPECT_THAT(sound.out, HasSubstr(absl::StrCat("sound, ", kModels, " models")));
}

TEST_F(MigrationTest, AModelLargerThanAMessageOfNatsMovesWhole) {
  constexpr uint32_t kWeights = 1 << 20;
  Start();
  v1::CreateModelRequest create;
  create.set_model_id("large");
  create.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(kWeights);
  create.mutable_model()->mutable_learner()->mutable_averaged();
  v1::Model created;
  grpc::ClientContext creation;
  ASSERT_TRUE(models_->CreateModel(&creation, create, &created).ok());
  v1::PredictRequest predict;
  predict.set_model("models/large");
  std::mt19937 random(5);
  std::normal_distribution<float> normal;
  for (uint32_t row = 0; row < 6; ++row) {
    v1::LearnRequest request;
    request.set_model("models/large");
    v1::ExampleColumns& columns = *request.mutable_columns();
    for (uint32_t i = row; i < kWeights; i += 5) {
      columns.add_indices(i);
      columns.add_values(normal(random));
    }
    columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
    *predict.mutable_columns() = columns;
    columns.add_labels(row % 2 == 0 ? 1 : -1);
    grpc::ClientContext context;
    v1::LearnResponse result;
    const grpc::Status status = learning_->Learn(&context, request, &result);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  const auto ask = [&] {
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = predictions_->Predict(&context, predict, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_GT(response.revision(), 2);
    return absl::StrCat(response.revision(), " ", response.scores(0));
  };
  const std::string before = ask();
  EXPECT_EQ(server_->Terminate(), 0);
  const CommandResult there = RunOnFleet("migrate " + data() + " " + url());
  ASSERT_EQ(there.exit_code, 0) << there.out;
  StartFleet();
  EXPECT_EQ(ask(), before);
}

TEST_F(MigrationTest, DamageInAFleetIsFoundAndNeitherCopiedNorBackedUp) {
  StartFleet();
  Create("bad");
  LearnRange("bad", 0, 50);
  Create("good");
  EXPECT_EQ(server_->Terminate(), 0);
  EXPECT_EQ(RunOnFleet("verify " + url()).exit_code, 0);
  const auto connection = Connect();
  for (int i = 0; i < kPartitions; ++i) {
    const std::string partition = absl::StrCat("p", i);
    const auto stream =
        jetstream::Stream::Open(connection, {.name = absl::StrCat(fleet_, "-", partition),
                                             .subject = absl::StrCat(fleet_, ".", partition),
                                             .must_exist = true});
    ASSERT_OK(stream.status());
    // Some of its records, from the first.
    const auto last = (*stream)->LastSequence();
    ASSERT_OK((*stream)->DeleteUpTo(absl::StrCat(fleet_, ".", partition, ".m.>"), *last / 2));
  }
  const CommandResult verify = RunOnFleet("verify " + url());
  EXPECT_EQ(verify.exit_code, 1);
  EXPECT_THAT(verify.out, HasSubstr("models/bad  DAMAGED: "));
  EXPECT_THAT(verify.out, HasSubstr("models/good  revision 0"));
  const CommandResult migrate = RunOnFleet("migrate " + url() + " " + data());
  EXPECT_EQ(migrate.exit_code, 1);
  EXPECT_THAT(migrate.out, HasSubstr("models/bad"));
  const CommandResult backup = RunOnFleet("backup " + url() + " " + backups());
  EXPECT_EQ(backup.exit_code, 1);
  EXPECT_THAT(backup.out, HasSubstr("models/bad"));
}

TEST_F(MigrationTest, AFleetDoesNotClaimToKeepPredictionsAcrossRestarts) {
  Start();
  v1::CreateModelRequest create;
  create.set_model_id("m");
  v1::Model& model = *create.mutable_model();
  model.mutable_feature_space()->mutable_dense()->set_dimension(2);
  model.mutable_stored_predictions()->mutable_max_age()->set_seconds(3600);
  model.mutable_stored_predictions()->set_durable(true);
  v1::Model created;
  grpc::ClientContext creation;
  ASSERT_TRUE(models_->CreateModel(&creation, create, &created).ok());
  ASSERT_TRUE(created.stored_predictions().durable());
  EXPECT_EQ(server_->Terminate(), 0);
  const CommandResult moved = RunOnFleet("migrate " + data() + " " + url());
  ASSERT_EQ(moved.exit_code, 0) << moved.out;
  StartFleet();
  EXPECT_EQ(Get("m").stored_predictions().max_age().seconds(), 3600);
  EXPECT_FALSE(Get("m").stored_predictions().durable());
}

TEST_F(MigrationTest, SaysWhatIsWrongWithItsArguments) {
  const CommandResult both = RunServer("migrate " + data() + " " + backups());
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_THAT(both.out, HasSubstr("nats://HOST:PORT"));
  EXPECT_EQ(RunServer("migrate").exit_code, 2);
  EXPECT_THAT(RunServer("migrate nats://user:secret@n:1 " + data()).out,
              HasSubstr("go into the file of --nats-credentials"));
  const CommandResult absent = RunOnFleet("verify " + url());
  EXPECT_EQ(absent.exit_code, 1);
  EXPECT_THAT(absent.out, HasSubstr(fleet_));
  EXPECT_THAT(RunServer("migrate --help").out, HasSubstr("--nats-credentials"));
}

}  // namespace
}  // namespace perceptrond::testing
