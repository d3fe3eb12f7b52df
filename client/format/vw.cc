// Vowpal Wabbit: `[label [importance]] [tag]|namespace[:weight] feature[:value] ... |namespace
// ...`. A feature is named "namespace^feature", in the default namespace "feature"; its value is
// multiplied by the weight of its namespace. The importance becomes the weight of the example.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"
#include "client/format/scan.h"
#include "client/simd.h"

namespace perceptrond::client {
namespace {

// Removes and returns the next token, up to a blank or the end; empty at the end.
std::string_view NextToken(std::string_view* rest) {
  const size_t begin = rest->find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    *rest = {};
    return {};
  }
  const size_t end = std::min(rest->find_first_of(" \t", begin), rest->size());
  const std::string_view token = rest->substr(begin, end - begin);
  *rest = rest->substr(end);
  return token;
}

// A token of a namespace.
struct Token {
  const char* begin;
  // The last colon; null if there is none.
  const char* colon;
  const char* end;

  std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
  std::string_view name() const {
    return {begin, static_cast<size_t>((colon == nullptr ? end : colon) - begin)};
  }
  // Reads the number after the colon; without one it is 1. Eight bytes before the end of the token
  // can be read. False: it is not a finite number.
  bool ReadNumber(float* number) const {
    static constexpr char kOne[] = "       1";
    // Without a branch: which tokens have a number is not predictable.
    const char* const last = colon == nullptr ? kOne + 8 : end;
    const size_t size = colon == nullptr ? 1 : static_cast<size_t>(end - colon - 1);
    if (ReadShortFloat(last, size, number)) return true;
    return ParseFloat(colon + 1, end, number) == end;
  }
};

// The tokens of a line's namespaces, which end at a blank or a '|'.
class Tokens {
 public:
  static constexpr size_t kPadding = std::max(size_t{8}, Row::kNamePadding);

  // Copies the text, which has a '|' first, so that more can be read before and after it.
  void Start(std::string_view text) {
    const size_t blocks = text.size() / simd::kBlock + 1;
    if (stops_.size() < blocks + simd::kMaskSlack) Grow(2 * blocks);
    char* const copy = text_.data() + kPadding;
    std::memcpy(copy, text.data(), text.size());
    // The text ends at the first blank.
    std::memset(copy + text.size(), ' ', simd::kBlock);
    simd::Best().find_stops(copy, blocks, stops_.data(), colons_.data());
    end_ = copy + text.size();
    block_ = copy;
    next_ = copy;
    index_ = 0;
    stops_left_ = stops_[0];
    colons_left_ = colons_[0];
  }

  // The next token, which may be empty. False: there are no more.
  bool Next(Token* token) {
    if (next_ > end_) return false;
    token->begin = next_;
    token->colon = nullptr;
    while (stops_left_ == 0) {
      if (colons_left_ != 0) token->colon = block_ + (63 - std::countl_zero(colons_left_));
      block_ += simd::kBlock;
      ++index_;
      stops_left_ = stops_[index_];
      colons_left_ = colons_[index_];
    }
    const uint64_t before = (stops_left_ & -stops_left_) - 1;
    const uint64_t colons = colons_left_ & before;
    token->end = block_ + std::countr_zero(stops_left_);
    token->colon = colons != 0 ? block_ + (63 - std::countl_zero(colons | 1)) : token->colon;
    stops_left_ &= stops_left_ - 1;
    colons_left_ &= ~before;
    next_ = token->end + 1;
    return true;
  }

 private:
  void Grow(size_t blocks) {
    stops_.resize(blocks + simd::kMaskSlack);
    colons_.resize(blocks + simd::kMaskSlack);
    text_.resize((blocks + 1) * simd::kBlock + 2 * kPadding);
  }

  std::vector<char> text_;
  std::vector<uint64_t> stops_;
  std::vector<uint64_t> colons_;
  const char* end_ = nullptr;
  const char* next_ = nullptr;
  // The current block, its index, and what Next() has not passed yet.
  const char* block_ = nullptr;
  size_t index_ = 0;
  uint64_t stops_left_ = 0;
  uint64_t colons_left_ = 0;
};

absl::Status Bad(std::string_view token, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(token.substr(0, 40)), "\" ", std::string(why)));
}

class Vw final : public Format {
 public:
  explicit Vw(const FormatOptions& options)
      : labels_(options.labels), require_label_(options.require_label) {}

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    row->kind = RowKind::kNamed;
    if (line.find_first_not_of(" \t") == std::string_view::npos) return LineKind::kNothing;
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) {
      return absl::InvalidArgumentError("there is no '|': features follow the first '|'");
    }
    if (absl::Status status = ParseHead(line.substr(0, bar), row); !status.ok()) return status;
    if (absl::Status status = ParseNamespaces(line.substr(bar), row); !status.ok()) return status;
    return LineKind::kExample;
  }

 private:
  absl::Status ParseHead(std::string_view head, Row* row) const {
    const bool touches_bar = !head.empty() && head.back() != ' ' && head.back() != '\t';
    for (int position = 0;; ++position) {
      const std::string_view token = NextToken(&head);
      if (token.empty()) break;
      const bool last = head.find_first_not_of(" \t") == std::string_view::npos;
      if (token.front() == '\'' || (last && touches_bar)) break;  // The tag ends the head.
      if (position == 0) {
        absl::Status status = ReadLabel(labels_, token, row);
        if (!status.ok() && require_label_) return status;
        continue;
      }
      float importance = 0;
      if (position > 1 || !ParseWholeFloat(token, &importance)) {
        return Bad(token,
                   "is neither an importance nor a tag (tags begin with ' or touch the '|')");
      }
      if (!(importance > 0)) return Bad(token, "is not a positive importance");
      row->weight = importance;
    }
    if (require_label_ && !row->has_label()) {
      return absl::InvalidArgumentError(
          "there is no label before the '|' (text next to the '|' is a tag: write \"1 |\", not "
          "\"1|\")");
    }
    return absl::OkStatus();
  }

  // Parses from the first '|' to the end.
  absl::Status ParseNamespaces(std::string_view text, Row* row) {
    tokens_.Start(text);
    // Of the namespace.
    size_t prefix_size = 0;
    float weight = 1;
    bool after_bar = false;
    for (Token token; tokens_.Next(&token); after_bar = *token.end == '|') {
      float number = 1;
      if (after_bar) {
        if (!token.ReadNumber(&weight))
          return Bad(token.text(), "has a weight that is not a finite number");
        prefix_size = SetPrefix(token.name());
      } else if (token.begin != token.end) {
        if (!token.ReadNumber(&number))
          return Bad(token.text(), "has a value that is not a finite number");
        if (token.colon == token.begin) return Bad(token.text(), "has no name");
        row->AddPaddedName({prefix_.data(), prefix_size}, token.name());
        row->values.push_back(number * weight);
      }
    }
    return absl::OkStatus();
  }

  // Returns the size of the prefix, which is empty for the default namespace.
  size_t SetPrefix(std::string_view space) {
    if (space.empty()) return 0;
    prefix_.assign(space);
    prefix_.push_back('^');
    prefix_.resize(prefix_.size() + Row::kNamePadding);
    return space.size() + 1;
  }

  Tokens tokens_;
  // The name of the namespace and '^', with padding.
  std::string prefix_;
  const LabelRule labels_;
  const bool require_label_;
};

}  // namespace

std::unique_ptr<Format> MakeVw(const FormatOptions& options) {
  return std::make_unique<Vw>(options);
}

}  // namespace perceptrond::client
