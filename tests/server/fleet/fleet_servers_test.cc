// Two servers of a fleet: what one of them does at the other, and what is counted when the writer ends or changes.
#include <gtest/gtest.h>

#include "core/model/views.h"
#include "tests/server/fleet/fleet_nodes.h"

namespace perceptrond::fleet_server_test {
namespace {

// Two servers, of which one writes the model, and the other knows it.
class FleetServersTest : public ::testing::Test {
 protected:
  FleetServersTest() {
    nodes_[0].member.Create(kModel);
    nodes_[0].member.Release();
    EXPECT_TRUE(Eventually([&] { return nodes_[0].member.writes() || nodes_[1].member.writes(); }));
    writer_ = nodes_[0].member.writes() ? 0 : 1;
    EXPECT_TRUE(Eventually([&] {
      return follower().member.store().fleet()->WriterOf(0).address == writer().address;
    }));
  }
  Node& writer() { return nodes_[writer_]; }
  Node& follower() { return nodes_[1 - writer_]; }
  // That the writer has counted.
  uint64_t examples() { return MakeReport(**writer().member.store().Acquire(kModel)).examples(); }
  // Has the follower learn rows, until it has evaluated some that the writer has not counted. Returns how many there were.
  uint64_t LearnUntilSomeAreNotCounted(ClientCall& stream) {
    v1::LearnStreamRequest message;
    message.set_model(kModel);
    *message.add_examples() = OneRow().examples(0);
    EXPECT_TRUE(stream.Write(message.SerializeAsString()));
    EXPECT_EQ(ReadAnswer(stream).results(0).updates(), 1U);
    // Each is right from now on. Those since the last 250 ms only the follower knows of.
    message.clear_model();
    uint64_t sent = 1;
    do {
      EXPECT_TRUE(stream.Write(message.SerializeAsString()));
      EXPECT_EQ(ReadAnswer(stream).results(0).updates(), 0U);
      ++sent;
    } while (examples() == sent);
    return sent;
  }

 private:
  const std::shared_ptr<MemoryJournal> journal_ = FleetMember::NewJournal();
  Node nodes_[2] = {Node(journal_), Node(journal_)};
  size_t writer_ = 0;
};

TEST_F(FleetServersTest, ACallThatNeedsTheWriterIsAnsweredByItWhereverItArrives) {
  for (Node* const node : {&writer(), &follower()}) {
    v1::LearnResponse learned;
    const grpc::Status status =
        Ask(node->front->Connect(), kLearn, OneRow(node == &writer() ? 1 : -1), learned);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(learned.result().updates(), 1U);
    EXPECT_EQ(learned.result().revision(), node == &writer() ? 1 : 2);
  }
  // A stream that begins at the follower is one at the writer.
  ClientCall stream(follower().front->Connect(), kLearnStream);
  stream.Write(FirstOfStream());
  std::string bytes;
  ASSERT_TRUE(stream.Read(bytes));
  v1::LearnStreamResponse response;
  ASSERT_TRUE(response.ParseFromString(bytes));
  EXPECT_EQ(response.opened().revision(), 2);
  stream.WritesDone();
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(FleetServersTest, RowsThatAFollowerEvaluatedAreCountedByAWriterThatDrains) {
  ClientCall stream(follower().front->Connect(), kLearnStream);
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  writer().drain.Begin();
  EXPECT_EQ(ReasonOf(stream.Finish()), "WRITER_CHANGED");
  EXPECT_EQ(examples(), sent);
}

TEST_F(FleetServersTest, RowsThatAFollowerEvaluatedAreCountedByAWriterThatHandsThePartitionOver) {
  ClientCall stream(follower().front->Connect(), kLearnStream);
  const uint64_t sent = LearnUntilSomeAreNotCounted(stream);
  Node& next = follower();
  // As when the partition is given to a server that has joined: its calls go on.
  writer().member.store().fleet()->Leave();
  EXPECT_EQ(ReasonOf(stream.Finish()), "WRITER_CHANGED");
  EXPECT_TRUE(Eventually([&] { return next.member.writes(); }));
  EXPECT_EQ(MakeReport(**next.member.store().Acquire(kModel)).examples(), sent);
}

}  // namespace
}  // namespace perceptrond::fleet_server_test
