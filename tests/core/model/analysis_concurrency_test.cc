// A model is analyzed, and its weights are replaced by the separator, while others teach it. To be
// run under ThreadSanitizer too.
#include <atomic>
#include <thread>

#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/models.h"
#include "tests/support/separable.h"

namespace perceptrond::analysis_concurrency_test {
namespace {

using testing::Columns;
using testing::Send;

constexpr uint32_t kDimension = 8;
constexpr int kLearners = 4;
constexpr size_t kExamples = 800;
constexpr size_t kMessage = 20;

class AnalysisConcurrency : public ::testing::Test {
 protected:
  AnalysisConcurrency() {
    Store::Options options;
    options.snapshot_bytes = 1;
    store_ = std::make_unique<Store>(std::make_unique<MemoryJournal>(), options);
    ::perceptron::v1::Model settings = testing::DenseSettings("m", kDimension);
    settings.mutable_stored_examples()->set_max_sample(kExamples);
    EXPECT_OK(store_->Create(settings, "", false).status());
    model_ = store_->Acquire("m").value();
  }

  void LearnShare(int learner) {
    const size_t share = kExamples / kLearners;
    for (int pass = 1; pass <= 4; ++pass) {
      for (size_t at = 0; at < share; at += kMessage) {
        const size_t begin = learner * share + at;
        EXPECT_OK(Send(*store_, "m", absl::StrCat("learner-", learner),
                       Columns(data_.examples, begin, begin + kMessage).batch())
                      .status);
      }
    }
  }

  const testing::SeparableData data_ = testing::MakeSeparable(5, kExamples, kDimension, 0.05, 1);
  std::unique_ptr<Store> store_;
  std::shared_ptr<Model> model_;
};

TEST_F(AnalysisConcurrency, AnalysesSpeakOfOneMomentWhileOthersTeach) {
  std::atomic<bool> done = false;
  std::vector<std::thread> learners;
  for (int i = 0; i < kLearners; ++i) learners.emplace_back([this, i] { LearnShare(i); });
  std::thread analyst([&] {
    int64_t revision = 0;
    size_t examples = 0;
    while (!done) {
      const auto analysis =
          AnalyzeModel(*model_, {}, [](const ModelAnalysisProgress&) { return true; });
      if (absl::IsFailedPrecondition(analysis.status())) continue;  // nothing is stored yet
      ASSERT_OK(analysis.status());
      EXPECT_GE(analysis->record.revision(), revision);
      EXPECT_GE(analysis->record.examples(), examples);
      EXPECT_TRUE(analysis->record.complete());
      revision = analysis->record.revision();
      examples = analysis->record.examples();
      if (!analysis->separator.has_value()) continue;
      ASSERT_OK(model_->ReplaceWeights(*analysis->separator, std::nullopt).status());
    }
  });
  std::thread reader([&] {
    while (!done) {
      const ConvergenceReport report = MakeReport(*model_);
      EXPECT_GE((report.has_margin_ceiling() ? report.margin_ceiling() : data_.margin),
                data_.margin * (1 - 1e-5));
      EXPECT_LE(CopyStoredExamples(*model_).examples.sample.size(), kExamples);
    }
  });
  for (std::thread& thread : learners) thread.join();
  done = true;
  analyst.join();
  reader.join();
  ASSERT_OK(store_->committer().Commit(model_));

  const auto last = AnalyzeModel(*model_, {}, [](const ModelAnalysisProgress&) { return true; });
  ASSERT_OK(last.status());
  EXPECT_EQ(last->record.examples(), kExamples);
  EXPECT_GE(last->record.margin_lower(), data_.margin * (1 - 1e-5));
  EXPECT_EQ(MakeReport(*model_).analysis().current(), true);
  EXPECT_EQ(MakeReport(*model_).examples(), 4 * kExamples);
}

}  // namespace
}  // namespace perceptrond::analysis_concurrency_test
