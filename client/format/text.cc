// text: `label<TAB>text`. Features are the words of the text, valued by their count. A word is a
// run of ASCII letters (in lower case), digits, apostrophes and bytes above 127. If no label is
// required, a line without a tab, or with an unknown label before its first tab, is all text.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "client/format/format.h"
#include "client/name_index.h"
#include "client/simd.h"

namespace perceptrond::client {
namespace {

// The words of a line, in lower case.
class Words {
 public:
  // Finds the words of the text. They are valid until the next call, and Row::kNamePadding bytes more
  // than a word has can be read.
  void Find(std::string_view text) {
    const size_t blocks = text.size() / simd::kBlock + 1;
    if (words_.size() < blocks + simd::kMaskSlack) Grow(2 * blocks);
    std::memcpy(text_.data(), text.data(), text.size());
    std::memset(text_.data() + text.size(), ' ', simd::kBlock);
    simd::Best().find_words(text_.data(), blocks, lower_.data(), words_.data());
    blocks_ = blocks;
  }

  // Calls on_word(word) for each.
  template <typename OnWord>
  void ForEach(OnWord&& on_word) const {
    const char* block = lower_.data();
    const char* begin = nullptr;
    uint64_t last = 0;
    for (size_t i = 0; i < blocks_; ++i, block += simd::kBlock) {
      // The first byte of each word, and the first after each, in turns.
      uint64_t edges = words_[i] ^ (words_[i] << 1 | last);
      last = words_[i] >> 63;
      for (; edges != 0; edges &= edges - 1) {
        const char* const edge = block + std::countr_zero(edges);
        if (begin != nullptr) on_word(std::string_view(begin, static_cast<size_t>(edge - begin)));
        begin = begin == nullptr ? edge : nullptr;
      }
    }
  }

 private:
  void Grow(size_t blocks) {
    words_.resize(blocks + simd::kMaskSlack);
    text_.resize((blocks + 1) * simd::kBlock);
    lower_.resize((blocks + 1) * simd::kBlock + Row::kNamePadding);
  }

  std::vector<char> text_;
  std::vector<char> lower_;
  std::vector<uint64_t> words_;
  size_t blocks_ = 0;
};

// The positions of a row's words: a hash table that is emptied in O(1).
class WordPositions {
 public:
  void StartRow() {
    words_.clear();
    if (++row_ != 0) return;
    std::fill(buckets_.begin(), buckets_.end(), Bucket{});
    row_ = 1;
  }

  // The position of the word among the row's; their number if it is new, which is then added.
  size_t FindOrAdd(std::string_view word, const Row& row) {
    const NameKey key = KeyOfPadded(word.data(), word.size());
    const uint32_t hash = NameIndex::Hash(word, key);
    size_t i = hash >> 1 & (buckets_.size() - 1);
    for (; buckets_[i].row == row_; i = (i + 1) & (buckets_.size() - 1)) {
      const Word& other = words_[buckets_[i].position];
      if (other.hash == hash && other.key == key && other.size == word.size() &&
          (word.size() <= NameKey::kBytes || row.name(buckets_[i].position) == word)) {
        return buckets_[i].position;
      }
    }
    const size_t position = words_.size();
    buckets_[i] = {row_, static_cast<uint32_t>(position)};
    words_.push_back({key, hash, static_cast<uint32_t>(word.size())});
    if (2 * words_.size() > buckets_.size()) Grow();
    return position;
  }

 private:
  struct Word {
    NameKey key;
    uint32_t hash;
    uint32_t size;
  };
  struct Bucket {
    // Of another row: the bucket is empty.
    uint32_t row = 0;
    uint32_t position = 0;
  };

  void Grow() {
    buckets_.assign(2 * buckets_.size(), Bucket{});
    for (uint32_t position = 0; position < words_.size(); ++position) {
      size_t i = words_[position].hash >> 1 & (buckets_.size() - 1);
      while (buckets_[i].row == row_) i = (i + 1) & (buckets_.size() - 1);
      buckets_[i] = {row_, position};
    }
  }

  // A power of two.
  std::vector<Bucket> buckets_ = std::vector<Bucket>(1024);
  std::vector<Word> words_;
  uint32_t row_ = 0;
};

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
    words_.Find(text);
    positions_.StartRow();
    words_.ForEach([&](std::string_view word) {
      const size_t position = positions_.FindOrAdd(word, *row);
      if (position < row->name_count()) {
        ++row->values[position];
      } else {
        row->AddPaddedName({}, word);
        row->values.push_back(1);
      }
    });
  }

  const LabelRule labels_;
  const bool require_label_;
  Words words_;
  WordPositions positions_;
};

}  // namespace

std::unique_ptr<Format> MakeText(const FormatOptions& options) {
  return std::make_unique<Text>(options);
}

}  // namespace perceptrond::client
