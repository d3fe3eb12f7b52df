// text: `label<TAB>text`. A row is the text, or features are the words of the text, valued by their count. A word is a
// run of ASCII letters (in lower case), digits, apostrophes and bytes above 127. If no label is
// required, a line without a tab, or with an unknown label before its first tab, is all text.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "client/format/format.h"
#include "client/name_key.h"
#include "client/simd.h"

namespace perceptrond::client {
namespace {

// The words of a line, in lower case.
class Words {
 public:
  // Finds the words of the text. They are valid until the next call, and Row::kNamePadding bytes
  // more than a word has can be read.
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

// The different words of a row: a hash table that is emptied in O(1).
class WordCounts {
 public:
  void StartRow() {
    words_.clear();
    counts_.clear();
    keys_.clear();
    if (++row_ != 0) return;
    std::fill(buckets_.begin(), buckets_.end(), Bucket{});
    row_ = 1;
  }

  // Counts a word, of which Row::kNamePadding bytes can be read.
  void Add(std::string_view word) {
    const NameKey key = KeyOfPadded(word.data(), word.size());
    const uint32_t hash = HashName(word, key);
    size_t i = Home(hash);
    for (; buckets_[i].row == row_; i = Next(i)) {
      const uint32_t position = buckets_[i].position;
      if (keys_[position].hash == hash && keys_[position].key == key && IsWord(position, word)) {
        ++counts_[position];
        return;
      }
    }
    buckets_[i] = {row_, static_cast<uint32_t>(words_.size())};
    words_.push_back(word);
    counts_.push_back(1);
    keys_.push_back({key, hash});
    if (2 * words_.size() > buckets_.size()) Grow();
  }

  const std::vector<std::string_view>& words() const { return words_; }
  const std::vector<float>& counts() const { return counts_; }

 private:
  struct HashedKey {
    NameKey key;
    uint32_t hash;
  };
  struct Bucket {
    // Of another row: the bucket is empty.
    uint32_t row = 0;
    uint32_t position = 0;
  };

  // With an equal key.
  bool IsWord(uint32_t position, std::string_view word) const {
    return words_[position].size() == word.size() &&
           (word.size() <= NameKey::kBytes || words_[position] == word);
  }
  size_t Home(uint32_t hash) const { return hash & (buckets_.size() - 1); }
  size_t Next(size_t i) const { return (i + 1) & (buckets_.size() - 1); }

  void Grow() {
    buckets_.assign(2 * buckets_.size(), Bucket{});
    for (uint32_t position = 0; position < words_.size(); ++position) {
      size_t i = Home(keys_[position].hash);
      while (buckets_[i].row == row_) i = Next(i);
      buckets_[i] = {row_, position};
    }
  }

  // A power of two.
  std::vector<Bucket> buckets_ = std::vector<Bucket>(1024);
  std::vector<std::string_view> words_;
  std::vector<float> counts_;
  std::vector<HashedKey> keys_;
  uint32_t row_ = 0;
};

class Text final : public Format {
 public:
  explicit Text(const FormatOptions& options)
      : Format(options), seen_(options.labels.seen), whole_texts_(options.whole_texts) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    row->kind = whole_texts_ ? RowKind::kText : RowKind::kNamed;
    if (line.empty()) return LineKind::kNothing;
    std::string_view text = line;
    if (const size_t tab = line.find('\t'); tab != std::string_view::npos) {
      if (absl::Status status = ReadLabel(line.substr(0, tab), row); !status.ok()) return status;
      if (label_status().ok()) text = line.substr(tab + 1);
      if (!label_status().ok() && seen_ != nullptr) seen_->none_before_tab = true;
    } else if (require_label()) {
      return absl::InvalidArgumentError("there is no tab: expected a label, a tab and a text");
    }
    if (whole_texts_) {
      row->text = text;
    } else {
      CountWords(text, row);
    }
    return LineKind::kExample;
  }

  void CountWords(std::string_view text, Row* row) {
    words_.Find(text);
    counts_.StartRow();
    words_.ForEach([this](std::string_view word) { counts_.Add(word); });
    row->AddPaddedNames({}, counts_.words().data(), counts_.words().size());
    row->values.assign(counts_.counts().begin(), counts_.counts().end());
  }

  LabelsSeen* const seen_;
  const bool whole_texts_;
  Words words_;
  WordCounts counts_;
};

}  // namespace

std::unique_ptr<Format> MakeText(const FormatOptions& options) {
  return std::make_unique<Text>(options);
}

}  // namespace perceptrond::client
