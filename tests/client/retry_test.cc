#include "client/retry.h"

#include <google/protobuf/any.pb.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "client/error.h"
#include "google/rpc/error_details.pb.h"

namespace perceptrond::client {
namespace {

// A clock that only sleeping moves.
class RetryTest : public testing::Test {
 protected:
  using Clock = std::chrono::steady_clock;

  RetryTest() {
    policy_.now = [this] { return Clock::time_point() + absl::ToChronoNanoseconds(now_); };
    policy_.sleep = [this](absl::Duration wait) {
      waits_.push_back(wait);
      now_ += wait;
    };
  }

  static absl::Status Exhausted(absl::Duration retry) {
    google::rpc::Status status;
    status.set_code(8);
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(absl::ToInt64Seconds(retry));
    status.add_details()->PackFrom(info);
    return ToAbslStatus(status);
  }

  absl::Duration now_;
  std::vector<absl::Duration> waits_;
  RetryPolicy policy_;
};

TEST_F(RetryTest, RepeatsOnlyWhatIsUnavailableAndMayArriveTwice) {
  const std::tuple<absl::Status, bool, int> cases[] = {
      {absl::UnavailableError(""), true, 4},
      {absl::UnavailableError(""), false, 1},
      {absl::NotFoundError(""), true, 1},
      {absl::InvalidArgumentError(""), true, 1},
      {absl::AbortedError(""), true, 1},
      {absl::DeadlineExceededError(""), true, 1},
      {absl::ResourceExhaustedError("a cap"), true, 1},
  };
  for (const auto& [status, may_repeat, expected] : cases) {
    int attempts = 0;
    const absl::Status last = CallWithRetry(policy_, may_repeat, [&, failure = status] {
      return ++attempts < 4 ? failure : absl::OkStatus();
    });
    EXPECT_EQ(attempts, expected) << status;
    EXPECT_EQ(last, expected == 4 ? absl::OkStatus() : status);
  }
}

TEST_F(RetryTest, WaitsLongerEachTimeButNeverPastTheLimits) {
  policy_.initial_backoff = absl::Milliseconds(100);
  policy_.max_backoff = absl::Milliseconds(400);
  policy_.give_up_after = absl::Seconds(10);
  EXPECT_TRUE(
      absl::IsUnavailable(CallWithRetry(policy_, true, [] { return absl::UnavailableError(""); })));
  ASSERT_GT(waits_.size(), 5u);
  const absl::Duration ceilings[] = {absl::Milliseconds(100), absl::Milliseconds(200)};
  for (size_t i = 0; i < waits_.size(); ++i) {
    const absl::Duration ceiling = i < 2 ? ceilings[i] : absl::Milliseconds(400);
    EXPECT_LE(waits_[i], ceiling);
    EXPECT_GE(waits_[i], ceiling / 2);
  }
  EXPECT_LT(now_, absl::Seconds(10));
}

TEST_F(RetryTest, WaitsAtLeastAsLongAsTheServerAsks) {
  int attempts = 0;
  EXPECT_TRUE(CallWithRetry(policy_, true, [&] {
                return ++attempts == 1 ? Exhausted(absl::Seconds(7)) : absl::OkStatus();
              }).ok());
  ASSERT_EQ(waits_.size(), 1u);
  EXPECT_EQ(waits_[0], absl::Seconds(7));
}

TEST_F(RetryTest, DoesNotStartAWaitThatWouldEndTooLate) {
  EXPECT_TRUE(absl::IsResourceExhausted(
      CallWithRetry(policy_, true, [] { return Exhausted(absl::Minutes(5)); })));
  EXPECT_TRUE(waits_.empty());
}

TEST_F(RetryTest, BackoffStartsOverAfterProgress) {
  policy_.initial_backoff = absl::Milliseconds(100);
  Backoff backoff(policy_);
  for (int i = 0; i < 5; ++i) backoff.Next(absl::UnavailableError(""));
  backoff.Reset();
  EXPECT_LE(backoff.Next(absl::UnavailableError("")), absl::Milliseconds(100));
}

}  // namespace
}  // namespace perceptrond::client
