#include "core/convergence/adwin.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>

#include "gtest/gtest.h"

namespace perceptrond {
namespace {

// The banner's window as it is written there: one answer at a time, looked at in every clock.
class WrittenOut {
 public:
  // True if the window was cut.
  bool Add(bool mistake) {
    buckets_.push_back({1, mistake ? 1.0 : 0.0});
    for (double size = 1; Merge(size); size *= 2) {
    }
    if (++since_look_ < Adwin::kClock) return false;
    since_look_ = 0;
    bool was_cut = false;
    for (; Size() > 10 && Differs(); was_cut = true) buckets_.pop_front();
    return was_cut;
  }
  double Size() const {
    return std::accumulate(buckets_.begin(), buckets_.end(), 0.0,
                           [](double sum, const Bucket& bucket) { return sum + bucket.answers; });
  }
  double Mistakes() const {
    return std::accumulate(buckets_.begin(), buckets_.end(), 0.0,
                           [](double sum, const Bucket& bucket) { return sum + bucket.mistakes; });
  }

 private:
  struct Bucket {
    double answers;
    double mistakes;
  };

  // The oldest two of more than six of a size become one.
  bool Merge(double size) {
    const auto oldest = std::find_if(buckets_.begin(), buckets_.end(),
                                     [&](const Bucket& bucket) { return bucket.answers == size; });
    const auto of_size = std::count_if(buckets_.begin(), buckets_.end(), [&](const Bucket& bucket) {
      return bucket.answers == size;
    });
    if (of_size <= 6) return false;
    oldest->answers += (oldest + 1)->answers;
    oldest->mistakes += (oldest + 1)->mistakes;
    buckets_.erase(oldest + 1);
    return true;
  }
  bool Differs() const {
    const double width = Size();
    const double mean = Mistakes() / width;
    const double d = std::log(2 * std::log(width) / Adwin::kDelta);
    double n0 = 0;
    double sum0 = 0;
    for (const Bucket& bucket : buckets_) {
      n0 += bucket.answers;
      sum0 += bucket.mistakes;
      const double n1 = width - n0;
      if (n0 < 5 || n1 < 5) continue;
      const double m = 1 / (1 / n0 + 1 / n1);
      const double eps = std::sqrt(2 * mean * (1 - mean) * d / m) + 2 * d / (3 * m);
      if (std::abs(sum0 / n0 - (Mistakes() - sum0) / n1) >= eps) return true;
    }
    return false;
  }

  std::deque<Bucket> buckets_;
  uint64_t since_look_ = 0;
};

// Streams that come to err more often, less often and hardly ever, in runs of right answers.
TEST(Adwin, CutsWhereItsBannerSaysItDoes) {
  std::mt19937 random(6);
  Adwin adwin;
  WrittenOut written_out;
  Adwin::Change cut;
  int cuts = 0;
  for (const uint64_t longest : {3, 200, 3000, 40, 1, 5000, 2}) {
    for (int n = 0; n < 40; ++n) {
      const uint64_t right = random() % (longest + 1);
      bool was_cut = false;
      for (uint64_t i = 0; i < right; ++i) was_cut |= written_out.Add(false);
      was_cut |= written_out.Add(true);
      ASSERT_EQ(adwin.Add(right, true, &cut), was_cut) << longest << " " << n;
      ASSERT_EQ(static_cast<double>(adwin.size()), written_out.Size()) << longest << " " << n;
      ASSERT_NEAR(adwin.error(), written_out.Mistakes() / written_out.Size(), 1e-12);
      cuts += was_cut ? 1 : 0;
    }
  }
  EXPECT_GT(cuts, 5);
}

}  // namespace
}  // namespace perceptrond
