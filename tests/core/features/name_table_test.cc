#include "core/features/name_table.h"

#include <algorithm>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gtest/gtest.h"

namespace perceptrond {
namespace name_table_test {
namespace {

std::vector<uint32_t> Lengths(const std::vector<std::string>& names) {
  std::vector<uint32_t> lengths;
  for (const std::string& name : names) lengths.push_back(static_cast<uint32_t>(name.size()));
  return lengths;
}

ValidationError Append(const std::vector<std::string>& names, NameTable& table) {
  return table.Append(absl::StrJoin(names, ""), Lengths(names));
}

// The index of one name.
uint32_t IndexOf(uint32_t number, NameTable& table) {
  uint32_t index = 0;
  EXPECT_EQ(table.Map({&number, 1}, &index), NameTable::Mapping::kDistinct);
  EXPECT_EQ(table.Index(number), index);
  return index;
}

// True if a name was appended again; a table that is bound has it no more.
bool IsOutdated(uint32_t number, const NameTable& table) { return table.name(number).empty(); }

TEST(NameTable, RefusesNamesThatItCannotTellApart) {
  NameTable table(4);
  const std::vector<uint32_t> one = {1};
  const std::vector<uint32_t> two = {1, 1};
  EXPECT_EQ(table.Append("ab", one).code, ValidationCode::kMalformedColumns);
  EXPECT_EQ(table.Append("a", two).field, ".lengths");
  const ValidationError empty = Append({"a", ""}, table);
  EXPECT_EQ(empty.code, ValidationCode::kBadName);
  EXPECT_EQ(empty.field, ".lengths[1]");
  EXPECT_EQ(Append({std::string(1025, 'x')}, table).code, ValidationCode::kBadName);
  // Two bytes of one character.
  EXPECT_EQ(table.Append("\xc3\xa9", two).code, ValidationCode::kBadName);
  EXPECT_EQ(Append({"a", "b", "c", "d", "e"}, table).field, "");
  EXPECT_EQ(table.end(), 0U);
  EXPECT_FALSE(Append({std::string(1024, 'x'), "\xc3\xa9"}, table));
  EXPECT_EQ(table.end(), 2U);
}

TEST(NameTable, OfAStreamKeepsTheLatestNamesWhateverIsAppendedTogether) {
  std::mt19937 random(5);
  for (const uint32_t capacity : {4U, 8U, 64U}) {
    NameTable table(capacity);
    std::deque<std::string> expected;
    uint32_t count = 0;
    for (int round = 0; round < 300; ++round) {
      std::vector<std::string> names;
      for (uint32_t i = random() % (capacity + 1); i > 0; --i)
        names.push_back(absl::StrCat("n", random() % 50, std::string(random() % 40, 'x')));
      std::string text = absl::StrJoin(names, "");
      ASSERT_FALSE(table.Append(text, Lengths(names)));
      // The table has a copy.
      std::fill(text.begin(), text.end(), '?');
      for (const std::string& name : names) expected.push_back(name);
      while (expected.size() > capacity) expected.pop_front();
      count += static_cast<uint32_t>(names.size());
      ASSERT_EQ(table.end(), count);
      ASSERT_EQ(table.begin(), count - expected.size());
      // Not bound: no name is known to be appended again.
      for (uint32_t i = table.begin(); i < table.end(); ++i) {
        ASSERT_EQ(table.name(i), expected[i - table.begin()]);
        ASSERT_EQ(table.hash(i), HashName(table.name(i)));
      }
    }
  }
}

TEST(NameTable, InternsEachNameOfAMessageOnce) {
  NameTable table;
  for (int message = 0; message < 3; ++message) {
    table.Clear();
    absl::flat_hash_map<std::string, uint32_t> numbers;
    std::mt19937 random(7);
    std::deque<std::string> names;
    for (int i = 0; i < 1000; ++i) {
      std::vector<absl::string_view> row;
      std::vector<uint32_t> expected;
      for (int j = 0; j < i % 10; ++j) {
        // Names have 1 to 20 bytes, of which one differs.
        std::string& name = names.emplace_back(1 + random() % 20, 'n');
        name[random() % name.size()] = static_cast<char>('a' + random() % 5);
        row.push_back(name);
        expected.push_back(numbers.emplace(name, numbers.size()).first->second);
      }
      std::vector<uint32_t> found(row.size());
      table.Intern(row, found.data());
      ASSERT_EQ(found, expected);
      ASSERT_EQ(table.end(), numbers.size());
    }
  }
}

// The reference looks every name up anew.
TEST(NameTable, ResolvesEveryNameAsALookUpDoesWhileTheDictionaryGrowsAndModelsChange) {
  std::mt19937 random(11);
  for (const uint32_t capacity : {0U, 16U, 256U}) {
    NameTable table(capacity);
    std::vector<Dictionary> dictionaries(2);
    std::deque<std::string> texts;
    for (int round = 0; round < 400; ++round) {
      if (capacity == 0) table.Clear();
      std::vector<std::string> names;
      for (uint32_t i = 1 + random() % 12; i > 0; --i)
        names.push_back(absl::StrCat("n", random() % 400));
      ASSERT_FALSE(table.Append(texts.emplace_back(absl::StrJoin(names, "")), Lengths(names)));
      if (random() % 3 == 0) {
        table.BindToSlots(64);
        for (uint32_t i = table.begin(); i < table.end(); ++i) {
          if (IsOutdated(i, table)) continue;
          ASSERT_EQ(IndexOf(i, table), NameSlot(table.name(i), 64));
        }
        continue;
      }
      Dictionary& dictionary = dictionaries[random() % 2];
      // By another stream.
      const std::string others = absl::StrCat("n", random() % 400);
      if (dictionary.Find(others) == Dictionary::kUnknown) dictionary.Add(others);
      table.BindTo(dictionary);
      for (uint32_t i = table.begin(); i < table.end(); ++i) {
        if (IsOutdated(i, table)) continue;
        ASSERT_EQ(IndexOf(i, table), dictionary.Find(table.name(i)));
        // By this one.
        if (random() % 8 > 0 || dictionary.Find(table.name(i)) != Dictionary::kUnknown) continue;
        table.SetNumber(i, dictionary.Add(table.name(i)));
      }
    }
  }
}

TEST(NameTable, TellsWhichRowsHaveNamesThatShareASlotOrWereAppendedAgain) {
  std::mt19937 random(13);
  for (const uint32_t capacity : {0U, 32U}) {
    NameTable table(capacity);
    Dictionary dictionary;
    std::deque<std::string> texts;
    std::vector<std::string> appended;
    absl::flat_hash_map<std::string, uint32_t> newest;
    for (int round = 0; round < 300; ++round) {
      if (capacity == 0) {
        table.Clear();
        appended.clear();
        newest.clear();
      }
      std::vector<std::string> names;
      for (uint32_t i = 1 + random() % 24; i > 0; --i) {
        names.push_back(absl::StrCat("n", random() % 60));
        newest[names.back()] = static_cast<uint32_t>(appended.size());
        appended.push_back(names.back());
      }
      ASSERT_FALSE(table.Append(texts.emplace_back(absl::StrJoin(names, "")), Lengths(names)));
      const bool hashed = random() % 2 == 0;
      if (hashed) {
        table.BindToSlots(128);
      } else {
        table.BindTo(dictionary);
      }
      for (int row = 0; row < 10; ++row) {
        std::vector<uint32_t> numbers;
        for (uint32_t i = table.begin(); i < table.end(); ++i) {
          if (random() % 4 == 0) numbers.push_back(i);
        }
        auto expected = NameTable::Mapping::kDistinct;
        for (size_t i = 0; i < numbers.size(); ++i) {
          for (size_t j = 0; hashed && j < i; ++j) {
            if (NameSlot(appended[numbers[i]], 128) == NameSlot(appended[numbers[j]], 128))
              expected = NameTable::Mapping::kShared;
          }
        }
        for (const uint32_t number : numbers) {
          if (newest.at(appended[number]) != number) expected = NameTable::Mapping::kOutdated;
        }
        std::vector<uint32_t> indices(numbers.size());
        ASSERT_EQ(table.Map(numbers, indices.data()), expected);
      }
    }
  }
}

}  // namespace
}  // namespace name_table_test
}  // namespace perceptrond
