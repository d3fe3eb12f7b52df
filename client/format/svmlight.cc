// svmlight (also LIBSVM): `label index:value index:value ... # comment`, separated by blanks. A
// `qid:` is an error. If no label is required, the line may start with the first feature.
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
      : labels_(options.labels),
        require_label_(options.require_label),
        base_(static_cast<uint32_t>(*options.index_base)) {}

  absl::StatusOr<LineKind> Parse(std::string_view line, Row* row) override {
    row->Clear();
    const char* p = line.data();
    const char* end = p + line.size();
    if (const size_t comment = line.find('#'); comment != std::string_view::npos) end = p + comment;
    while (p != end && IsBlank(*p)) ++p;
    if (p == end) return LineKind::kNothing;

    const char* token = p;
    while (p != end && !IsBlank(*p)) ++p;
    const std::string_view first(token, static_cast<size_t>(p - token));
    if (first.find(':') == std::string_view::npos) {
      absl::Status status = ReadLabel(labels_, first, row);
      if (!status.ok() && require_label_) return status;
    } else if (require_label_) {
      return absl::InvalidArgumentError("no label before the first feature");
    } else {
      p = token;
    }
    return ParseFeatures(p, end, row);
  }

 private:
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

  static absl::Status BadFeature(const char* token, const char* end) {
    const char* stop = token;
    while (stop != end && !IsBlank(*stop) && stop - token < 40) ++stop;
    return absl::InvalidArgumentError(
        absl::StrCat("\"", std::string(token, stop),
                     "\" is not a feature: expected index:value, an integer and a finite number"));
  }

  const LabelRule labels_;
  const bool require_label_;
  const uint32_t base_;
};

}  // namespace

std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options) {
  return std::make_unique<Svmlight>(options);
}

}  // namespace perceptrond::client
