// Runs a test program. One of several processes that share a program's tests (GTEST_TOTAL_SHARDS)
// exits with 77 if tests were skipped and none failed, which ctest reports as skipped, not as
// passed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  testing::InitGoogleMock(&argc, argv);
  const int result = RUN_ALL_TESTS();
  const bool skipped = testing::UnitTest::GetInstance()->skipped_test_count() > 0;
  const bool is_shard = std::getenv("GTEST_TOTAL_SHARDS") != nullptr;
  return result == 0 && skipped && is_shard ? kSkipped : result;
}
