// Rollback, of every rule of the catalogue: a commit that fails takes the model back to its last
// durable revision to the bit, and what is sent again brings it to where it would have been.
#include <bit>
#include <optional>
#include <span>

#include "core/learner/catalogue.h"
#include "gtest/gtest.h"
#include "tests/support/class_traffic.h"
#include "tests/support/faulty_journal.h"
#include "tests/support/learners.h"
#include "tests/support/tight.h"

namespace perceptrond::rules_rollback_test {
namespace {

using testing::ClassBatch;
using testing::ClassKind;
using testing::FaultyJournal;
using testing::Message;
using testing::Sent;
using testing::Space;
using testing::SpaceBatch;
using testing::StateBytes;
using Call = FaultyJournal::Call;
using Fate = FaultyJournal::Fate;
namespace v1 = ::perceptron::v1;

constexpr int kClasses = 6;
constexpr uint32_t kDimension = 20;
constexpr char kName[] = "models/m";

// A rule for two labels, the same with little room for what it keeps, or for several classes that
// are added by name.
enum class Form { kTwoLabels, kTight, kClasses };

using Case = std::tuple<std::string, Form>;

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) {
    const auto kind = entry.name;
    cases.emplace_back(kind, Form::kTwoLabels);
    if (testing::CanBeTight(entry.name)) cases.emplace_back(kind, Form::kTight);
    if (entry.has_classes()) cases.emplace_back(kind, Form::kClasses);
  }
  for (const std::string& kind : testing::LogisticWithSteps()) {
    cases.emplace_back(kind, Form::kTwoLabels);
    cases.emplace_back(kind, Form::kClasses);
  }
  return cases;
}

std::string CaseName(const ::testing::TestParamInfo<std::tuple<Case, Fate>>& info) {
  constexpr const char* kForms[] = {"", "_Tight", "_Classes"};
  constexpr const char* kFates[] = {"Works", "Fails", "FailsAfterwards", "LeavesRecords"};
  const auto& [kind, form] = std::get<0>(info.param);
  return testing::TestName(kind) + kForms[static_cast<int>(form)] + "_" +
         kFates[static_cast<int>(std::get<1>(info.param))];
}

class Rollback : public ::testing::TestWithParam<std::tuple<Case, Fate>> {
 protected:
  void SetUp() override { twin_.emplace(Settings()); }
  std::string kind() const { return std::get<0>(std::get<0>(GetParam())); }
  Form form() const { return std::get<1>(std::get<0>(GetParam())); }
  Fate fate() const { return std::get<1>(GetParam()); }

  v1::Model Settings() const {
    v1::Model settings = testing::SpaceSettings(Space::kNamed, kName, kDimension);
    testing::SetLearner(*settings.mutable_learner(), kind());
    if (form() == Form::kTight) testing::Tighten(*settings.mutable_learner());
    if (form() == Form::kClasses) testing::SetClasses(ClassKind::kNamed, kClasses, settings);
    return settings;
  }
  std::vector<Message> Messages(uint32_t seed, size_t count) const {
    if (form() != Form::kClasses) {
      testing::TrafficOptions traffic;
      traffic.dimension = kDimension;
      traffic.messages = count;
      return MakeTraffic(seed, traffic);
    }
    std::vector<Message> messages;
    int64_t offset = 0;
    for (auto& examples : testing::ClassMessages(seed, kClasses, kDimension, count)) {
      const auto rows = static_cast<int64_t>(examples.size());
      messages.push_back({"p", offset, std::move(examples), 0});
      offset += rows;
    }
    return messages;
  }
  // Calls `use` with the message as a batch.
  template <typename Use>
  auto WithBatch(const Message& message, const Use& use) const {
    if (form() == Form::kClasses)
      return use(ClassBatch(ClassKind::kNamed, Space::kNamed, message.examples).batch());
    return use(SpaceBatch(Space::kNamed, message.examples).batch());
  }
  Sent SendTo(Store& store, const Message& message) const {
    return WithBatch(message, [&](const Batch& batch) {
      return testing::Send(store, kName, message.producer, batch, message.first_offset,
                           message.completed_pass);
    });
  }
  // Every bit that it answers with.
  std::vector<uint32_t> Answers(const Model& model) const {
    std::vector<uint32_t> bits;
    for (const Message& message : Messages(2, 10)) {
      const PredictOutcome outcome = WithBatch(message, [&](Batch batch) {
        batch.labels = {};
        batch.label_names = {};
        PredictOutcome answers;
        EXPECT_OK(model.Predict(batch, {}, 0, answers));
        return answers;
      });
      for (const auto* values : {&outcome.scores, &outcome.distances, &outcome.probabilities}) {
        for (const float value : *values) bits.push_back(std::bit_cast<uint32_t>(value));
      }
    }
    return bits;
  }
  // Every third commit meets the fate. No snapshots, whose commits would be counted too.
  std::unique_ptr<Store> OpenFailing() const {
    const auto plan = [fate = fate()](Call call, uint64_t number) {
      return call == Call::kCommit && number % 3 == 0 ? fate : Fate::kWorks;
    };
    return OpenOn(std::make_unique<FaultyJournal>(base_, plan), uint64_t{1} << 40);
  }
  static std::unique_ptr<Store> OpenOn(std::unique_ptr<Journal> journal, uint64_t snapshot_bytes) {
    Store::Options options;
    options.snapshot_bytes = snapshot_bytes;
    return std::make_unique<Store>(std::move(journal), options);
  }
  void TeachTwin(const Message& message, LearnOutcome& outcome) {
    outcome = WithBatch(
        message, [&](const Batch& batch) { return twin_->Learn(batch, message.completed_pass); });
  }
  void LearnSafely(std::span<const Message> messages);
  void LearnFailing(std::span<const Message> messages);
  void ExpectTwin() const;

  const std::shared_ptr<Journal> base_ = std::make_shared<MemoryJournal>();
  // Learns the same, and nothing ever fails under it.
  std::optional<testing::LoneModel> twin_;
};

// Leaves a snapshot of all of it.
void Rollback::LearnSafely(std::span<const Message> messages) {
  const std::unique_ptr<Store> store =
      OpenOn(std::make_unique<testing::JournalDecorator>(base_), uint64_t{1} << 40);
  LearnOutcome outcome;
  for (const Message& message : messages) {
    ASSERT_OK(SendTo(*store, message).status);
    TeachTwin(message, outcome);
  }
  const std::shared_ptr<Model> model = store->Acquire(kName).value();
  ASSERT_OK(base_->SaveSnapshot(model->id(), MakeSnapshot(*model)));
}

void Rollback::LearnFailing(std::span<const Message> messages) {
  const std::unique_ptr<Store> store = OpenFailing();
  uint64_t undone = 0;
  for (const Message& message : messages) {
    const std::shared_ptr<Model> before = store->Acquire(kName).value();
    const std::string durable = StateBytes(*before);
    const std::vector<uint32_t> answers = Answers(*before);
    const uint64_t revision = before->revision();
    const Sent sent = SendTo(*store, message);
    LearnOutcome expected;
    TeachTwin(message, expected);
    if (!sent.status.ok()) {
      ASSERT_EQ(testing::ReasonOf(sent.status), "JOURNAL_UNAVAILABLE") << sent.status;
      const std::shared_ptr<Model> after = store->Acquire(kName).value();
      ASSERT_NE(after, before);
      const bool written = fate() == Fate::kFailsAfterwards;
      EXPECT_EQ(after->revision(), written ? twin_->model->revision() : revision);
      EXPECT_EQ(StateBytes(*after), written ? StateBytes(*twin_->model) : durable);
      EXPECT_EQ(Answers(*after), written ? Answers(*twin_->model) : answers);
      undone += expected.updated_rows.size();
      ASSERT_OK(SendTo(*store, message).status);
    }
    ASSERT_EQ((*store->Acquire(kName))->revision(), twin_->model->revision());
  }
  EXPECT_GT(undone, 5U);
  EXPECT_GT(store->stats().commit_failures, 5U);
}

void Rollback::ExpectTwin() const {
  const std::unique_ptr<Store> store =
      OpenOn(std::make_unique<testing::JournalDecorator>(base_), uint64_t{1} << 40);
  const std::shared_ptr<Model> model = store->Acquire(kName).value();
  EXPECT_EQ(StateBytes(*model), StateBytes(*twin_->model));
  EXPECT_EQ(Answers(*model), Answers(*twin_->model));
}

TEST_P(Rollback, GoesToTheLastDurableRevisionToTheBitFromRecords) {
  const std::vector<Message> messages = Messages(1, 60);
  ASSERT_OK(OpenFailing()->Create(Settings(), "", false).status());
  LearnFailing(messages);
  ExpectTwin();
}

TEST_P(Rollback, GoesToTheLastDurableRevisionToTheBitFromASnapshotAndRecords) {
  const std::vector<Message> messages = Messages(1, 60);
  ASSERT_OK(OpenFailing()->Create(Settings(), "", false).status());
  LearnSafely(std::span(messages).first(15));
  LearnFailing(std::span(messages).subspan(15));
  ExpectTwin();
}

INSTANTIATE_TEST_SUITE_P(Rules, Rollback,
                         ::testing::Combine(::testing::ValuesIn(Cases()),
                                            ::testing::Values(Fate::kFails, Fate::kFailsAfterwards,
                                                              Fate::kLeavesRecords)),
                         CaseName);

}  // namespace
}  // namespace perceptrond::rules_rollback_test
