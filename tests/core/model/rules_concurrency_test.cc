// Every learner of the catalogue under several streams at once, while others predict, explain, analyze, read reports and
// replace the weights, the store takes snapshots, and the model leaves memory whenever nobody uses it. To be run under
// ThreadSanitizer too.
#include <atomic>
#include <bit>
#include <thread>

#include "core/learner/catalogue.h"
#include "core/model/explain.h"
#include "core/model/model_analysis.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/recording_journal.h"
#include "tests/support/tight.h"

namespace perceptrond::rules_concurrency_test {
namespace {

using testing::ClassBatch;
using testing::ClassKind;
using testing::Space;
using testing::StateBytes;
using testing::SvmExample;
namespace v1 = ::perceptron::v1;

constexpr int kStreams = 3;
constexpr size_t kMessages = 30;
constexpr int kClasses = 4;
constexpr uint32_t kDimension = 12;

struct Case {
  std::string learner;
  // Numbered classes, which come to exist while others read; else two labels.
  bool classes = false;
};

std::string CaseName(const ::testing::TestParamInfo<Case>& info) {
  return testing::TestName(info.param.learner) + (info.param.classes ? "_Classes" : "");
}

void PrintTo(const Case& c, std::ostream* out) { *out << c.learner; }

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    cases.push_back({entry.name});
    if (entry.has_classes()) cases.push_back({entry.name, /*classes=*/true});
  }
  return cases;
}

class RulesConcurrency : public ::testing::TestWithParam<Case> {
 protected:
  RulesConcurrency() {
    v1::Model settings = testing::NamedSettings("m");
    testing::SetLearner(*settings.mutable_learner(), GetParam().learner);
    testing::Tighten(*settings.mutable_learner());
    if (GetParam().classes) testing::SetClasses(ClassKind::kNumbered, kClasses, settings);
    settings.mutable_stored_examples()->set_max_sample(20);
    settings.mutable_stored_examples()->set_max_updates(20);
    Open();
    EXPECT_OK(store_->Create(settings, "", false).status());
    EXPECT_OK(store_->Create(testing::DenseSettings("other", 2), "", false).status());
  }
  void Open() {
    Store::Options options;
    options.snapshot_bytes = 1;
    options.memory_budget = 1;
    store_ =
        std::make_unique<Store>(std::make_unique<testing::JournalDecorator>(journal_), options);
  }

  static std::vector<std::vector<SvmExample>> Messages(uint32_t seed) {
    std::vector<std::vector<SvmExample>> messages =
        testing::ClassMessages(seed, GetParam().classes ? kClasses : 2, kDimension, kMessages);
    if (GetParam().classes) return messages;
    for (std::vector<SvmExample>& message : messages) {
      for (SvmExample& example : message) example.label = example.label > 0 ? 1 : -1;
    }
    return messages;
  }

  void LearnStream(int stream) {
    for (const auto& message : Messages(stream)) {
      const ClassBatch batch(ClassKind::kNumbered, Space::kNamed, message);
      const testing::Sent sent =
          testing::Send(*store_, "m", absl::StrCat("producer-", stream), batch.batch());
      EXPECT_OK(sent.status);
      EXPECT_EQ(sent.outcome.examples, message.size());
    }
  }

  // A row and its copy in one message are answered from one state. Not every learner can explain.
  void ReadOnce(uint64_t& revision) {
    const std::shared_ptr<Model> model = store_->Acquire("m").value();
    const SvmExample row = Messages(kStreams).back().front();
    const ClassBatch batch(ClassKind::kNumbered, Space::kNamed, {row, row});
    Batch asked = batch.batch();
    asked.labels = {};
    PredictOutcome outcome;
    EXPECT_OK(model->Predict(asked, {}, revision, outcome));
    EXPECT_GE(outcome.revision, revision);
    EXPECT_EQ(outcome.labels[0], outcome.labels[1]);
    // NaN before there is a class.
    EXPECT_EQ(std::bit_cast<uint32_t>(outcome.scores[0]),
              std::bit_cast<uint32_t>(outcome.scores[1]));
    revision = outcome.revision;
    ExplainOutcome explained;
    (void)model->Explain(asked, {}, {0, 1000, {}}, explained);
  }
  // Counters and weights of one moment fit together.
  void ReportOnce(uint64_t& examples) {
    const std::shared_ptr<Model> model = store_->Acquire("m").value();
    const ModelReader reader(*model);
    const ConvergenceReport report = MakeReport(reader);
    EXPECT_EQ(report.updates(), reader.revision());
    EXPECT_EQ(report.duplicates(), 0U);
    EXPECT_GE(report.examples(), examples);
    examples = report.examples();
    for (const WeightList& list : ListWeights(reader)) EXPECT_EQ(list.revision, reader.revision());
  }
  // Not every learner can be analyzed or has weights that can be replaced.
  void AnalyzeOnce() {
    const std::shared_ptr<Model> model = store_->Acquire("m").value();
    const auto analysis =
        AnalyzeModel(*model, {}, [](const ModelAnalysisProgress&) { return true; });
    if (!analysis.ok()) return;
    EXPECT_LE(CopyStoredExamples(*model).examples.sample.size(), 20U);
    EXPECT_LE(analysis->record.revision(), static_cast<int64_t>(model->revision()));
    if (analysis->separator.has_value())
      (void)model->ReplaceWeights(*analysis->separator, std::nullopt);
  }

  const std::shared_ptr<testing::RecordingJournal> journal_ =
      std::make_shared<testing::RecordingJournal>(std::make_shared<MemoryJournal>());
  std::unique_ptr<Store> store_;
};

TEST_P(RulesConcurrency, WhatStreamsLearnedAtOnceIsThereAgainToTheBit) {
  std::atomic<bool> done = false;
  std::vector<std::thread> streams;
  for (int i = 0; i < kStreams; ++i) streams.emplace_back([&, i] { LearnStream(i); });
  std::thread reader([&] {
    for (uint64_t revision = 0, examples = 0; !done;) {
      ReadOnce(revision);
      ReportOnce(examples);
      // There is no room for two.
      EXPECT_OK(store_->Acquire("other").status());
    }
  });
  std::thread analyst([&] {
    while (!done) AnalyzeOnce();
  });
  for (std::thread& stream : streams) stream.join();
  done = true;
  reader.join();
  analyst.join();
  ASSERT_OK(store_->committer().Commit(store_->Acquire("m").value()));
  journal_->AwaitSnapshots(1);

  std::string state;
  {
    const std::shared_ptr<Model> model = store_->Acquire("m").value();
    EXPECT_GT(model->revision(), 0U);
    EXPECT_EQ(MakeReport(*model).updates(), model->revision());
    uint64_t examples = 0;
    for (int i = 0; i < kStreams; ++i) {
      for (const auto& message : Messages(i)) examples += message.size();
    }
    EXPECT_EQ(MakeReport(*model).examples(), examples);
    state = StateBytes(*model);
  }
  store_.reset();
  Open();
  EXPECT_EQ(StateBytes(*store_->Acquire("m").value()), state);
}

INSTANTIATE_TEST_SUITE_P(Rules, RulesConcurrency, ::testing::ValuesIn(Cases()), CaseName);

// Streams that hold a deleted model get an error, and nothing crashes.
TEST(DeletionConcurrency, ModelsAreDeletedAndMadeAnewUnderTheirStreams) {
  Store store(std::make_unique<MemoryJournal>(), Store::Options());
  EXPECT_OK(store.Create(testing::DenseSettings("m", 2), "", false).status());
  const testing::Columns rows = testing::Columns().AddDense({1, 2}, 1).AddDense({1, 2}, -1);
  std::atomic<bool> done = false;
  std::vector<std::thread> streams;
  for (int i = 0; i < kStreams; ++i) {
    streams.emplace_back([&, i] {
      while (!done) {
        const absl::Status status =
            testing::Send(store, "m", absl::StrCat("producer-", i), rows.batch()).status;
        EXPECT_TRUE(status.ok() || absl::IsNotFound(status)) << status;
      }
    });
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_OK(store.Delete("m", "", false));
    EXPECT_OK(store.Create(testing::DenseSettings("m", 2), "", false).status());
    EXPECT_OK(testing::Send(store, "m", "main", rows.batch()).status);
  }
  done = true;
  for (std::thread& stream : streams) stream.join();
  EXPECT_EQ(store.catalogue().Count().value(), 1U);
}

}  // namespace
}  // namespace perceptrond::rules_concurrency_test
