#include "client/ctl/analysis_run.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/analysis_words.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/terminal.h"

namespace perceptrond::client {

Outcome RunAnalysis(const Client& client, const v1::AnalyzeRequest& request,
                    v1::AnalysisResult* result) {
  const std::string doing = absl::StrCat("analyze ", request.name());
  grpc::ClientContext context;
  absl::StatusOr<v1::AnalysisResult> analyzed;
  {
    const InterruptWatch watch([&context] {
      context.TryCancel();
      return false;
    });
    analyzed = client.Analyze(
        request,
        [](const v1::AnalysisProgress& progress) {
          if (const std::optional<size_t> columns = ProgressColumns(); columns.has_value())
            ShowProgress(ProgressLine(AnalysisInWords(progress), *columns));
          return !Interrupted();
        },
        &context);
  }
  WipeProgress();
  // A result that was faster than Ctrl-C stands, and what it proves is in the model's report.
  if (Interrupted() && absl::IsCancelled(analyzed.status())) {
    return {
        kExitInterrupted,
        absl::StrCat(doing, ": interrupted; the analysis was cancelled",
                     request.adopt() ? ", and unless 'perceptronctl get' shows another revision "
                                       "nothing was adopted"
                                     : "")};
  }
  if (!analyzed.ok()) return Failed(doing, analyzed.status());
  *result = *std::move(analyzed);
  return {};
}

}  // namespace perceptrond::client
