#include "core/features/words.h"

#include <unicode/brkiter.h>
#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include <array>
#include <initializer_list>
#include <memory>
#include <new>
#include <stdexcept>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/vector/name.h"

namespace perceptrond {
namespace {

// ICU fails for want of memory, or where its data are not installed.
void CheckIcu(UErrorCode status) {
  if (U_SUCCESS(status)) return;
  if (status == U_MEMORY_ALLOCATION_ERROR) throw std::bad_alloc();
  throw std::runtime_error(absl::StrCat("ICU: ", u_errorName(status)));
}

std::unique_ptr<icu::BreakIterator> MakeIterator() {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> made(
      icu::BreakIterator::createWordInstance(icu::Locale::getRoot(), status));
  CheckIcu(status);
  return made;
}

// A thread's own: an iterator costs more to make than a text to split.
icu::BreakIterator& Iterator() {
  thread_local const std::unique_ptr<icu::BreakIterator> iterator = MakeIterator();
  return *iterator;
}

// Calls on_segment(begin, end) for what lies between two boundaries of words.
template <typename OnSegment>
void ForEachSegment(absl::string_view text, const OnSegment& on_segment) {
  UErrorCode status = U_ZERO_ERROR;
  UText utf8 = UTEXT_INITIALIZER;
  utext_openUTF8(&utf8, text.data(), static_cast<int64_t>(text.size()), &status);
  icu::BreakIterator& iterator = Iterator();
  iterator.setText(&utf8, status);
  utext_close(&utf8);
  CheckIcu(status);
  int32_t begin = iterator.first();
  for (int32_t end = iterator.next(); end != icu::BreakIterator::DONE; end = iterator.next()) {
    on_segment(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
    begin = end;
  }
}

// Removes and returns the first character of UTF-8.
UChar32 TakeCharacter(absl::string_view& text) {
  const size_t size = Utf8Length({text.data(), text.size()});
  const auto byte = [text](size_t i) {
    return static_cast<UChar32>(static_cast<uint8_t>(text[i]));
  };
  UChar32 c = size == 1 ? byte(0) : byte(0) & (0x7f >> size);
  for (size_t i = 1; i < size; ++i) c = c << 6 | (byte(i) & 0x3f);
  text.remove_prefix(size);
  return c;
}

bool MakesWord(UChar32 c) {
  return (U_GET_GC_MASK(c) & (U_GC_L_MASK | U_GC_ND_MASK | U_GC_S_MASK)) != 0;
}

bool IsWord(absl::string_view segment) {
  while (!segment.empty()) {
    if (MakesWord(TakeCharacter(segment))) return true;
  }
  return false;
}

bool IsOneSegment(absl::string_view text) {
  int segments = 0;
  ForEachSegment(text, [&](uint32_t, uint32_t) { ++segments; });
  return segments == 1;
}

// What an ASCII character does to words. ICU is asked, because its versions differ in '@' and ':'.
class AsciiKinds {
 public:
  // Part of a word: as a letter, as a digit, or like '_'.
  static constexpr uint8_t kLetter = 1;
  static constexpr uint8_t kDigit = 2;
  static constexpr uint8_t kUnderscore = 4;
  static constexpr uint8_t kInWord = kLetter | kDigit | kUnderscore;
  // Joins two letters, or two digits, if it is alone between them.
  static constexpr uint8_t kBetweenLetters = 8;
  static constexpr uint8_t kBetweenDigits = 16;
  static constexpr uint8_t kMakesWord = 32;

  AsciiKinds() {
    for (uint8_t c = 0; c < 128; ++c) kinds_[c] = KindOf(static_cast<char>(c));
  }
  uint8_t operator[](char c) const { return kinds_[static_cast<uint8_t>(c)]; }

 private:
  static uint8_t KindOf(char c) {
    const auto joined = [](std::initializer_list<char> text) {
      return IsOneSegment(std::string(text));
    };
    uint8_t kind = MakesWord(c) ? kMakesWord : 0;
    if (joined({'a', c})) {
      // '.' joins letters, and digits.
      kind |= joined({'a', '.', c}) ? kLetter : joined({'1', '.', c}) ? kDigit : kUnderscore;
      return kind;
    }
    if (joined({'a', c, 'a'})) kind |= kBetweenLetters;
    if (joined({'1', c, '1'})) kind |= kBetweenDigits;
    return kind;
  }

  std::array<uint8_t, 128> kinds_ = {};
};

bool IsAscii(absl::string_view text) {
  char all = 0;
  for (const char byte : text) all |= byte;
  return (all & 0x80) == 0;
}

}  // namespace

const std::string& IcuVersion() {
  static const std::string* const version = [] {
    UVersionInfo numbers;
    u_getVersion(numbers);
    return new std::string(absl::StrCat(int{numbers[0]}, ".", int{numbers[1]}));
  }();
  return *version;
}

bool TextSplitter::Split(absl::string_view text, Path path) {
  words_.clear();
  folded_.clear();
  if (path == Path::kFastest && IsAscii(text)) {
    folded_.assign(text.data(), text.size());
    for (char& c : folded_) c = absl::ascii_tolower(static_cast<unsigned char>(c));
    SplitAscii();
    return true;
  }
  if (!IsValidUtf8({text.data(), text.size()})) return false;
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* const fold = icu::Normalizer2::getNFKCCasefoldInstance(status);
  CheckIcu(status);
  icu::StringByteSink<std::string> sink(&folded_);
  fold->normalizeUTF8(0, {text.data(), static_cast<int32_t>(text.size())}, sink, nullptr, status);
  CheckIcu(status);
  path == Path::kFastest&& IsAscii(folded_) ? SplitAscii() : SplitUnicode();
  return true;
}

void TextSplitter::SplitUnicode() {
  const absl::string_view text = folded_;
  ForEachSegment(text, [this, text](uint32_t begin, uint32_t end) {
    if (IsWord(text.substr(begin, end - begin))) words_.push_back({begin, end});
  });
}

void TextSplitter::SplitAscii() {
  using Kinds = AsciiKinds;
  static const Kinds kinds;
  const char* const text = folded_.data();
  const size_t size = folded_.size();
  for (size_t i = 0; i < size;) {
    const size_t begin = i;
    if ((kinds[text[i]] & Kinds::kInWord) == 0) {
      const bool is_symbol = (kinds[text[i++]] & Kinds::kMakesWord) != 0;
      if (is_symbol) words_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(i)});
      continue;
    }
    uint8_t seen = 0;
    while (true) {
      uint8_t last = 0;
      for (; i < size && (kinds[text[i]] & Kinds::kInWord) != 0; ++i) seen |= last = kinds[text[i]];
      if (i + 1 >= size) break;
      const uint8_t between = kinds[text[i]];
      const uint8_t both = last & kinds[text[i + 1]];
      const bool joins =
          ((both & Kinds::kLetter) != 0 && (between & Kinds::kBetweenLetters) != 0) ||
          ((both & Kinds::kDigit) != 0 && (between & Kinds::kBetweenDigits) != 0);
      if (!joins) break;
      ++i;
    }
    if ((seen & Kinds::kMakesWord) != 0)
      words_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(i)});
  }
}

void JoinCharacters(absl::string_view text, std::string& out, std::vector<uint32_t>& ends) {
  out.clear();
  ends.clear();
  bool pending = false;
  while (!text.empty()) {
    const char* const begin = text.data();
    if (u_isUWhiteSpace(TakeCharacter(text)) != 0) {
      pending = !out.empty();
      continue;
    }
    if (pending) {
      out.push_back(' ');
      ends.push_back(static_cast<uint32_t>(out.size()));
      pending = false;
    }
    out.append(begin, text.data());
    ends.push_back(static_cast<uint32_t>(out.size()));
  }
}

}  // namespace perceptrond
