#include "core/features/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "core/features/names.h"
#include "core/sync/cancellation.h"

namespace perceptrond {
namespace {

// What begins the names of n-grams of characters: a group of names.
constexpr absl::string_view kCharacterGroup = "char^";
// What splitting a byte and hashing an n-gram take, in multiply-adds.
constexpr size_t kByteWork = 10;
constexpr size_t kGramWork = 20;

double LogOfCount(size_t count) {
  static const std::array<double, 64> kLogs = [] {
    std::array<double, 64> logs;
    for (size_t i = 0; i < logs.size(); ++i) logs[i] = std::log1p(static_cast<double>(i));
    return logs;
  }();
  return count < kLogs.size() ? kLogs[count] : std::log1p(static_cast<double>(count));
}

double ValueOf(TextOptions::Value value, size_t count) {
  switch (value) {
    case TextOptions::Value::kPresence:
      return 1;
    case TextOptions::Value::kCount:
      return static_cast<double>(count);
    case TextOptions::Value::kLogCount:
      return LogOfCount(count);
  }
  return 1;
}

uint32_t SlotOf(uint64_t key, int bits) { return static_cast<uint32_t>(key >> (64 - bits)); }

// How many n-grams of `shortest` to `longest` parts `parts` have.
size_t Grams(size_t parts, uint32_t shortest, uint32_t longest) {
  size_t grams = 0;
  for (size_t n = std::max(1U, shortest); n <= longest && n <= parts; ++n) grams += parts - n + 1;
  return grams;
}

}  // namespace

void TextReader::JoinWords() {
  words_.clear();
  word_ends_.clear();
  const absl::string_view folded = splitter_.folded();
  for (const TextSplitter::Word& word : splitter_.words()) {
    if (!words_.empty()) words_.push_back(' ');
    words_.append(folded.data() + word.begin, word.end - word.begin);
    word_ends_.push_back(static_cast<uint32_t>(words_.size()));
  }
}

size_t TextReader::CountGrams(const TextOptions& options) const {
  return Grams(word_ends_.size(), 1, options.max_words) +
         Grams(character_ends_.size(), options.min_characters, options.max_characters);
}

size_t TextReader::EndOfRun(size_t i) const {
  size_t end = i + 1;
  while (end < keys_.size() && keys_[end] == keys_[i]) ++end;
  return end;
}

template <typename OnGram>
void TextReader::ForEachGram(const TextOptions& options, const OnGram& on_gram) {
  for (size_t i = 0; options.max_words > 0 && i < word_ends_.size(); ++i) {
    const size_t begin = i == 0 ? 0 : word_ends_[i - 1] + 1;
    const size_t last = std::min(word_ends_.size(), i + options.max_words);
    for (size_t j = i; j < last; ++j)
      on_gram(absl::string_view(words_.data() + begin, word_ends_[j] - begin));
  }
  for (size_t i = 0; options.max_characters > 0 && i < character_ends_.size(); ++i) {
    const size_t begin = i == 0 ? 0 : character_ends_[i - 1];
    const size_t last = std::min(character_ends_.size(), i + options.max_characters);
    for (size_t j = i + options.min_characters - 1; j < last; ++j) {
      name_.assign(kCharacterGroup.data(), kCharacterGroup.size());
      name_.append(characters_, begin, character_ends_[j] - begin);
      on_gram(absl::string_view(name_));
    }
  }
}

ValidationCode TextReader::Read(absl::string_view text, const TextOptions& options, uint32_t slots,
                                size_t most, std::vector<uint32_t>& indices,
                                std::vector<float>& values) {
  grams_ = 0;
  if (text.size() > kMaxTextBytes) return ValidationCode::kBadText;
  if (!KeepGoing(text.size() * kByteWork)) return ValidationCode::kNone;
  if (!splitter_.Split(text)) return ValidationCode::kBadText;
  JoinWords();
  character_ends_.clear();
  if (options.max_characters > 0) JoinCharacters(splitter_.folded(), characters_, character_ends_);
  const size_t grams = CountGrams(options);
  if (grams > most) return ValidationCode::kTooManyFeatures;
  if (!KeepGoing(grams * kGramWork)) return ValidationCode::kNone;
  grams_ = grams;
  keys_.clear();
  keys_.reserve(grams);
  const int bits = std::countr_zero(slots);
  ForEachGram(options,
              [&](absl::string_view name) { keys_.push_back(std::rotr(HashName(name), bits)); });
  // Equal n-grams meet, and so do those of one slot.
  std::sort(keys_.begin(), keys_.end());
  sums_.clear();
  for (size_t i = 0; i < keys_.size();) {
    const size_t next = EndOfRun(i);
    const uint32_t slot = SlotOf(keys_[i], bits);
    const double value = ValueOf(options.value, next - i);
    if (sums_.empty() || sums_.back().first != slot) {
      sums_.emplace_back(slot, value);
    } else {
      sums_.back().second += value;
    }
    i = next;
  }
  double squared = 0;
  for (const auto& [slot, value] : sums_) squared += value * value;
  const bool scales = !options.keep_norm && !options.inverse_document_frequency;
  norm_ = scales && squared != 0 ? std::sqrt(squared) : 1;
  for (const auto& [slot, value] : sums_) {
    indices.push_back(slot);
    values.push_back(static_cast<float>(value / norm_));
  }
  return ValidationCode::kNone;
}

void TextReader::ForEachFeature(const TextOptions& options, uint32_t slots,
                                absl::FunctionRef<void(const TextFeature&)> on_feature) const {
  const int bits = std::countr_zero(slots);
  for (size_t i = 0; i < keys_.size();) {
    if (!KeepGoing(kGramWork)) return;
    const size_t next = EndOfRun(i);
    on_feature({keys_[i], SlotOf(keys_[i], bits),
                static_cast<float>(ValueOf(options.value, next - i) / norm_)});
    i = next;
  }
}

void TextReader::FindNames(const TextOptions& options, uint32_t slots,
                           absl::flat_hash_map<uint64_t, std::string>& names) {
  if (!KeepGoing(grams_ * kGramWork)) return;
  const int bits = std::countr_zero(slots);
  ForEachGram(options, [&](absl::string_view name) {
    const auto wanted = names.find(std::rotr(HashName(name), bits));
    if (wanted != names.end()) wanted->second.assign(name.data(), name.size());
  });
}

ValidationError DescribeText(absl::string_view text, ValidationCode code) {
  ValidationError error{code, "text", ""};
  if (code == ValidationCode::kTooManyFeatures) {
    error.description = absl::StrCat("the message's texts have more than ", kMaxBatchGrams,
                                     " n-grams; send fewer at a time");
  } else if (text.size() > kMaxTextBytes) {
    error.description =
        absl::StrCat("has ", text.size(), " bytes; a text has at most ", kMaxTextBytes);
  } else {
    error.description = "is not UTF-8";
  }
  return error;
}

}  // namespace perceptrond
