#include "client/ctl/commands/dimension_from.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "client/ctl/dimension.h"
#include "client/ctl/interrupt.h"
#include "client/ctl/output.h"
#include "client/row.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {

CLI::Option* DimensionFrom::AddTo(CLI::App* command) {
  auto* from = command
                   ->add_option("--dimension-from", input_.files,
                                "The smallest dimension that the examples of this file fit; of "
                                "several with the flag for each. The flags of formats are those of "
                                "'learn'")
                   ->type_name("FILE")
                   ->allow_extra_args(false);
  const std::vector<const CLI::Option*> before = std::as_const(*command).get_options();
  AddInputOptions(command, &input_);
  for (CLI::Option* option : command->get_options()) {
    if (std::find(before.begin(), before.end(), option) == before.end())
      option->group("With --dimension-from")->needs(from);
  }
  return from;
}

absl::StatusOr<uint32_t> DimensionFrom::Read() const {
  perceptron::v1::Model model;
  model.mutable_feature_space()->mutable_dense()->set_dimension(1);
  CatchInterrupts();
  absl::StatusOr<std::unique_ptr<Input>> input = Input::Make(input_, model, false, false);
  if (!input.ok()) return input.status();
  if ((*input)->Has(FormatKind::kCsv) && input_.label_column.empty())
    return absl::FailedPreconditionError(
        "--dimension-from: give --label-column, or the label's column is counted as a feature");
  RowErrors errors(input_.skip_bad_lines);
  uint64_t dimension = 0;
  Row row;
  while (true) {
    const absl::StatusOr<bool> more = (*input)->Next(&row);
    if (more.ok() && !*more) break;
    if (more.ok()) {
      dimension = std::max(dimension, NeededDimension(row));
      continue;
    }
    const Outcome outcome = errors.AddBadLine(more.status());
    if (!outcome.ok()) return absl::Status(more.status().code(), outcome.error);
  }
  errors.PrintCounts();
  if (Interrupted()) return absl::CancelledError("--dimension-from: interrupted");
  if (dimension == 0)
    return absl::FailedPreconditionError("--dimension-from: the files have no features");
  return static_cast<uint32_t>(std::min<uint64_t>(dimension, UINT32_MAX));
}

}  // namespace perceptrond::client
