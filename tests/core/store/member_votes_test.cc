// What the store says of the members of the learner auto.
#include <memory>

#include "core/journal/memory_journal.h"
#include "core/store/store.h"
#include "gtest/gtest.h"
#include "tests/support/columns.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"
#include "tests/support/recording_journal.h"

namespace perceptrond::member_votes_test {
namespace {

namespace v1 = ::perceptron::v1;

TEST(MemberVotes, AreOfTheModelsWithMembersAloneAndNotTakenFromRequests) {
  Store store(std::make_unique<MemoryJournal>(), {});
  for (const std::string learner : {"auto", "arow"}) {
    v1::Model settings = testing::DenseSettings(learner, 2);
    testing::SetLearner(*settings.mutable_learner(), learner);
    settings.add_members()->set_mistakes(7);
    ASSERT_OK(store.Create(settings, "", false).status());
    const testing::Columns rows =
        testing::Columns().AddDense({1, 0}, 1).AddDense({0, 1}, -1).AddDense({1, 0.5}, 1);
    ASSERT_OK(testing::Send(store, learner, "", rows.batch()).status);
    const ModelSummary summary = store.Get(settings.name()).value();
    const bool votes = learner == "auto";
    EXPECT_EQ(summary.report.has_majority_bound(), votes);
    ASSERT_EQ(summary.settings.members_size(), votes ? 8 : 0);
    if (!votes) continue;
    double all = 0;
    for (const v1::Member& member : summary.settings.members()) {
      EXPECT_FALSE(member.retired());
      EXPECT_LE(member.mistakes(), 3U);
      all += member.vote();
    }
    EXPECT_NEAR(all, 1, 1e-9);
    EXPECT_LE(static_cast<double>(summary.report.mistakes()), summary.report.majority_bound());
  }
}

}  // namespace
}  // namespace perceptrond::member_votes_test
