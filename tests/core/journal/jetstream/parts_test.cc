#include "core/journal/jetstream/parts.h"

#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace perceptrond::jetstream {
namespace {

using ::testing::ElementsAre;

StreamMessage Received(const NewMessage& sent) {
  StreamMessage message;
  message.subject = sent.subject;
  message.data = sent.data;
  message.part = sent.part;
  return message;
}

std::vector<std::string> Join(const std::vector<NewMessage>& sent) {
  PartJoiner joiner;
  std::vector<std::string> whole;
  for (const NewMessage& message : sent) {
    if (const std::optional<StreamMessage> joined = joiner.Add(Received(message)))
      whole.push_back(joined->data);
  }
  return whole;
}

TEST(PartJoinerTest, JoinsAMessageThatIsLargerThanThePartsMayBe) {
  std::vector<NewMessage> sent;
  AddInParts("m.1", "abcdefgh", 3, sent);
  AddInParts("m.1", "xyz", 3, sent);
  ASSERT_EQ(sent.size(), 4U);
  EXPECT_THAT(Join(sent), ElementsAre("abcdefgh", "xyz"));
}

// NATS accepts the second part of a writer that was superseded, if its successor's first part has taken
// the place that its own first part was refused.
TEST(PartJoinerTest, PartsOfTwoMessagesAreNeverJoined) {
  std::vector<NewMessage> superseded;
  AddInParts("m.1", "aaabbb", 3, superseded);
  std::vector<NewMessage> successor;
  AddInParts("m.1", "cccddd", 3, successor);
  EXPECT_THAT(Join({successor[0], superseded[1], successor[0], successor[1]}),
              ElementsAre("cccddd"));
}

TEST(PartJoinerTest, PartsWithoutTheRestAreDropped) {
  std::vector<NewMessage> sent;
  AddInParts("m.1", "aaabbbccc", 3, sent);
  EXPECT_THAT(Join({sent[0], sent[2]}), ElementsAre());
  EXPECT_THAT(Join({sent[1], sent[2]}), ElementsAre());
  const NewMessage small{"m.1", "small", ""};
  EXPECT_THAT(Join({sent[0], sent[1], small, sent[2]}), ElementsAre("small"));
}

}  // namespace
}  // namespace perceptrond::jetstream
