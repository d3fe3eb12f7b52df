// Streams end with a reason.
#include "core/store/open_streams.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/error/error.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::ReasonOf;

// A stream, and the reasons it was ended with.
struct Stream {
  Stream(OpenStreams& streams, const std::string& model, const std::string& producer)
      : ticket(streams.Open(model, producer,
                            [this](const absl::Status& why) { ended.push_back(why); })) {}
  std::vector<absl::Status> ended;
  std::unique_ptr<OpenStreams::Ticket> ticket;
};

// A stream that another server has received ends once it is asked for its rest.
struct AskedStream {
  AskedStream(OpenStreams& streams, const std::string& model, bool answers = true)
      : ticket(streams.Open(
            model, "", [this](const absl::Status& why) { ended.push_back(why); },
            [this, answers] {
              ++asked;
              if (answers) ticket.reset();
            })) {}
  int asked = 0;
  std::vector<absl::Status> ended;
  std::unique_ptr<OpenStreams::Ticket> ticket;
};

TEST(OpenStreams, TheNewestOfAProducerEndsTheOneBeforeAndNoOther) {
  OpenStreams streams;
  Stream closed(streams, "model", "p");
  closed.ticket.reset();
  const Stream others[] = {
      {streams, "model", ""}, {streams, "model", "q"}, {streams, "model 2", "p"}};
  Stream first(streams, "model", "p");
  Stream second(streams, "model", "p");
  ASSERT_EQ(first.ended.size(), 1U);
  EXPECT_TRUE(absl::IsAborted(first.ended[0]));
  EXPECT_EQ(ReasonOf(first.ended[0]), "PRODUCER_SUPERSEDED");
  first.ticket.reset();  // the second stays the producer's stream
  Stream third(streams, "model", "p");
  EXPECT_EQ(second.ended.size(), 1U);
  EXPECT_TRUE(third.ended.empty());
  EXPECT_TRUE(closed.ended.empty());
  for (const Stream& other : others) EXPECT_TRUE(other.ended.empty());
}

TEST(OpenStreams, TheEndOfAModelNotifiesItsStreamsAlone) {
  OpenStreams streams;
  const Stream before(streams, "mode", "p");
  Stream named(streams, "model", "p");
  Stream nameless(streams, "model", "");
  Stream closed(streams, "model", "q");
  closed.ticket.reset();
  const Stream after(streams, "model 2", "p");
  streams.EndAll("model", ModelNotFound("m"));
  EXPECT_EQ(named.ended.size(), 1U);
  EXPECT_EQ(nameless.ended.size(), 1U);
  EXPECT_TRUE(absl::IsNotFound(named.ended.at(0)));
  EXPECT_TRUE(before.ended.empty());
  EXPECT_TRUE(after.ended.empty());
  EXPECT_TRUE(closed.ended.empty());
}

TEST(OpenStreams, ThoseOfAModelThatOtherServersHaveReceivedAreAskedAndAwaited) {
  OpenStreams streams;
  AskedStream first(streams, "model");
  AskedStream second(streams, "model");
  AskedStream other(streams, "model 2");
  Stream own(streams, "model", "p");
  streams.AwaitRest({"model"}, WriterChangedError(), absl::InfiniteDuration());
  EXPECT_EQ(first.asked, 1);
  EXPECT_EQ(second.asked, 1);
  EXPECT_EQ(first.ticket, nullptr);
  EXPECT_EQ(second.ticket, nullptr);
  EXPECT_EQ(other.asked, 0);
  EXPECT_TRUE(own.ended.empty());
}

TEST(OpenStreams, OneThatIsOpenedWhileOthersAreAskedEnds) {
  OpenStreams streams;
  std::unique_ptr<AskedStream> opened;
  std::unique_ptr<Stream> own;
  std::unique_ptr<OpenStreams::Ticket> ticket;
  const auto on_ask = [&] {
    opened = std::make_unique<AskedStream>(streams, "model");
    own = std::make_unique<Stream>(streams, "model", "p");
    ticket.reset();
  };
  ticket = streams.Open(
      "model", "", [](const absl::Status&) {}, on_ask);
  streams.AwaitRest({"model"}, WriterChangedError(), absl::InfiniteDuration());
  ASSERT_EQ(opened->ended.size(), 1U);
  EXPECT_EQ(ReasonOf(opened->ended[0]), "WRITER_CHANGED");
  EXPECT_TRUE(own->ended.empty());
  const AskedStream after(streams, "model");
  EXPECT_TRUE(after.ended.empty());
}

TEST(OpenStreams, OneThatDoesNotAnswerIsWaitedForUntilTheTimeout) {
  OpenStreams streams;
  AskedStream silent(streams, "model", false);
  streams.AwaitRest({"model"}, WriterChangedError(), absl::ZeroDuration());
  EXPECT_EQ(silent.asked, 1);
  // It is asked again, and may end later.
  std::thread ends([&] { silent.ticket.reset(); });
  streams.AwaitRest({"model"}, WriterChangedError(), absl::InfiniteDuration());
  ends.join();
}

TEST(OpenStreams, AListenerMayCloseItsStreamWhileItIsNotified) {
  OpenStreams streams;
  std::unique_ptr<OpenStreams::Ticket> ticket;
  ticket = streams.Open("model", "p", [&](const absl::Status&) { ticket.reset(); });
  streams.EndAll("model", ModelNotFound("m"));
  EXPECT_EQ(ticket, nullptr);
}

}  // namespace
}  // namespace perceptrond
