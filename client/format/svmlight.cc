// svmlight (also LIBSVM): `label index:value index:value ... # comment`, separated by blanks. A
// `qid:` is an error. If no label is required, the line may start with the first feature.
#include <algorithm>
#include <charconv>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "client/format/format.h"
#include "client/format/scan.h"

namespace perceptrond::client {
namespace {

class Svmlight final : public Format {
 public:
  explicit Svmlight(const FormatOptions& options)
      : Format(options), base_(static_cast<uint32_t>(*options.index_base)) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    const char* p = line.data();
    const char* end = p + line.size();
    if (const size_t comment = line.find('#'); comment != std::string_view::npos) end = p + comment;
    while (p != end && IsBlank(*p)) ++p;
    if (p == end) return LineKind::kNothing;

    const char* token = p;
    while (p != end && !IsBlank(*p)) ++p;
    const std::string_view first(token, static_cast<size_t>(p - token));
    if (first.find(':') == std::string_view::npos) {
      const absl::Status label = ReadLabel(first, row);
      // What is no feature says more of the file than a label does.
      const absl::StatusOr<LineKind> kind = ParseFeatures(p, end, row);
      if (!label.ok() && kind.ok()) return label;
      return kind;
    }
    if (require_label()) return absl::InvalidArgumentError("no label before the first feature");
    return ParseFeatures(token, end, row);
  }

  absl::StatusOr<LineKind> ParseFeatures(const char* p, const char* end, Row* row) const {
    bool all_ones = true;
    while (true) {
      while (p != end && IsBlank(*p)) ++p;
      if (p == end) break;
      const char* const token = p;
      uint32_t index = 0;
      float value = 0;
      const auto [colon, problem] = std::from_chars(p, end, index);
      if (problem != std::errc() || colon == end || *colon != ':') return BadFeature(token, end);
      p = ParseFloat(colon + 1, end, &value);
      if (p == nullptr || (p != end && !IsBlank(*p))) return BadFeature(token, end);
      if (index < base_) {
        return absl::InvalidArgumentError(
            "index 0 with --index-base 1; if indices start at 0, give --index-base 0");
      }
      row->indices.push_back(index - base_);
      row->values.push_back(value);
      all_ones &= value == 1.0f;
    }
    if (all_ones) row->values.clear();
    return LineKind::kExample;
  }

  // What is wrong with the feature that begins at `token`.
  static absl::Status BadFeature(const char* token, const char* end) {
    const std::string_view feature(token,
                                   static_cast<size_t>(std::find_if(token, end, IsBlank) - token));
    const std::string quoted = absl::StrCat("\"", std::string(feature.substr(0, 40)), "\" ");
    const size_t colon = std::min(feature.find(':'), feature.size());
    const std::string_view index = feature.substr(0, colon);
    if (index == "qid") {
      return absl::InvalidArgumentError(
          quoted +
          "ranks examples of a query, which no model learns; remove it with sed -E 's/ "
          "qid:[0-9]+//'");
    }
    const bool is_index = !index.empty() && std::all_of(index.begin(), index.end(), IsDigit) &&
                          colon < feature.size();
    uint32_t number = 0;
    if (is_index && std::from_chars(index.data(), index.data() + index.size(), number).ec ==
                        std::errc::result_out_of_range) {
      return absl::InvalidArgumentError(
          quoted + "has an index that is too large; the largest is 4294967295");
    }
    if (is_index && colon + 1 < feature.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat(quoted, "has a value that ", NumberProblem(feature.substr(colon + 1))));
    }
    return absl::InvalidArgumentError(
        quoted + "is not a feature: expected index:value, an integer and a finite number");
  }

  const uint32_t base_;
};

}  // namespace

std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options) {
  return std::make_unique<Svmlight>(options);
}

}  // namespace perceptrond::client
