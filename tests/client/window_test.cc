#include "client/window.h"

#include <gtest/gtest.h>

namespace perceptrond::client {
namespace {

std::shared_ptr<Outgoing> Message(int64_t first, size_t rows, int64_t pass = 0) {
  auto message = std::make_shared<Outgoing>();
  message->first_offset = first;
  message->tags.resize(rows);
  message->bytes = 10;
  message->request.set_completed_pass(pass);
  return message;
}

TEST(Window, TakesAnswersInTurnOnly) {
  Window window;
  window.Add(Message(0, 4));
  window.Add(Message(4, 4));
  EXPECT_EQ(window.Oldest(1), nullptr) << "it was not sent yet";
  window.NextToSend();
  EXPECT_EQ(window.Oldest(2), nullptr);
  ASSERT_NE(window.Oldest(1), nullptr);
  window.RemoveOldest();
  EXPECT_EQ(window.size(), 1u);
  EXPECT_EQ(window.bytes(), 10u);
  EXPECT_EQ(window.NextToSend()->first_offset, 4);
  EXPECT_NE(window.Oldest(2), nullptr);
  EXPECT_EQ(window.NextToSend(), nullptr);
}

TEST(Window, SendsAllAgainOnANewConnection) {
  Window window;
  window.Add(Message(0, 4));
  window.Add(Message(4, 4));
  window.NextToSend();
  window.NextToSend();
  window.Restart();
  EXPECT_FALSE(window.InFlight());
  EXPECT_EQ(window.NextToSend()->first_offset, 0);
  EXPECT_NE(window.Oldest(1), nullptr);
}

TEST(Window, DropsWhatIsAccountedForAndKeepsTheRest) {
  Window window;
  window.Add(Message(0, 4));
  window.Add(Message(4, 4));
  window.Add(Message(8, 4));
  window.Restart();
  const auto settled = window.Settle(6);
  ASSERT_EQ(settled.size(), 1u);
  EXPECT_EQ(settled[0]->first_offset, 0);
  EXPECT_EQ(window.size(), 2u);
  EXPECT_EQ(window.bytes(), 20u);
  EXPECT_EQ(window.NextToSend()->first_offset, 4) << "known in part: sent whole";
}

TEST(Window, SendsAMarkAgainWithoutTheRowsItEnds) {
  Window window;
  window.Add(Message(0, 4, 3));
  window.Add(Message(4, 0, 4));
  window.Restart();
  EXPECT_EQ(window.Settle(4).size(), 1u);
  EXPECT_EQ(window.size(), 2u);
  window.Restart();
  EXPECT_TRUE(window.Settle(4).empty()) << "rows are reported once";
  const auto mark = window.NextToSend();
  EXPECT_EQ(mark->request.completed_pass(), 3);
  EXPECT_TRUE(mark->rows_settled);
  EXPECT_FALSE(mark->request.has_first_offset());
  EXPECT_EQ(window.NextToSend()->request.completed_pass(), 4);
}

}  // namespace
}  // namespace perceptrond::client
