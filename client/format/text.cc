// text: `label<TAB>text`. Features are the words of the text, valued by their count. A word is a
// run of ASCII letters (in lower case), digits, apostrophes and bytes above 127. If no label is
// required, a line without a tab, or with an unknown label before its first tab, is all text.
#include <algorithm>
#include <vector>

#include "client/format/format.h"

namespace perceptrond::client {
namespace {

// The byte in lower case if it can be part of a word, else 0.
constexpr char WordByte(unsigned char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  const bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '\'' || c >= 0x80;
  return word ? static_cast<char>(c) : '\0';
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
    lower_.assign(text.size(), '\0');
    std::transform(text.begin(), text.end(), lower_.begin(),
                   [](char c) { return WordByte(static_cast<unsigned char>(c)); });
    words_.clear();
    for (size_t i = 0; i < lower_.size();) {
      size_t end = i;
      while (end < lower_.size() && lower_[end] != '\0') ++end;
      if (end > i) words_.push_back(std::string_view(lower_).substr(i, end - i));
      i = end + 1;
    }
    std::sort(words_.begin(), words_.end());
    for (size_t i = 0; i < words_.size();) {
      size_t end = i;
      while (end < words_.size() && words_[end] == words_[i]) ++end;
      row->AddName(words_[i]);
      row->values.push_back(static_cast<float>(end - i));
      i = end;
    }
  }

  const LabelRule labels_;
  const bool require_label_;
  std::string lower_;
  std::vector<std::string_view> words_;
};

}  // namespace

std::unique_ptr<Format> MakeText(const FormatOptions& options) {
  return std::make_unique<Text>(options);
}

}  // namespace perceptrond::client
