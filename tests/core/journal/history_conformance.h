// What every home of the journal must do with aliases, other names and kept snapshots of models.
#pragma once

#include "tests/core/journal/journal_conformance.h"

namespace perceptrond {
namespace {

Alias MakeAlias(const std::string& name, const std::string& model, const std::string& etag) {
  Alias alias;
  alias.set_name(name);
  alias.set_model(model);
  alias.set_etag(etag);
  return alias;
}

storage::Snapshot MakeState(uint64_t revision, float weight) {
  storage::Snapshot snapshot;
  snapshot.set_revision(revision);
  storage::StateArray& array = *snapshot.add_arrays();
  array.set_size(3);
  for (int i = 0; i < 3; ++i) array.add_values(weight + static_cast<float>(i));
  return snapshot;
}

TEST_P(JournalConformance, AnAliasIsWrittenOnlyOverTheOneThatItsWriterKnows) {
  const Alias first = MakeAlias("aliases/a.b", "a", "1");
  const Alias second = MakeAlias("aliases/a.b", "b", "2");
  EXPECT_TRUE(journal_->aliases().empty());
  EXPECT_TRUE(absl::IsAborted(journal_->PutAlias(first, "0")));
  ASSERT_OK(journal_->PutAlias(first, ""));
  EXPECT_EQ(Bytes(journal_->aliases().Find("aliases/a.b").value()), Bytes(first));
  EXPECT_TRUE(absl::IsAborted(journal_->PutAlias(MakeAlias("aliases/a.b", "c", "3"), "")));
  ASSERT_OK(journal_->PutAlias(second, "1"));
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/a.b").value(), "b");
  EXPECT_TRUE(absl::IsAborted(journal_->DeleteAlias("aliases/a.b", "1")));
  ASSERT_OK(journal_->DeleteAlias("aliases/a.b", "2"));
  EXPECT_FALSE(journal_->aliases().Find("aliases/a.b").has_value());
  EXPECT_TRUE(absl::IsAborted(journal_->DeleteAlias("aliases/a.b", "2")));
}

TEST_P(JournalConformance, AliasesThatDifferInADotAreTwo) {
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/a.b", "x", "1"), ""));
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/ab", "y", "1"), ""));
  ASSERT_OK(journal_->DeleteAlias("aliases/ab", "1"));
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/a.b").value(), "x");
}

TEST_P(JournalConformance, ARenamedModelIsTheSameOneAndItsAliasesFollow) {
  storage::ModelHeader header = CreateModel(*journal_, "a");
  CreateModel(*journal_, "other");
  const storage::ModelHeader before = header;
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/x", "a", "1"), ""));
  ASSERT_OK(journal_->PutAlias(MakeAlias("aliases/y", "other", "1"), ""));
  header.mutable_model()->set_name("other");
  EXPECT_TRUE(absl::IsAlreadyExists(journal_->Rename("a", header)));
  header.mutable_model()->set_name("b");
  EXPECT_TRUE(absl::IsNotFound(journal_->Rename("c", header)));
  ASSERT_OK(journal_->Rename("a", header));
  EXPECT_TRUE(absl::IsNotFound(journal_->Find("a").status()));
  EXPECT_EQ(Bytes(journal_->Find("b").value()), Bytes(header));
  EXPECT_EQ(journal_->Count().value(), 2U);
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/x").value(), "b");
  EXPECT_EQ(journal_->aliases().ModelOf("aliases/y").value(), "other");
}

TEST_P(JournalConformance, KeptSnapshotsStayWhileTheModelsOwnIsReplaced) {
  const storage::ModelHeader header = CreateModel(*journal_, "a");
  std::vector<storage::KeptSnapshot> kept(3);
  for (uint64_t number = 1; number <= 2; ++number) {
    const auto part_bytes =
        journal_->SaveKept(header.id(), number, MakeState(number, static_cast<float>(number)));
    ASSERT_OK(part_bytes.status());
    kept[number].set_number(number);
    kept[number].mutable_part_bytes()->Assign(part_bytes->begin(), part_bytes->end());
  }
  ASSERT_OK(journal_->DeleteKept(header.id(), 2));
  EXPECT_EQ(Bytes(journal_->LoadKept(header.id(), kept[1]).value()), Bytes(MakeState(1, 1)));
  EXPECT_TRUE(absl::IsDataLoss(journal_->LoadKept(header.id(), kept[2]).status()));
}

}  // namespace
}  // namespace perceptrond
