#include "core/words/analysis.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/words/figures.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

std::string Of(const v1::Analysis& analysis) {
  return absl::StrCat("of ", analysis.complete() ? "all " : "", Grouped(analysis.examples()),
                      " different examples", analysis.complete() ? " seen" : " retained");
}

std::string Margin(const v1::Analysis& analysis) {
  std::string text;
  if (analysis.has_margin_lower())
    absl::StrAppendFormat(&text, "at least %.9g", analysis.margin_lower());
  if (analysis.has_margin_upper()) {
    absl::StrAppendFormat(&text, "%sat most %.9g", text.empty() ? "" : ", ",
                          analysis.margin_upper());
  }
  return text;
}

std::string Verdict(const v1::Analysis& analysis) {
  switch (analysis.separability()) {
    case v1::SEPARABILITY_SEPARABLE:
      return absl::StrCat("separable, best margin ", Margin(analysis));
    case v1::SEPARABILITY_NOT_SEPARABLE:
      return "not separable, proven";
    default:
      return absl::StrCat("undecided", analysis.has_margin_upper() ? ", best margin " : "",
                          Margin(analysis));
  }
}

}  // namespace

std::string DescribeAnalysis(const v1::Analysis& analysis, bool composition) {
  std::string text = absl::StrCat("analysis at revision ", analysis.revision(), " ", Of(analysis),
                                  ": ", Verdict(analysis));
  if (analysis.complete() && analysis.has_current() && !analysis.current())
    absl::StrAppend(&text, "; others came since",
                    composition ? ", or its components learned and answer otherwise" : "");
  return text;
}

}  // namespace perceptrond
