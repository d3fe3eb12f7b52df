// The words of a text, as Unicode's annex 29 defines them: ICU's, and for texts in ASCII a faster
// path with the same result.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace perceptrond {

// ICU's version, "72.1": another may split some texts differently.
const std::string& IcuVersion();

// Normalises a text and splits it, one text at a time. Keeps its memory. Not thread-safe.
class TextSplitter {
 public:
  // Where a word is in folded().
  struct Word {
    uint32_t begin = 0;
    uint32_t end = 0;
  };

  // kIcu: only ICU, for tests.
  enum class Path : uint8_t { kFastest, kIcu };

  // Splits a text of less than 2^27 bytes. Returns false if it is not UTF-8; there are no words
  // then. O(text).
  bool Split(absl::string_view text, Path path = Path::kFastest);

  // The text in NFKC_Casefold: compatible forms, case folded, ignorable characters removed. Valid
  // until the next Split.
  absl::string_view folded() const { return folded_; }
  // The segments of the folded text that have a letter, a digit or a symbol.
  std::span<const Word> words() const { return words_; }

 private:
  void SplitAscii();
  void SplitUnicode();

  std::string folded_;
  std::vector<Word> words_;
};

// Replaces `out` by the text with each run of white space as one space, and none at its ends; and
// `ends` by the ends of its characters (code points). O(text).
void JoinCharacters(absl::string_view text, std::string& out, std::vector<uint32_t>& ends);

}  // namespace perceptrond
