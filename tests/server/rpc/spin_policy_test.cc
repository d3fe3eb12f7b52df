// A polling thread spins while requests come one at a time, and at no other time.
#include "server/rpc/acceptor.h"

#include <gtest/gtest.h>

#include <chrono>

namespace perceptrond {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kMost = microseconds(50);

class SpinPolicyTest : public ::testing::Test {
 protected:
  // A request that comes after so long a wait, and its further events at once.
  void Request(nanoseconds waited, int events = 3, bool quiet = true) {
    for (int i = 0; i < events; ++i) {
      policy_.OnEvent(i == 0 ? waited : nanoseconds(200));
      policy_.OnHandled([&] { return quiet; });
    }
  }
  // As many as it takes, and more.
  void ComeOneAtATime(int requests = 100) {
    for (int i = 0; i < requests; ++i) Request(microseconds(30));
  }
  bool Spins() const { return policy_.duration() > nanoseconds::zero(); }

  SpinPolicy policy_{kMost};
};

TEST_F(SpinPolicyTest, SpinsOnceSomeRequestsCameOneAtATime) {
  EXPECT_FALSE(Spins());
  ComeOneAtATime(3);
  EXPECT_FALSE(Spins());
  ComeOneAtATime(20);
  EXPECT_EQ(policy_.duration(), kMost);
}

TEST_F(SpinPolicyTest, EndsAfterAPauseAndWhenSomebodyWaitsOrWorks) {
  ComeOneAtATime();
  Request(std::chrono::milliseconds(1));
  EXPECT_FALSE(Spins());
  ComeOneAtATime();
  Request(microseconds(30), 3, /*quiet=*/false);
  EXPECT_FALSE(Spins());
}

TEST_F(SpinPolicyTest, EndsWhenRequestsComeManyAtOnce) {
  ComeOneAtATime();
  Request(microseconds(30), 40);
  EXPECT_FALSE(Spins());
  Request(microseconds(30), 40);
  EXPECT_FALSE(Spins());
}

// A client that takes a little longer than one looks.
TEST_F(SpinPolicyTest, AtMostOneRequestInEightCostsAFruitlessSpin) {
  int in_vain = 0;
  constexpr int kRequests = 900;
  for (int i = 0; i < kRequests; ++i) {
    if (Spins()) {
      policy_.OnTimeout();
      ++in_vain;
    }
    Request(microseconds(120));
  }
  EXPECT_GT(in_vain, 0);
  EXPECT_LE(in_vain, kRequests / 8);
}

TEST_F(SpinPolicyTest, OneFruitlessSpinAmongManyLoneRequestsDoesNotEndSpinning) {
  ComeOneAtATime();
  policy_.OnTimeout();
  EXPECT_TRUE(Spins());
}

}  // namespace
}  // namespace perceptrond
