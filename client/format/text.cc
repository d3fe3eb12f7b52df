// text: `label<TAB>text`. If no label is required, a line without a tab, or with an unknown label before its first tab,
// is all text.
#include "client/format/format.h"

namespace perceptrond::client {
namespace {

class Text final : public Format {
 public:
  explicit Text(const FormatOptions& options) : Format(options), seen_(options.labels.seen) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    row->kind = RowKind::kText;
    if (line.empty()) return LineKind::kNothing;
    std::string_view text = line;
    if (const size_t tab = line.find('\t'); tab != std::string_view::npos) {
      if (absl::Status status = ReadLabel(line.substr(0, tab), row); !status.ok()) return status;
      if (label_status().ok()) text = line.substr(tab + 1);
      if (!label_status().ok() && seen_ != nullptr) seen_->none_before_tab = true;
    } else if (require_label()) {
      return absl::InvalidArgumentError("there is no tab: expected a label, a tab and a text");
    }
    row->text = text;
    return LineKind::kExample;
  }

  LabelsSeen* const seen_;
};

}  // namespace

std::unique_ptr<Format> MakeText(const FormatOptions& options) {
  return std::make_unique<Text>(options);
}

}  // namespace perceptrond::client
