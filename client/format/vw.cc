// Vowpal Wabbit: `[label [importance]] [tag]|namespace[:weight] feature[:value] ... |namespace
// ...`. A feature is named "namespace^feature", in the default namespace "feature"; its value is
// multiplied by the weight of its namespace. The importance becomes the weight of the example.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"
#include "client/format/scan.h"

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
  // Reads the number after the colon; without one it is 1. False: it is not a finite number.
  bool ReadNumber(float* number) const {
    *number = 1;
    return colon == nullptr || ParseFloat(colon + 1, end, number) == end;
  }
};

// The token at p, which ends at a blank, a '|' or `limit`.
Token TokenAt(const char* p, const char* limit) {
  Token token = {p, nullptr, nullptr};
  for (; limit - p >= 8; p += 8) {
    const uint64_t eight = LoadEight(p);
    const uint64_t stops = MatchByte(eight, ' ') | MatchByte(eight, '|') | MatchByte(eight, '\t');
    // Colons before the first stop.
    const uint64_t colons = MatchByte(eight, ':') & (stops - 1) & ~stops;
    if (colons != 0) token.colon = p + LastMatch(colons);
    if (stops != 0) {
      token.end = p + FirstMatch(stops);
      return token;
    }
  }
  for (; p != limit && !IsBlank(*p) && *p != '|'; ++p) {
    if (*p == ':') token.colon = p;
  }
  token.end = p;
  return token;
}

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
    const char* p = line.data() + bar;
    const char* const end = line.data() + line.size();
    while (p != end) {
      ++p;
      if (absl::Status status = ParseNamespace(&p, end, row); !status.ok()) return status;
    }
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

  // Parses from *at, after a '|', to the next '|' or `end`, where it leaves *at.
  static absl::Status ParseNamespace(const char** at, const char* end, Row* row) {
    const char* p = *at;
    std::string_view space;
    float weight = 1;
    if (p != end && !IsBlank(*p)) {
      const Token token = TokenAt(p, end);
      space = token.name();
      if (!token.ReadNumber(&weight))
        return Bad(token.text(), "has a weight that is not a finite number");
      p = token.end;
    }
    while (true) {
      while (p != end && IsBlank(*p)) ++p;
      if (p == end || *p == '|') break;
      const Token token = TokenAt(p, end);
      float value = 1;
      if (!token.ReadNumber(&value))
        return Bad(token.text(), "has a value that is not a finite number");
      if (token.colon == token.begin) return Bad(token.text(), "has no name");
      if (space.empty()) {
        row->AddName(token.name());
      } else {
        row->AddName(space, '^', token.name());
      }
      row->values.push_back(value * weight);
      p = token.end;
    }
    *at = p;
    return absl::OkStatus();
  }

  const LabelRule labels_;
  const bool require_label_;
};

}  // namespace

std::unique_ptr<Format> MakeVw(const FormatOptions& options) {
  return std::make_unique<Vw>(options);
}

}  // namespace perceptrond::client
