// Learning by batches in several streams at once: a step may come some examples late, but what was
// done is what is replayed.
#include <thread>

#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/traffic.h"

namespace perceptrond::batch_concurrency_test {
namespace {

using testing::Message;
namespace v1 = ::perceptron::v1;

TEST(BatchConcurrency, WhatStreamsDidAtOnceIsReplayedAsItWas) {
  testing::TrafficOptions traffic;
  traffic.producers = 4;
  traffic.messages = 400;
  Store::Options options;
  // Who is let go of leaves memory, and comes back from the journal.
  options.memory_budget = 1;
  Store store(std::make_unique<MemoryJournal>(), options);
  v1::Model settings = testing::DenseSettings("m", traffic.dimension);
  settings.mutable_learner()->mutable_batch_perceptron();
  testing::SetCount(*settings.mutable_learner(), "mini_batch", 8);
  ASSERT_OK(store.Create(settings, "", false).status());
  const std::vector<Message> messages = MakeTraffic(4, traffic);
  std::vector<std::thread> threads;
  std::string state;
  uint64_t revision = 0;
  {
    const std::shared_ptr<Model> model = store.Acquire("m").value();
    for (int producer = 0; producer < traffic.producers; ++producer) {
      threads.emplace_back([&, producer] {
        for (const Message& message : messages) {
          if (message.producer != absl::StrCat("producer-", producer)) continue;
          EXPECT_OK(SendMessage(store, "m", traffic.space, message).status);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    state = testing::StateBytes(*model);
    revision = model->revision();
    const ConvergenceReport counters = MakeReport(*model);
    EXPECT_EQ(counters.updates(), revision);
    // Steps there were, and not one for each mistake.
    EXPECT_GT(counters.updates(), counters.mistakes());
    EXPECT_LT(counters.updates(), 2 * counters.mistakes());
  }
  const uint64_t loads = store.stats().loads;
  // Once this is committed, the committer holds the model no more.
  settings.set_name("other");
  ASSERT_OK(store.Create(settings, "", false).status());
  ASSERT_OK(SendMessage(store, "other", traffic.space, messages.front()).status);
  ASSERT_OK(store.Create(testing::DenseSettings("third", 1), "", false).status());
  ASSERT_OK(store.Acquire("third").status());
  const std::shared_ptr<Model> again = store.Acquire("m").value();
  EXPECT_EQ(store.stats().loads, loads + 3);
  EXPECT_EQ(testing::StateBytes(*again), state);
  EXPECT_EQ(again->revision(), revision);
}

}  // namespace
}  // namespace perceptrond::batch_concurrency_test
