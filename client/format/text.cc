// text: `label<TAB>text`. Features are the words of the text, valued by their count. A word is a
// run of ASCII letters (in lower case), digits, apostrophes and bytes above 127. If no label is
// required, a line without a tab, or with an unknown label before its first tab, is all text.
#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "client/format/format.h"
#include "client/format/scan.h"
#include "client/name_index.h"

namespace perceptrond::client {
namespace {

// The byte in lower case if it can be part of a word, else 0.
constexpr char ToWordByte(unsigned char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'' || c >= 0x80;
  return word ? static_cast<char>(c) : '\0';
}

constexpr std::array<char, 256> MakeWordBytes() {
  std::array<char, 256> bytes{};
  for (size_t c = 0; c < bytes.size(); ++c) bytes[c] = ToWordByte(static_cast<unsigned char>(c));
  return bytes;
}
constexpr std::array<char, 256> kWordBytes = MakeWordBytes();

char WordByte(char c) { return kWordBytes[static_cast<unsigned char>(c)]; }

// Copies the word at p in lower case to `word`, which has room for seven bytes more than there are
// up to `end`, and returns its size.
size_t CopyWord(const char* p, const char* end, char* word) {
  const char* const begin = p;
  for (; end - p >= 8; p += 8, word += 8) {
    const uint64_t eight = LoadEight(p);
    const uint64_t above_ascii = eight & ~kLow;
    const uint64_t upper = MatchRange(eight, 'A', 'Z') & ~above_ascii;
    const uint64_t words = above_ascii | upper | MatchRange(eight, 'a', 'z') |
                           MatchRange(eight, '0', '9') | MatchByte(eight, '\'');
    // The bit in which the cases differ is the highest bit, shifted by two.
    StoreEight(eight | upper >> 2, word);
    const uint64_t stops = ~words & ~kLow;
    if (stops != 0) return static_cast<size_t>(p + FirstMatch(stops) - begin);
  }
  while (p != end && (*word = WordByte(*p)) != '\0') ++p, ++word;
  return static_cast<size_t>(p - begin);
}

class Text final : public Format {
 public:
  explicit Text(const FormatOptions& options)
      : labels_(options.labels), require_label_(options.require_label) {}

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    row->kind = RowKind::kNamed;
    if (line.empty()) return LineKind::kNothing;
    std::string_view text = line;
    if (const size_t tab = line.find('\t'); tab != std::string_view::npos) {
      const absl::Status status = ReadLabel(labels_, line.substr(0, tab), row);
      if (!status.ok() && require_label_) return status;
      if (status.ok()) text = line.substr(tab + 1);
    } else if (require_label_) {
      return absl::InvalidArgumentError("there is no tab: expected a label, a tab and a text");
    }
    CountWords(text, row);
    return LineKind::kExample;
  }

 private:
  void CountWords(std::string_view text, Row* row) {
    StartRow();
    word_.resize(text.size() + 8);
    const char* p = text.data();
    const char* const end = p + text.size();
    while (true) {
      while (p != end && WordByte(*p) == '\0') ++p;
      if (p == end) return;
      const size_t size = CopyWord(p, end, word_.data());
      CountWord(std::string_view(word_.data(), size), row);
      p += size;
    }
  }

  void CountWord(std::string_view word, Row* row) {
    const uint32_t hash = NameIndex::Hash(word);
    const auto next = first_number_ + static_cast<uint32_t>(row->name_count());
    const uint32_t known = index_.Find(hash, first_number_, next, [&](uint32_t candidate) {
      return SameName(row->name(candidate - first_number_), word);
    });
    if (known != NameIndex::kNone) {
      ++row->values[known - first_number_];
      return;
    }
    index_.Insert(hash, next, first_number_);
    next_number_ = next + 1;
    row->AddName(word);
    row->values.push_back(1);
  }

  // The words of the rows before have numbers below first_number_.
  void StartRow() {
    first_number_ = next_number_;
    if (first_number_ < std::numeric_limits<uint32_t>::max() / 2) return;
    index_.Clear();
    first_number_ = next_number_ = 0;
  }

  const LabelRule labels_;
  const bool require_label_;
  // A word in lower case.
  std::string word_;
  // The words of the row: a number less first_number_ is a position in it.
  NameIndex index_;
  uint32_t first_number_ = 0;
  uint32_t next_number_ = 0;
};

}  // namespace

std::unique_ptr<Format> MakeText(const FormatOptions& options) {
  return std::make_unique<Text>(options);
}

}  // namespace perceptrond::client
