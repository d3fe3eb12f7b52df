// The order of a stream's messages while one of them is parsed ahead.
#include "server/sessions/inbox.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/model_service.pb.h"

namespace perceptrond {
namespace {

using Request = ::perceptron::v1::GetModelRequest;
using Messages = Inbox<Request>;

constexpr size_t kMaxBytes = 1 << 20;

grpc::ByteBuffer Bytes(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return grpc::ByteBuffer(&slice, 1);
}

void Add(Messages& inbox, const std::string& name) {
  Request request;
  request.set_name(name);
  grpc::ByteBuffer bytes = Bytes(request.SerializeAsString());
  inbox.Add(bytes);
}

std::string TakeName(Messages& inbox) {
  Messages::Message message = inbox.Next();
  Messages::Parse(kMaxBytes, message);
  EXPECT_TRUE(message.status.ok()) << message.status;
  std::string name = message.request->name();
  inbox.Keep(std::move(message.request));
  return name;
}

TEST(InboxTest, GivesMessagesInOrderWhicheverAreParsedAhead) {
  std::mt19937 random(3);
  Messages inbox;
  std::optional<Messages::Ahead> ahead;
  int added = 0;
  int taken = 0;
  while (taken < 2000) {
    switch (random() % 4) {
      case 0:
        if (added < 2000) Add(inbox, absl::StrCat(added++));
        break;
      case 1:
        if (!ahead.has_value()) ahead = inbox.BeginParsing();
        break;
      case 2:
        if (!ahead.has_value()) break;
        Messages::Parse(kMaxBytes, ahead->message);
        inbox.EndParsing(*std::move(ahead));
        ahead.reset();
        break;
      default:
        if (!inbox.HasNext()) break;
        ASSERT_EQ(TakeName(inbox), absl::StrCat(taken++));
    }
  }
  EXPECT_TRUE(inbox.empty());
  EXPECT_EQ(inbox.bytes(), 0U);
}

TEST(InboxTest, ParsesNeitherTheNextMessageAheadNorTwoAtOnce) {
  Messages inbox;
  Add(inbox, "a");
  EXPECT_FALSE(inbox.BeginParsing().has_value());
  Add(inbox, "b");
  Add(inbox, "c");
  std::optional<Messages::Ahead> ahead = inbox.BeginParsing();
  ASSERT_TRUE(ahead.has_value());
  EXPECT_FALSE(inbox.BeginParsing().has_value());
  EXPECT_EQ(TakeName(inbox), "a");
  EXPECT_FALSE(inbox.HasNext());
  Messages::Parse(kMaxBytes, ahead->message);
  inbox.EndParsing(*std::move(ahead));
  EXPECT_EQ(TakeName(inbox), "b");
  EXPECT_EQ(TakeName(inbox), "c");
}

TEST(InboxTest, DropsAMessageThatIsParsedWhileItIsCleared) {
  Messages inbox;
  Add(inbox, "a");
  Add(inbox, "b");
  std::optional<Messages::Ahead> ahead = inbox.BeginParsing();
  ASSERT_TRUE(ahead.has_value());
  inbox.Clear();
  Add(inbox, "c");
  inbox.EndParsing(*std::move(ahead));
  ASSERT_TRUE(inbox.HasNext());
  EXPECT_EQ(TakeName(inbox), "c");
  EXPECT_TRUE(inbox.empty());
}

TEST(InboxTest, KeepsWhyAMessageThatWasParsedAheadIsMalformed) {
  Messages inbox;
  Add(inbox, "a");
  grpc::ByteBuffer malformed = Bytes("\x0a\xff");
  inbox.Add(malformed);
  std::optional<Messages::Ahead> ahead = inbox.BeginParsing();
  ASSERT_TRUE(ahead.has_value());
  Messages::Parse(kMaxBytes, ahead->message);
  inbox.EndParsing(*std::move(ahead));
  EXPECT_EQ(TakeName(inbox), "a");
  Messages::Message message = inbox.Next();
  Messages::Parse(kMaxBytes, message);
  EXPECT_TRUE(absl::IsInvalidArgument(message.status)) << message.status;
}

TEST(InboxTest, IsFullUntilHalfOfItIsTaken) {
  Messages inbox;
  int added = 0;
  while (!inbox.Full()) Add(inbox, absl::StrCat(added++));
  while (inbox.size() > static_cast<size_t>(added) / 2) {
    EXPECT_TRUE(inbox.Full());
    TakeName(inbox);
  }
  TakeName(inbox);
  EXPECT_FALSE(inbox.Full());
}

}  // namespace
}  // namespace perceptrond
