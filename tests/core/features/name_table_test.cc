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

// Of one name.
uint32_t IndexOf(uint32_t number, const Dictionary* dictionary, NameTable& table) {
  uint32_t index = 0;
  table.Map({&number, 1}, dictionary, &index);
  EXPECT_EQ(table.Index(number, dictionary), index);
  return index;
}

// Whether a name of a stream's table was appended again; a bound table then has it no more.
bool IsOutdated(uint32_t number, uint32_t capacity, const NameTable& table) {
  return capacity > 0 && table.name(number).empty();
}

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

TEST(NameTable, OfAStreamKnowsANameByItsNewestNumberAlone) {
  NameTable table(8);
  Dictionary dictionary;
  const uint32_t number = dictionary.Add("a");
  ASSERT_FALSE(Append({"a", "b"}, table));
  ASSERT_FALSE(Append({"c", "a"}, table));
  for (const bool hashed : {true, false, true}) {
    hashed ? table.BindToSlots(1024) : static_cast<void>(table.BindTo(dictionary));
    const std::vector<uint32_t> old = {0, 1};
    const std::vector<uint32_t> latest = {1, 2, 3};
    std::vector<uint32_t> indices(3);
    EXPECT_TRUE(table.Map(old, hashed ? nullptr : &dictionary, indices.data()).outdated);
    EXPECT_FALSE(table.Map(latest, hashed ? nullptr : &dictionary, indices.data()).outdated);
    EXPECT_EQ(indices[2], hashed ? NameSlot("a", 1024) : number);
  }
}

TEST(NameTable, InternsEachNameOfAMessageOnce) {
  NameTable table;
  for (int message = 0; message < 3; ++message) {
    table.Clear();
    absl::flat_hash_map<std::string, uint32_t> numbers;
    std::mt19937 random(7);
    std::deque<std::string> names;
    for (int i = 0; i < 5000; ++i) {
      const std::string& name = names.emplace_back(absl::StrCat("name", random() % 900));
      const auto [number, is_new] = numbers.emplace(name, numbers.size());
      ASSERT_EQ(table.Intern(name), number->second);
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
          if (IsOutdated(i, capacity, table)) continue;
          ASSERT_EQ(IndexOf(i, nullptr, table), NameSlot(table.name(i), 64));
        }
        continue;
      }
      Dictionary& dictionary = dictionaries[random() % 2];
      // By another stream.
      const std::string others = absl::StrCat("n", random() % 400);
      if (dictionary.Find(others) == Dictionary::kUnknown) dictionary.Add(others);
      table.BindTo(dictionary);
      for (uint32_t i = table.begin(); i < table.end(); ++i) {
        if (IsOutdated(i, capacity, table)) continue;
        ASSERT_EQ(IndexOf(i, &dictionary, table), dictionary.Find(table.name(i)));
        // By this one.
        if (random() % 8 > 0 || dictionary.Find(table.name(i)) != Dictionary::kUnknown) continue;
        table.SetNumber(i, dictionary.Add(table.name(i)));
      }
    }
  }
}

TEST(NameTable, TellsWhichRowsHaveNamesThatShareASlotOrAreTheSame) {
  std::mt19937 random(13);
  for (const uint32_t capacity : {0U, 32U}) {
    NameTable table(capacity);
    Dictionary dictionary;
    std::deque<std::string> texts;
    for (int round = 0; round < 300; ++round) {
      if (capacity == 0) table.Clear();
      std::vector<std::string> names;
      for (uint32_t i = 1 + random() % 24; i > 0; --i)
        names.push_back(absl::StrCat("n", random() % 60));
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
        bool repeats = false;
        bool shares = false;
        bool outdated = false;
        for (const uint32_t number : numbers) outdated |= IsOutdated(number, capacity, table);
        for (size_t i = 0; i < numbers.size(); ++i) {
          for (size_t j = 0; j < i; ++j) {
            const bool same = table.name(numbers[i]) == table.name(numbers[j]);
            repeats |= same;
            shares |= same || (hashed && NameSlot(table.name(numbers[i]), 128) ==
                                             NameSlot(table.name(numbers[j]), 128));
          }
        }
        std::vector<uint32_t> indices(numbers.size());
        const NameTable::Mapping mapping =
            table.Map(numbers, hashed ? nullptr : &dictionary, indices.data());
        ASSERT_EQ(mapping.outdated, outdated);
        if (outdated) continue;
        ASSERT_EQ(mapping.repeats, repeats);
        ASSERT_EQ(mapping.shares, shares);
      }
    }
  }
}

}  // namespace
}  // namespace name_table_test
}  // namespace perceptrond
