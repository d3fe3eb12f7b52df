#include "client/ctl/explain_run.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/batch_builder.h"
#include "client/ctl/explanation.h"
#include "client/ctl/interrupt.h"

namespace perceptrond::client {

int ExplainRun::Run() {
  Outcome outcome = Open();
  if (outcome.ok()) outcome = ExplainAll();
  complaints_.ReportCounts();
  if (outcome.ok() && complaints_.refused() > 0) outcome.code = kExitRefused;
  return outcome.Report();
}

std::string ExplainRun::Doing() const { return absl::StrCat("explain ", options_.name); }

Outcome ExplainRun::Open() {
  const absl::StatusOr<v1::Model> model = client_.GetModel(options_.name);
  if (!model.ok()) return Failed(Doing(), model.status());
  label_names_.assign(model->label_names().begin(), model->label_names().end());
  absl::StatusOr<std::unique_ptr<Input>> input = Input::Make(options_.input, *model, false, false);
  if (!input.ok()) {
    return WrongUsage(absl::StrCat(Doing(), ": ", std::string(input.status().message())));
  }
  input_ = *std::move(input);
  CatchInterrupts();
  return {};
}

Outcome ExplainRun::ExplainAll() {
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = input_->Next(&row);
    if (more.ok() && !*more) break;
    Outcome outcome = more.ok() ? ExplainRow(row) : complaints_.Take(more.status());
    if (!outcome.ok()) return outcome;
  }
  if (Interrupted()) return {kExitInterrupted, absl::StrCat(Doing(), ": interrupted")};
  return {};
}

Outcome ExplainRun::ExplainRow(const Row& row) {
  BatchBuilder batch;
  if (absl::Status status = batch.Add(row); !status.ok())
    return complaints_.Take(input_->AtLine(status));
  v1::ExampleColumns columns;
  batch.Build(&columns);
  const absl::StatusOr<v1::ExplainResponse> response =
      client_.Explain(options_.name, std::move(columns), options_.top);
  if (absl::IsInvalidArgument(response.status())) {
    complaints_.Refused(*input_, input_->tag(), response.status());
    return {};
  }
  if (!response.ok()) return Failed(Doing(), response.status());
  Show(*response);
  return {};
}

void ExplainRun::Show(const v1::ExplainResponse& response) const {
  Print(globals_.json()
            ? ToJson(response, false) + "\n"
            : DescribeExplanation(input_->Where(input_->tag()), response.explanations(0),
                                  response.revision(), label_names_));
  // Whoever types examples in waits for it.
  std::fflush(stdout);
}

}  // namespace perceptrond::client
