#include "client/ctl/analysis_words.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/output.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

const char* StageInWords(v1::AnalysisStage stage) {
  switch (stage) {
    case v1::ANALYSIS_STAGE_WAITING:
      return "waiting for its turn";
    case v1::ANALYSIS_STAGE_READING:
      return "reading";
    case v1::ANALYSIS_STAGE_SEARCHING:
      return "searching the support";
    case v1::ANALYSIS_STAGE_REFINING:
      return "bringing the bounds together";
    case v1::ANALYSIS_STAGE_CERTIFYING:
      return "seeking a proof";
    default:
      return "analyzing";
  }
}

void Bound(const v1::AnalysisResult& result, uint64_t updates, std::string* out) {
  if (!result.has_update_bound()) return;
  absl::StrAppendFormat(out,
                        "  (R/margin)^2 = %.4f: no perceptron that starts from zero, every example "
                        "counting 1, makes more updates over them\n",
                        result.update_bound());
  if (!result.analysis().complete() || result.has_adopted_revision()) return;
  absl::StrAppendFormat(
      out, "  the model made %d updates, %s\n", updates,
      static_cast<double>(updates) <= result.update_bound()
          ? "which is within the bound"
          : "more than the bound, which is not of its run: of its rule, its start "
            "and examples that all count 1");
}

}  // namespace

std::string DescribeResult(const v1::AnalysisResult& result, uint64_t updates) {
  std::string text = absl::StrCat("analysis: ", FormatFigures(result.analysis()), "\n");
  absl::StrAppendFormat(&text, "  %s, after %.2f s; R = %g\n", PrintableInLine(result.end()),
                        result.seconds(), result.analysis().radius());
  Bound(result, updates, &text);
  if (result.support_size() > 0) {
    absl::StrAppend(&text, "  ", Grouped(result.support_size()), " examples support the margin\n");
  }
  if (result.certificate_size() > 0) {
    absl::StrAppend(&text, "  the proof: a combination of ", Grouped(result.certificate_size()),
                    " examples, with whole positive multipliers, vanishes\n");
  }
  if (result.has_separator_margin()) {
    absl::StrAppendFormat(&text, "  the separator in float32 has %d weights and margin %.9g\n",
                          result.separator().values_size(), result.separator_margin());
  }
  if (result.has_adopted_revision()) {
    absl::StrAppend(&text, "  adopted: the separator is revision ", result.adopted_revision(),
                    "\n");
  }
  return text;
}

Progress AnalysisInWords(const v1::AnalysisProgress& progress) {
  Progress words;
  words.figures.push_back(StageInWords(progress.stage()));
  if (progress.waiting_for() > 0)
    words.figures.push_back(absl::StrCat(progress.waiting_for(), " come first"));
  if (progress.examples() > 0)
    words.figures.push_back(absl::StrCat(Grouped(progress.examples()), " examples"));
  if (progress.working_examples() > 0)
    words.figures.push_back(absl::StrCat(Grouped(progress.working_examples()), " in work"));
  if (progress.has_margin_lower() || progress.has_margin_upper()) {
    words.figures.push_back(absl::StrFormat(
        "margin %s to %s",
        progress.has_margin_lower() ? absl::StrFormat("%.6g", progress.margin_lower()) : "?",
        progress.has_margin_upper() ? absl::StrFormat("%.6g", progress.margin_upper()) : "?"));
  }
  return words;
}

}  // namespace perceptrond::client
