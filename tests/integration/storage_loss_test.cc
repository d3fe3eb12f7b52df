// A journal that lost updates which were acknowledged: the server says so, and so does a model to a
// producer that claims them.
#include <zlib.h>

#include <fstream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/storage_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

class LossTest : public StorageTest {
 protected:
  // Learns all examples. Fills claim_ as a client would.
  void Learn(const std::vector<std::string>& flags) {
    Start(flags);
    claim_.set_id("p");
    claim_.mutable_resume()->set_model_uid(Create("m").uid());
    Claim(LearnExamples("m", kExamples));
    before_ = Get("m");
  }
  void Claim(const v1::LearnResult& last) {
    v1::Producer::Resume& resume = *claim_.mutable_resume();
    resume.set_acknowledged_offset(last.acknowledged_offset());
    resume.set_acknowledged_revision(last.revision());
    resume.set_acknowledged_epoch(last.epoch());
  }
  void CutTheLog() {
    std::filesystem::resize_file(Log(data()), std::filesystem::file_size(Log(data())) / 2);
  }
  void LearnAndCutTheLog() {
    Learn({});
    EXPECT_EQ(server_->Terminate(), 0);
    CutTheLog();
  }
  // Has the journal come from before the machine's last start.
  void ChangeTheBoot() {
    const std::string path = data() + "/WATERMARK";
    std::string changed;
    std::ifstream file(path);
    for (std::string slot; std::getline(file, slot);) {
      std::string text = slot.substr(0, slot.find(" crc "));
      const size_t boot = text.find(" boot ") + 6;
      text.replace(boot, text.find(' ', boot) - boot, "another");
      const uint64_t sum = crc32(0, reinterpret_cast<const Bytef*>(text.data()), text.size());
      text = absl::StrCat(text, " crc ", sum);
      text.resize(slot.size(), ' ');
      changed += text + "\n";
    }
    file.close();
    std::ofstream(path) << changed;
  }
  void StartWithTheLoss() { Start({"--accept-data-loss", "yes"}); }
  // Another producer's updates take the model beyond the claim's revision.
  void ExpectRefusedAfterOthersUpdates() {
    RawLearnStream other(*learning_, "m", "q");
    other.Open();
    SendExamples(other, 0, 2 * kExamples);
    EXPECT_TRUE(other.Finish().ok());
    ASSERT_GT(Get("m").revision(), claim_.resume().acknowledged_revision());
    EXPECT_EQ(Reason(ClaimStatus("m", claim_)), "UPDATES_LOST");
  }
  // The offset that the server expects of the producer.
  int64_t Position() {
    RawLearnStream stream(*learning_, "m", "p");
    const int64_t position = stream.Open().next_offset();
    EXPECT_TRUE(stream.Finish().ok());
    return position;
  }

  v1::Producer claim_;
  v1::Model before_;
};

TEST_F(LossTest, TheServerRefusesToStartAndSaysHowToGoOn) {
  LearnAndCutTheLog();
  EXPECT_THAT(RunToEnd(1, "--address 127.0.0.1:0 --metrics-address off --data-dir " + data()),
              ::testing::AllOf(HasSubstr("--accept-data-loss=yes"), HasSubstr(data())));
  EXPECT_THAT(RunToEnd(1, "verify " + data()), HasSubstr("the log ends early"));
  StartWithTheLoss();
  EXPECT_GT(std::stoi(Metric("perceptrond_journal_lost_writes")), 0);
}

TEST_F(LossTest, AnIndexOfTablesThatLostItsEndIsNamedByEachCommandAndNoTableIsDeleted) {
  Learn({});
  server_->Kill();
  // What the log had is in a table now, which the end of the index names.
  Start({});
  LearnExamples("m", kExamples);
  server_->Kill();
  std::set<std::string> tables;
  for (const auto& file : std::filesystem::directory_iterator(data())) {
    const std::string path = file.path();
    if (absl::EndsWith(path, ".sst")) tables.insert(path);
    if (absl::StrContains(path, "/MANIFEST-"))
      std::filesystem::resize_file(path, std::filesystem::file_size(path) - 16);
  }
  ASSERT_FALSE(tables.empty());
  for (const std::string& command :
       {"--address 127.0.0.1:0 --metrics-address off --data-dir " + data(), "verify " + data(),
        absl::StrCat("backup ", data(), " ", data(), "-backup")})
    EXPECT_THAT(RunToEnd(1, command), HasSubstr("MANIFEST")) << command;
  for (const std::string& table : tables) EXPECT_TRUE(std::filesystem::exists(table)) << table;
}

TEST_F(LossTest, AProducerThatResumesGetsAnErrorAndLearnsTheLostExamplesAgain) {
  LearnAndCutTheLog();
  StartWithTheLoss();
  const int64_t position = Position();
  EXPECT_LT(position, kExamples);
  const grpc::Status status = ClaimStatus("m", claim_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_EQ(Reason(status), "UPDATES_LOST");
  EXPECT_THAT(status.error_message(), HasSubstr(std::to_string(position)));
  // Nothing of the claim was taken for learned.
  EXPECT_EQ(Position(), position);
  EXPECT_EQ(Get("m").report().examples(), position);
  RawLearnStream again(*learning_, "m", "p");
  EXPECT_EQ(again.Open().next_offset(), position);
  SendExamples(again, position, kExamples);
  EXPECT_TRUE(again.Finish().ok());
  EXPECT_EQ(Get("m").revision(), before_.revision());
  EXPECT_EQ(Get("m").weights().SerializeAsString(), before_.weights().SerializeAsString());
  EXPECT_EQ(Get("m").report().examples(), kExamples);
}

TEST_F(LossTest, OtherProducersUpdatesDoNotHideTheLoss) {
  LearnAndCutTheLog();
  StartWithTheLoss();
  ExpectRefusedAfterOthersUpdates();
}

// A power failure may take updates that are acknowledged before they are on disk.
TEST_F(LossTest, OtherProducersUpdatesDoNotHideWhatAPowerFailureTook) {
  Learn({"--durability", "none"});
  server_->Kill();
  CutTheLog();
  ChangeTheBoot();
  Start({"--durability", "none"});
  EXPECT_GT(std::stoi(Metric("perceptrond_journal_lost_writes")), 0);
  ExpectRefusedAfterOthersUpdates();
  EXPECT_LT(Position(), kExamples);
}

// The directory is copied back by hand: nothing of it tells.
TEST_F(LossTest, OtherProducersUpdatesDoNotHideThatTheDirectoryIsAnOlderCopy) {
  Learn({});
  EXPECT_EQ(server_->Terminate(), 0);
  const std::string copy = dir_.path() + "/copy";
  std::filesystem::copy(data(), copy);
  Start();
  {
    RawLearnStream more(*learning_, "m", "p");
    more.Open();
    Claim(SendExamples(more, kExamples, kExamples + 100));
    EXPECT_TRUE(more.Finish().ok());
  }
  EXPECT_EQ(server_->Terminate(), 0);
  std::filesystem::remove_all(data());
  std::filesystem::rename(copy, data());
  Start();
  ExpectRefusedAfterOthersUpdates();
  EXPECT_EQ(Position(), kExamples);
}

TEST_F(LossTest, ARightClaimIsBelievedAfterAnyNumberOfStarts) {
  Learn({});
  int64_t learned = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(server_->Terminate(), 0);
    Start();
    EXPECT_TRUE(ClaimStatus("m", claim_).ok()) << i;
    if (i == 1) continue;
    RawLearnStream other(*learning_, "m", "q");
    other.Open();
    SendExamples(other, learned, learned + 10);
    EXPECT_TRUE(other.Finish().ok());
    learned += 10;
    EXPECT_TRUE(ClaimStatus("m", claim_).ok()) << i;
  }
}

TEST_F(LossTest, AClaimWithoutAnEpochIsNotBelieved) {
  LearnAndCutTheLog();
  StartWithTheLoss();
  claim_.mutable_resume()->clear_acknowledged_epoch();
  EXPECT_EQ(Reason(ClaimStatus("m", claim_)), "UPDATES_LOST");
  // One that claims nothing beyond the server's position needs none.
  claim_.mutable_resume()->clear_acknowledged_revision();
  claim_.mutable_resume()->set_acknowledged_offset(Position() - 1);
  EXPECT_TRUE(ClaimStatus("m", claim_).ok());
}

TEST_F(LossTest, AProducerWithoutTheExamplesGoesOnBeyondThem) {
  LearnAndCutTheLog();
  StartWithTheLoss();
  const int64_t position = Position();
  claim_.mutable_resume()->set_accept_loss(true);
  RawLearnStream stream(*learning_, "m");
  *stream.first().mutable_producer() = claim_;
  EXPECT_EQ(stream.Open().next_offset(), kExamples);
  SendExamples(stream, kExamples, kExamples + 1);
  EXPECT_TRUE(stream.Finish().ok());
  EXPECT_EQ(Get("m").report().examples(), position + 1);
}

TEST_F(LossTest, AVastClaimDoesNotChangeTheCounts) {
  Start();
  const v1::Model model = Create("m");
  v1::Producer producer;
  producer.set_id("p");
  producer.mutable_resume()->set_model_uid(model.uid());
  producer.mutable_resume()->set_acknowledged_offset(int64_t{1} << 48);
  producer.mutable_resume()->set_acknowledged_revision(0);
  producer.mutable_resume()->set_acknowledged_epoch(1);
  EXPECT_TRUE(ClaimStatus("m", producer).ok());
  EXPECT_EQ(Get("m").report().examples(), 0);
}

}  // namespace
}  // namespace perceptrond::testing
