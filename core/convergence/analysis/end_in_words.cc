#include "core/convergence/analysis/analysis.h"

namespace perceptrond {

const char* EndInWords(AnalysisEnd end) {
  switch (end) {
    case AnalysisEnd::kGapReached:
      return "the bounds of the margin are as near as was asked for";
    case AnalysisEnd::kCertified:
      return "a combination of the rows that vanishes exactly proves that nothing separates them";
    case AnalysisEnd::kNoRows:
      return "there are no rows";
    case AnalysisEnd::kCancelled:
      return "cancelled";
    case AnalysisEnd::kOutOfRounds:
      return "the rounds allowed are used up";
    case AnalysisEnd::kTooManySupportRows:
      return "more rows support the margin than may be solved for at once";
    case AnalysisEnd::kCertificateTooLarge:
      return "nothing seems to separate the rows, but the combination that would prove it has too "
             "many rows to be checked exactly";
    case AnalysisEnd::kPrecision:
      return "float64 brings the bounds of the margin no nearer";
  }
  return "";
}

}  // namespace perceptrond
