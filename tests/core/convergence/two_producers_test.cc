// Passes of two producers that share a model: each counts its own examples, and a pass has converged only
// if nobody changed the weights while it went on.
#include "gtest/gtest.h"
#include "tests/support/models.h"

namespace perceptrond {
namespace {

using testing::Columns;
using testing::DenseSettings;

class TwoProducers : public ::testing::Test {
 protected:
  LearnOutcome Learn(Producer& producer, const Columns& columns, int64_t completed_pass = 0) {
    LearnCall call;
    call.batch = columns.batch();
    call.producer = &producer;
    call.completed_pass = completed_pass;
    LearnOutcome outcome;
    EXPECT_OK(model_->Learn(call, outcome));
    return outcome;
  }

  MemoryJournal journal_;
  const std::shared_ptr<Model> model_ = testing::MakeModel(journal_, DenseSettings("shared", 1));
  Producer one_{""};
  Producer other_{""};
  const Columns right_ = Columns().AddDense({2}, 1);
  // Wrong for as long as the weight is positive enough.
  const Columns wrong_ = Columns().AddDense({2}, -1);
};

TEST_F(TwoProducers, EachCountsItsOwnExamples) {
  Learn(one_, right_);
  Learn(other_, right_);
  Learn(other_, right_);
  Learn(one_, right_);
  EXPECT_EQ(Learn(one_, {}, 1).pass->examples(), 2U);
  const LearnOutcome outcome = Learn(other_, {}, 1);
  EXPECT_EQ(outcome.pass->examples(), 2U);
  EXPECT_EQ(outcome.pass->updates(), 0U);
  EXPECT_TRUE(outcome.pass->converged());
}

TEST_F(TwoProducers, AChangeByTheOtherInTheMiddleDeniesConvergence) {
  Learn(one_, right_);
  ASSERT_EQ(Learn(one_, {}, 1).pass->updates(), 1U);
  Learn(one_, right_);
  Learn(other_, wrong_);  // an update, although none of this producer's
  const LearnOutcome outcome = Learn(one_, right_, 2);
  EXPECT_EQ(model_->revision(), outcome.pass->updates() + 2);
  EXPECT_FALSE(outcome.pass->converged());
}

// Two thousand examples without a mistake, then as many mistakes as examples.
TEST_F(TwoProducers, ARiseOfTheErrorIsADriftUntilTheProducerMarksAPass) {
  Columns steady;
  for (int i = 0; i < 2000; ++i) steady.AddDense({2}, 1);
  const auto rise = [&](Producer& producer) {
    Learn(producer, steady);
    for (int i = 0; i < 200; ++i) {
      Learn(producer, wrong_);
      Learn(producer, right_);
    }
    return MakeReport(*model_);
  };
  Learn(one_, right_, 1);
  EXPECT_EQ(rise(one_).drift().detections(), 0U);
  EXPECT_GT(rise(other_).drift().detections(), 0U);
}

}  // namespace
}  // namespace perceptrond
