// Vowpal Wabbit: `[label [importance]] [tag]|namespace[:weight] feature[:value] ... |namespace
// ...`. A feature is named "namespace^feature", in the default namespace "feature"; its value is
// multiplied by the weight of its namespace. Values of a feature that is repeated add up. The
// importance becomes the weight of the example.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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
  // The last colon; the end if there is none.
  const char* colon;
  const char* end;

  std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
  std::string_view name() const { return {begin, static_cast<size_t>(colon - begin)}; }
  bool has_number() const { return colon != end; }
  // What is wrong with the number after the colon.
  std::string NumberProblem() const {
    return client::NumberProblem({colon + 1, static_cast<size_t>(end - colon - 1)});
  }
  // Reads the number after the colon; without one it is 1. False: it is not a finite number.
  bool ReadNumber(float* number) const {
    *number = 1;
    return !has_number() || ParseFloat(colon + 1, end, number) == end;
  }
};

// The bytes of a line at which its tokens end: blanks and '|'.
class Stops {
 public:
  // Finds those of the text, which it copies so that more can be read before and after it. It ends
  // at a blank.
  void Find(std::string_view text) {
    const size_t blocks = text.size() / simd::kBlock + 1;
    if (stops_.size() < blocks + simd::kMaskSlack) Grow(2 * blocks);
    char* const copy = text_.data() + kPadding;
    std::memcpy(copy, text.data(), text.size());
    std::memset(copy + text.size(), ' ', simd::kBlock);
    simd::Best().find_stops(copy, blocks, stops_.data(), colons_.data());
    size_ = text.size();
  }

 private:
  friend class Tokens;
  static constexpr size_t kPadding = std::max(size_t{8}, Row::kNamePadding);

  void Grow(size_t blocks) {
    stops_.resize(blocks + simd::kMaskSlack);
    colons_.resize(blocks + simd::kMaskSlack);
    text_.resize((blocks + 1) * simd::kBlock + 2 * kPadding);
  }

  std::vector<char> text_;
  size_t size_ = 0;
  std::vector<uint64_t> stops_;
  std::vector<uint64_t> colons_;
};

// The tokens of a line, one after the other.
class Tokens {
 public:
  explicit Tokens(const Stops& line)
      : stops_(line.stops_.data()),
        colons_(line.colons_.data()),
        block_(line.text_.data() + Stops::kPadding),
        next_(block_),
        end_(block_ + line.size_),
        stops_left_(*stops_),
        colons_left_(*colons_) {}

  // The next token, which may be empty. False: there are no more.
  bool Next(Token* token) {
    if (next_ > end_) return false;
    const char* colon_before = nullptr;
    while (stops_left_ == 0) {
      if (colons_left_ != 0) colon_before = block_ + Last(colons_left_);
      block_ += simd::kBlock;
      stops_left_ = *++stops_;
      colons_left_ = *++colons_;
    }
    const uint64_t stop = stops_left_ & -stops_left_;
    const uint64_t colons = colons_left_ & (stop - 1);
    token->begin = next_;
    token->end = block_ + std::countr_zero(stop);
    // Without a branch: which tokens have a colon is not predictable.
    token->colon = block_ + Last(colons | (stop & AllIf(colons == 0)));
    if (colon_before != nullptr && colons == 0) token->colon = colon_before;
    stops_left_ ^= stop;
    colons_left_ &= ~(stop - 1);
    next_ = token->end + 1;
    return true;
  }

 private:
  static int Last(uint64_t bits) { return 63 - std::countl_zero(bits); }

  // Of the current block, which begins at block_, and what Next() has not passed yet.
  const uint64_t* stops_;
  const uint64_t* colons_;
  const char* block_;
  const char* next_;
  const char* const end_;
  uint64_t stops_left_;
  uint64_t colons_left_;
};

absl::Status Bad(std::string_view token, std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(token.substr(0, 40)), "\" ", std::string(why)));
}

// Features of one namespace, some at a time, so that their numbers are read together.
class Features {
 public:
  // Starts a line, in the default namespace.
  void Start() {
    count_ = 0;
    prefix_size_ = 0;
    weight_ = 1;
  }

  absl::Status StartNamespace(const Token& token) {
    if (!token.ReadNumber(&weight_))
      return Bad(token.text(), absl::StrCat("has a weight that ", token.NumberProblem()));
    prefix_size_ = 0;
    const std::string_view space = token.name();
    if (space.empty()) return absl::OkStatus();
    prefix_.assign(space);
    prefix_.push_back('^');
    prefix_size_ = prefix_.size();
    prefix_.resize(prefix_size_ + Row::kNamePadding);
    return absl::OkStatus();
  }

  // Adds a feature. Eight bytes before the end of the token can be read. True: call MoveTo() next.
  bool Add(const Token& token) {
    names_[count_] = token.name();
    // Without a branch: which tokens have a number is not predictable.
    constexpr uint64_t kOne = uint64_t{'1'} << 56;
    const uint64_t has_number = AllIf(token.has_number());
    eights_[count_] = (LoadEight(token.end - 8) & has_number) | (kOne & ~has_number);
    sizes_[count_] = static_cast<uint64_t>(token.end - token.colon) + 1 + 2 * has_number;
    return ++count_ == kMost;
  }

  // Moves the features that were added to the row.
  absl::Status MoveTo(Row* row) {
    simd::Best().read_numbers(eights_.data(), sizes_.data(), count_, values_.data());
    for (size_t i = 0; i < count_; ++i) {
      if (names_[i].empty() || std::isnan(values_[i])) {
        if (absl::Status status = AddSlowly(i); !status.ok()) return status;
      }
      values_[i] *= weight_;
    }
    row->AddPaddedNames({prefix_.data(), prefix_size_}, names_.data(), count_);
    row->values.insert(row->values.end(), values_.data(), values_.data() + count_);
    count_ = 0;
    return absl::OkStatus();
  }

 private:
  static constexpr size_t kMost = 128;

  // Reads a number that is not as short as most.
  absl::Status AddSlowly(size_t i) {
    const char* const colon = names_[i].data() + names_[i].size();
    // A value that was read is a number.
    const char* const end = colon + 1 + sizes_[i];
    const std::string_view text(names_[i].data(), static_cast<size_t>(end - names_[i].data()));
    if (std::isnan(values_[i]) && ParseFloat(colon + 1, end, &values_[i]) != end)
      return Bad(text, absl::StrCat("has a value that ", NumberProblem({colon + 1, sizes_[i]})));
    return names_[i].empty() ? Bad(text, "has no name") : absl::OkStatus();
  }

  std::string prefix_;
  size_t prefix_size_ = 0;
  float weight_ = 1;

  size_t count_ = 0;
  std::array<std::string_view, kMost> names_;
  // The bytes before the end of each token, and how many of them are its number.
  std::array<uint64_t, kMost> eights_;
  std::array<uint64_t, kMost> sizes_;
  std::array<float, kMost> values_;
};

class Vw final : public Format {
 public:
  explicit Vw(const FormatOptions& options) : Format(options) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    row->kind = RowKind::kNamed;
    row->adds_repeated_names = true;
    if (line.find_first_not_of(" \t") == std::string_view::npos) return LineKind::kNothing;
    const size_t bar = line.find('|');
    if (bar == std::string_view::npos) {
      return absl::InvalidArgumentError("there is no '|': features follow the first '|'");
    }
    if (absl::Status status = ParseHead(line.substr(0, bar), row); !status.ok()) return status;
    if (absl::Status status = ParseNamespaces(line.substr(bar), row); !status.ok()) return status;
    return LineKind::kExample;
  }

  absl::Status ParseHead(std::string_view head, Row* row) {
    const bool touches_bar = !head.empty() && head.back() != ' ' && head.back() != '\t';
    for (int position = 0;; ++position) {
      const std::string_view token = NextToken(&head);
      if (token.empty()) break;
      const bool last = head.find_first_not_of(" \t") == std::string_view::npos;
      if (token.front() == '\'' || (last && touches_bar)) break;  // The tag ends the head.
      if (position == 0) {
        if (absl::Status status = ReadLabel(token, row); !status.ok()) return status;
        continue;
      }
      float importance = 0;
      if (position == 1 && IsTooLarge(token))
        return Bad(token, "is too large for an importance, which is at most 3.4028235e38");
      if (position > 1 || !ParseWholeFloat(token, &importance)) {
        return Bad(token,
                   "is neither an importance nor a tag (tags begin with ' or touch the '|')");
      }
      if (!(importance > 0)) return Bad(token, "is not a positive importance");
      row->weight = importance;
    }
    if (require_label() && !row->has_label()) {
      return absl::InvalidArgumentError(
          "there is no label before the '|' (text next to the '|' is a tag: write \"1 |\", not "
          "\"1|\")");
    }
    return absl::OkStatus();
  }

  // Parses from the first '|' to the end.
  absl::Status ParseNamespaces(std::string_view text, Row* row) {
    stops_.Find(text);
    Tokens tokens(stops_);
    features_.Start();
    bool after_bar = false;
    for (Token token; tokens.Next(&token); after_bar = *token.end == '|') {
      if (after_bar) {
        if (absl::Status status = features_.MoveTo(row); !status.ok()) return status;
        if (absl::Status status = features_.StartNamespace(token); !status.ok()) return status;
      } else if (token.begin != token.end && features_.Add(token)) {
        if (absl::Status status = features_.MoveTo(row); !status.ok()) return status;
      }
    }
    return features_.MoveTo(row);
  }

  Stops stops_;
  Features features_;
};

}  // namespace

std::unique_ptr<Format> MakeVw(const FormatOptions& options) {
  return std::make_unique<Vw>(options);
}

}  // namespace perceptrond::client
