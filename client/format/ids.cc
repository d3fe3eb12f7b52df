// ids: `prediction_id,label`, or with a tab between them: labels of predictions whose features the
// server keeps. A header "prediction_id,label" is left out.
#include "absl/strings/str_cat.h"
#include "client/format/format.h"

namespace perceptrond::client {
namespace {

class Ids final : public Format {
 public:
  explicit Ids(const FormatOptions& options) : Format(options) {}

 private:
  absl::StatusOr<LineKind> ParseLine(std::string_view line, Row* row) override {
    if (line.empty()) return LineKind::kNothing;
    const size_t end = line.find_first_of(",\t");
    const std::string_view id = line.substr(0, end);
    if (id == "prediction_id") return LineKind::kHeader;
    if (end == std::string_view::npos || id.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("\"", std::string(line.substr(0, 40)), "\" is not prediction_id,label"));
    }
    row->kind = RowKind::kPredictionId;
    row->text = id;
    if (absl::Status status = ReadLabel(line.substr(end + 1), row); !status.ok()) return status;
    return LineKind::kExample;
  }
};

}  // namespace

std::unique_ptr<Format> MakeIds(const FormatOptions& options) {
  return std::make_unique<Ids>(options);
}

}  // namespace perceptrond::client
