// Vowpal Wabbit: `[label [importance]] [tag]|namespace[:weight] feature[:value] ... |namespace
// ...`. A feature is named "namespace^feature", in the default namespace "feature"; its value is
// multiplied by the weight of its namespace. The importance becomes the weight of the example.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"

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

// Splits "name:number"; without a number it is 1.
bool SplitWeight(std::string_view token, std::string_view* name, float* weight) {
  const size_t colon = token.rfind(':');
  *name = token.substr(0, colon);
  *weight = 1;
  return colon == std::string_view::npos || ParseWholeFloat(token.substr(colon + 1), weight);
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
    std::string_view rest = line.substr(bar + 1);
    while (true) {
      const size_t next = rest.find('|');
      if (absl::Status status = ParseNamespace(rest.substr(0, next), row); !status.ok()) {
        return status;
      }
      if (next == std::string_view::npos) return LineKind::kExample;
      rest = rest.substr(next + 1);
    }
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

  absl::Status ParseNamespace(std::string_view text, Row* row) const {
    std::string_view space;
    float weight = 1;
    if (!text.empty() && text.front() != ' ' && text.front() != '\t') {
      const std::string_view token = NextToken(&text);
      if (!SplitWeight(token, &space, &weight))
        return Bad(token, "has a weight that is not a finite number");
    }
    for (std::string_view token = NextToken(&text); !token.empty(); token = NextToken(&text)) {
      std::string_view name;
      float value = 1;
      if (!SplitWeight(token, &name, &value))
        return Bad(token, "has a value that is not a finite number");
      if (name.empty()) return Bad(token, "has no name");
      if (space.empty()) {
        row->AddName(name);
      } else {
        row->AddName(space, '^', name);
      }
      row->values.push_back(value * weight);
    }
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
