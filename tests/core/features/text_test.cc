#include "core/features/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/features/mapper.h"
#include "core/features/names.h"

namespace perceptrond {
namespace {

using ::testing::_;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Value = TextOptions::Value;

constexpr uint32_t kSlots = 1U << 20;

// A text's row, by slot.
std::map<uint32_t, float> ReadRow(absl::string_view text, const TextOptions& options,
                                  uint32_t slots = kSlots) {
  TextReader reader;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  EXPECT_EQ(reader.Read(text, options, slots, kMaxBatchGrams, indices, values),
            ValidationCode::kNone);
  EXPECT_TRUE(std::is_sorted(indices.begin(), indices.end()));
  std::map<uint32_t, float> row;
  for (size_t i = 0; i < indices.size(); ++i) row[indices[i]] = values[i];
  EXPECT_EQ(row.size(), indices.size());
  return row;
}

// A row of names, valued as given.
std::map<uint32_t, float> OfNames(const std::map<std::string, float>& names) {
  std::map<uint32_t, float> row;
  for (const auto& [name, value] : names) row[NameSlot(name, kSlots)] += value;
  return row;
}

TextOptions Raw(Value value, uint32_t words) {
  TextOptions options;
  options.value = value;
  options.max_words = words;
  options.keep_norm = true;
  return options;
}

constexpr char kText[] = "Free prize! FREE prize, free.";

TEST(Text, HasTheSlotsOfTheNamesOfItsWords) {
  EXPECT_EQ(ReadRow(kText, Raw(Value::kPresence, 1)), OfNames({{"free", 1}, {"prize", 1}}));
  EXPECT_EQ(ReadRow(kText, Raw(Value::kPresence, 2)),
            OfNames({{"free", 1}, {"prize", 1}, {"free prize", 1}, {"prize free", 1}}));
  EXPECT_EQ(ReadRow("one", Raw(Value::kPresence, 5)), OfNames({{"one", 1}}));
}

TEST(Text, HasCountsOrTheirLogarithms) {
  EXPECT_EQ(ReadRow(kText, Raw(Value::kCount, 2)),
            OfNames({{"free", 3}, {"prize", 2}, {"free prize", 2}, {"prize free", 2}}));
  EXPECT_EQ(ReadRow(kText, Raw(Value::kLogCount, 1)),
            OfNames({{"free", std::log(4.0F)}, {"prize", std::log(3.0F)}}));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "free ";
  EXPECT_EQ(ReadRow(many, Raw(Value::kLogCount, 1)), OfNames({{"free", std::log(1001.0F)}}));
}

// As scikit-learn's CountVectorizer(analyzer="char", ngram_range=(2, 3)).
TEST(Text, HasItsCharactersWithOneSpaceBetweenWords) {
  TextOptions options = Raw(Value::kCount, 0);
  options.min_characters = 2;
  options.max_characters = 3;
  EXPECT_EQ(ReadRow(" A\n  \xc3\x89! a\xc3\xa9", options), OfNames({{"char^a ", 1},
                                                                    {"char^ \xc3\xa9", 1},
                                                                    {"char^\xc3\xa9!", 1},
                                                                    {"char^! ", 1},
                                                                    {"char^ a", 1},
                                                                    {"char^a\xc3\xa9", 1},
                                                                    {"char^a \xc3\xa9", 1},
                                                                    {"char^ \xc3\xa9!", 1},
                                                                    {"char^\xc3\xa9! ", 1},
                                                                    {"char^! a", 1},
                                                                    {"char^ a\xc3\xa9", 1}}));
}

TEST(Text, HasANormOfOneUnlessItIsKept) {
  TextOptions options;
  options.value = Value::kCount;
  options.max_words = 1;
  const std::map<uint32_t, float> row = ReadRow("a a a b b b b", options);
  EXPECT_EQ(row, OfNames({{"a", 0.6F}, {"b", 0.8F}}));
  EXPECT_TRUE(ReadRow("", options).empty());
  EXPECT_TRUE(ReadRow("?!", options).empty());
}

TEST(Text, AddsWhatSharesASlotBeforeTheNorm) {
  TextOptions options = Raw(Value::kPresence, 1);
  const std::map<uint32_t, float> raw = ReadRow("a b c d e f g h", options, 2);
  float sum = 0;
  for (const auto& [slot, value] : raw) sum += value;
  EXPECT_EQ(sum, 8);
  options.keep_norm = false;
  double squared = 0;
  for (const auto& [slot, value] : ReadRow("a b c d e f g h", options, 2))
    squared += static_cast<double>(value) * static_cast<double>(value);
  EXPECT_NEAR(squared, 1, 1e-6);
}

TEST(Text, NamesItsFeatures) {
  TextReader reader;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  TextOptions options;
  options.value = Value::kCount;
  ASSERT_EQ(reader.Read("a a b", options, kSlots, kMaxBatchGrams, indices, values),
            ValidationCode::kNone);
  absl::flat_hash_map<uint64_t, std::string> names;
  std::map<uint32_t, float> row;
  reader.ForEachFeature(options, kSlots, [&](const TextFeature& feature) {
    names.try_emplace(feature.key);
    row[feature.slot] += feature.value;
  });
  reader.FindNames(options, kSlots, names);
  EXPECT_THAT(names,
              UnorderedElementsAre(Pair(_, "a"), Pair(_, "a a"), Pair(_, "a b"), Pair(_, "b")));
  EXPECT_EQ(row, ReadRow("a a b", options));
}

TEST(Text, RefusesTextsThatAreTooLongOrNotUtf8AndTooManyNGrams) {
  TextReader reader;
  std::vector<uint32_t> indices;
  std::vector<float> values;
  const auto read = [&](absl::string_view text, size_t most) {
    return reader.Read(text, TextOptions(), kSlots, most, indices, values);
  };
  EXPECT_EQ(read("a\xff", 100), ValidationCode::kBadText);
  EXPECT_EQ(read(std::string(kMaxTextBytes + 1, 'a'), 100), ValidationCode::kBadText);
  EXPECT_EQ(read(std::string(kMaxTextBytes, 'a'), 100), ValidationCode::kNone);
  EXPECT_EQ(read("a b c", 4), ValidationCode::kTooManyFeatures);
  EXPECT_EQ(indices.size(), 1U);
  EXPECT_EQ(read("a b c", 5), ValidationCode::kNone);
  EXPECT_EQ(indices.size(), 6U);
}

TEST(Text, IsNoFormOfAnotherSpace) {
  const absl::string_view texts[] = {"free"};
  const uint32_t ends[] = {0};
  Batch batch;
  batch.row_ends = ends;
  batch.texts = texts;
  FeatureSpace space{FeatureSpace::Kind::kHashed, 16};
  EXPECT_EQ(Mapper(space).Begin(batch).field, "texts");
  space.text = TextOptions();
  EXPECT_FALSE(Mapper(space).Begin(batch));
  const uint32_t indices[] = {3};
  const uint32_t one[] = {1};
  Batch sparse;
  sparse.row_ends = one;
  sparse.indices = indices;
  EXPECT_EQ(Mapper(space).Begin(sparse).code, ValidationCode::kMalformedColumns);
}

}  // namespace
}  // namespace perceptrond
