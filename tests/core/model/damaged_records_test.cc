// A record whose replay does not come out as the record says is data loss, and so is a snapshot that contradicts itself.
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/journal/snapshot_parts.h"
#include "core/model/snapshot.h"
#include "gtest/gtest.h"
#include "tests/support/learners.h"
#include "tests/support/models.h"

namespace perceptrond::damaged_records_test {
namespace {

using testing::Columns;
using Records = std::vector<storage::UpdateRecord>;
using Change = std::function<void(Records&)>;

struct Damage {
  std::string name;
  std::string learner;
  Change change;
  bool is_taken = false;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedRecords : public ::testing::TestWithParam<Damage> {};

// Three updates of two features and, of the batch perceptron, the step after them, which is a record of its own.
TEST_P(DamagedRecords, AreDataLoss) {
  MemoryJournal journal;
  ::perceptron::v1::Model settings = testing::DenseSettings("model", 2);
  testing::SetLearner(*settings.mutable_learner(), GetParam().learner);
  const std::shared_ptr<Model> model = testing::MakeModel(journal, settings);
  Producer producer("");
  LearnCall call;
  const Columns columns = Columns().AddDense({1, 2}, 1).AddDense({2, 1}, -1).AddDense({3, 1}, 1);
  call.batch = columns.batch();
  call.producer = &producer;
  call.completed_pass = 1;
  LearnOutcome outcome;
  ASSERT_OK(model->Learn(call, outcome));
  JournalEntry entry = model->ledger().TakePending().entry;
  ASSERT_EQ(entry.records.size(), GetParam().learner == "batch-perceptron" ? 2U : 1U);
  entry.model_id = model->id();
  GetParam().change(entry.records);
  ASSERT_OK(journal.Commit({&entry, 1}, {}).status());
  const absl::Status status =
      Model::Load(journal.Find("model").value(), journal, Model::Limits()).status();
  EXPECT_EQ(status.code(),
            GetParam().is_taken ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss)
      << status;
}

const std::vector<Damage> kDamages = {
    {"None", "perceptron", [](Records&) {}, true},
    {"NoRecord", "perceptron", [](Records& records) { records.clear(); }},
    {"AnotherLabel", "perceptron", [](Records& records) { records[0].set_labels(1, 1); }},
    {"AnotherValue", "perceptron", [](Records& records) { records[0].set_values(5, 3.5F); }},
    {"AnotherNorm", "perceptron", [](Records& records) { records[0].set_squared_norm(14.000001); }},
    {"BeginsTooLate", "perceptron", [](Records& records) { records[0].set_first_revision(2); }},
    {"MoreLabelsThanRows", "perceptron",
     [](Records& records) { records[0].mutable_labels()->Add(1); }},
    {"RowOutsideTheModel", "perceptron",
     [](Records& records) {
       records[0].set_dense_width(3);  // three values a row: the model has two weights
       records[0].mutable_labels()->RemoveLast();
     }},
    // As a server writes it from before there were curves.
    {"NoCurve", "perceptron", [](Records& records) { records[0].clear_learning_curve(); }, true},
    {"PointAfterTheRecord", "perceptron",
     [](Records& records) { records[0].mutable_learning_curve(0)->set_revision(99); }},
    {"PointBeforeTheFirst", "perceptron",
     [](Records& records) { records[0].mutable_learning_curve(0)->set_revision(-1); }},
    {"PointWithoutANorm", "perceptron",
     [](Records& records) { records[0].mutable_learning_curve(0)->set_weight_norm(-1); }},
    {"WholeStep", "batch-perceptron", [](Records&) {}, true},
    {"StepWithALabel", "batch-perceptron", [](Records& records) { records[1].set_labels(0, 1); }},
    {"RowInsteadOfAStep", "batch-perceptron",
     [](Records& records) { records[1].clear_batch_ends(); }},
    {"StepToAnotherNorm", "batch-perceptron",
     [](Records& records) { records[1].set_squared_norm(3); }},
    // The second finds nothing that waits.
    {"StepTwice", "batch-perceptron",
     [](Records& records) {
       records[1].add_row_ends(0);
       records[1].add_labels(0);
       records[1].add_ages(2);
       records[1].add_batch_ends(1);
     }},
};

INSTANTIATE_TEST_SUITE_P(Damages, DamagedRecords, ::testing::ValuesIn(kDamages),
                         [](const auto& info) { return info.param.name; });

RowStore RandomRows(uint32_t seed, size_t count, size_t features) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  RowStore rows;
  for (size_t n = 0; n < count; ++n) {
    std::vector<float> values(random() % (features + 1));
    for (float& value : values) value = normal(random);
    rows.Push({nullptr, values.data(), values.size()}, normal(random));
    // Some that have gone: no trace of them is kept.
    if (random() % 4 == 0) rows.Pop();
  }
  return rows;
}

storage::Snapshot Write(const RowStore& rows) {
  LearnerStateView view;
  view.scalars = {1, 2};
  view.rows = &rows;
  return WriteState(view);
}

TEST(SnapshotRows, AreCutIntoPartsAndPutTogether) {
  // More features than are written together.
  const RowStore rows = RandomRows(2, 200, 8000);
  storage::Snapshot snapshot = Write(rows);
  ASSERT_GT(snapshot.rows_size(), 2);
  snapshot.mutable_stored_rows()->set_hash_limit(1);
  for (storage::DocumentFrequencies* const all :
       {snapshot.mutable_document_frequencies(), snapshot.mutable_document_counts()}) {
    all->set_documents(3);
    for (uint32_t slot = 0; slot < 200'000; ++slot) {
      all->add_slot_distances(slot);
      all->add_counts(slot % 7);
    }
  }
  for (int revision = 0; revision < 20'000; ++revision)
    snapshot.mutable_stored_rows()->add_rows()->add_names(absl::StrCat("name of row ", revision));
  int parts = 0;
  storage::Snapshot whole;
  ASSERT_OK(ForEachPart(snapshot, 1 << 20, [&](const storage::Snapshot& part) {
    ++parts;
    return AppendPart(part, whole);
  }));
  EXPECT_GT(parts, 5);
  EXPECT_EQ(whole.SerializeAsString(), snapshot.SerializeAsString());
}

// A copy of millions of small rows, as a hostile file has, would take the memory twice.
TEST(SnapshotRows, OfAPartAreMovedToTheWhole) {
  storage::Snapshot whole;
  for (int i = 0; i < 2; ++i) {
    storage::Snapshot part;
    std::vector<const void*> elements = {part.add_rows(), part.add_names(), part.add_class_names(),
                                         part.mutable_stored_rows()->add_rows()};
    ASSERT_OK(AppendPart(std::move(part), whole));
    EXPECT_EQ(elements,
              (std::vector<const void*>{&whole.rows(i), &whole.names(i), &whole.class_names(i),
                                        &whole.stored_rows().rows(i)}));
  }
}

TEST(SnapshotRows, ThatContradictThemselvesAreDataLoss) {
  const auto read = [](const std::function<void(storage::StateRows&)>& change) {
    RowStore rows;
    const std::vector<float> values = {1, 2, 3};
    rows.Push({nullptr, values.data(), 3}, 1);
    storage::Snapshot snapshot = Write(rows);
    change(*snapshot.mutable_rows(0));
    return ReadState(snapshot).status();
  };
  EXPECT_OK(read([](storage::StateRows&) {}));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.set_row_ends(0, 4); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.add_row_ends(1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.add_values(1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) { rows.set_indices(0, 1); })));
  EXPECT_TRUE(absl::IsDataLoss(read([](storage::StateRows& rows) {
    rows.add_row_ends(2);
    rows.add_coefficients(1);
  })));
  // The first part continues no array.
  storage::Snapshot part;
  part.add_arrays()->set_continued(true);
  storage::Snapshot whole;
  EXPECT_TRUE(absl::IsDataLoss(AppendPart(std::move(part), whole)));
}

}  // namespace
}  // namespace perceptrond::damaged_records_test
