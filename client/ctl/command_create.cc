#include <google/protobuf/util/json_util.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "client/names.h"

namespace perceptrond::client {
namespace {

struct CreateOptions {
  std::string name;
  std::string learner = "perceptron";
  uint32_t dimension = 0;
  uint32_t hash_bits = 0;
  bool named = false;
  uint32_t max_features = 0;
  double step_size = 1;
  std::string tie;
  double offset = 1;
  bool no_offset = false;
  std::vector<std::string> labels;
  double margin_of_interest = 0;
  std::string description;
  std::string start_weights;
  std::string request_id;
  bool validate_only = false;
};

absl::Status ReadWeights(const std::string& path, v1::Weights* weights) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::stringstream content;
  content << file.rdbuf();
  const auto status = google::protobuf::util::JsonStringToMessage(content.str(), weights);
  if (status.ok()) return absl::OkStatus();
  // A whole model, as `get --weights -o json` prints it.
  v1::Model model;
  if (google::protobuf::util::JsonStringToMessage(content.str(), &model).ok() &&
      model.has_weights()) {
    *weights = model.weights();
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": no perceptron.v1.Weights in JSON: ", std::string(status.message().as_string()),
      "; expected such as {\"indices\": [0, 2], \"values\": [0.5, -1], \"offset\": 1}"));
}

void SetTie(const std::string& tie, v1::Learner* learner) {
  if (tie == "mistake") learner->set_tie_rule(v1::TIE_RULE_MISTAKE);
  if (tie == "positive") learner->set_tie_rule(v1::TIE_RULE_POSITIVE);
  if (tie == "correct") learner->set_tie_rule(v1::TIE_RULE_CORRECT);
}

int Run(const Globals& globals, const CLI::App& command, const CreateOptions& options) {
  v1::Model model;
  v1::FeatureSpace* space = model.mutable_feature_space();
  const int spaces = static_cast<int>(command.count("--dimension") > 0) +
                     static_cast<int>(command.count("--hash-bits") > 0) +
                     static_cast<int>(options.named);
  if (spaces != 1) {
    return PrintUsageError(
        "say where the examples live with exactly one of --dimension D (vectors), --hash-bits B "
        "(names hashed into 2^B slots) and --named (a weight for each name)");
  }
  if (command.count("--dimension") > 0) {
    space->mutable_dense()->set_dimension(options.dimension);
  } else if (command.count("--hash-bits") > 0) {
    space->mutable_hashed()->set_bits(options.hash_bits);
  } else {
    space->mutable_named()->set_max_features(options.max_features);
  }
  v1::Learner* learner = model.mutable_learner();
  learner->set_kind(v1::LEARNER_KIND_PERCEPTRON);
  if (command.count("--step-size") > 0) learner->set_step_size(options.step_size);
  if (command.count("--offset") > 0) learner->set_offset_value(options.offset);
  if (options.no_offset) learner->set_offset_value(0);
  SetTie(options.tie, learner);
  if (!options.start_weights.empty()) {
    absl::Status status = ReadWeights(options.start_weights, learner->mutable_starting_weights());
    if (!status.ok()) return PrintUsageError(std::string(status.message()));
  }
  for (const std::string& label : options.labels) model.add_label_names(label);
  model.set_margin_of_interest(options.margin_of_interest);
  model.set_description(options.description);

  const absl::StatusOr<v1::Model> created =
      globals.Connect().CreateModel(options.name, model, options.request_id, options.validate_only);
  if (!created.ok()) return PrintError(absl::StrCat("create ", options.name), created.status());
  if (globals.json()) {
    std::printf("%s\n", ToJson(*created, true).c_str());
  } else {
    std::printf("%s%s\n", options.validate_only ? "would create " : "created ",
                DescribeModel(*created).c_str());
  }
  return kExitOk;
}

}  // namespace

void AddCreate(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* command = app->add_subcommand("create", "Create a model");
  command->add_option("NAME", options->name, "spam, or models/spam")->required();
  command->add_option("--learner", options->learner, "The update rule")
      ->check(CLI::IsMember({"perceptron"}))
      ->capture_default_str();
  auto* dimension = command->add_option("--dimension", options->dimension,
                                        "Vectors of this dimension, 1 to 2^28");
  auto* bits = command->add_option("--hash-bits", options->hash_bits,
                                   "Names hashed into 2^B slots of 4 bytes, 1 to 28");
  auto* named = command->add_flag("--named", options->named, "A weight for each name");
  dimension->excludes(bits)->excludes(named);
  bits->excludes(named);
  command
      ->add_option("--max-features", options->max_features,
                   "With --named: the most names it may hold (default 1048576)")
      ->needs(named);
  command->add_option("--step-size", options->step_size, "eta, > 0 (default 1)");
  command
      ->add_option("--tie", options->tie,
                   "A score of exactly 0: a mistake (default), predicted as +1, or correct")
      ->check(CLI::IsMember({"mistake", "positive", "correct"}));
  auto* offset = command->add_option(
      "--offset", options->offset,
      "The value of the constant feature, >= 0 (default 1; less suits unit-norm text)");
  command->add_flag("--no-offset", options->no_offset, "No constant feature: as --offset 0")
      ->excludes(offset);
  command->add_option("--labels", options->labels, "Names for -1 and +1, as ham,spam")
      ->delimiter(',')
      ->expected(2);
  command->add_option("--margin-of-interest", options->margin_of_interest,
                      "The smallest margin that would matter to you");
  command->add_option("--description", options->description, "For people; at most 1024 bytes");
  command->add_option(
      "--start-weights", options->start_weights,
      "A JSON file: perceptron.v1.Weights, or a model from 'get --weights -o json'");
  command->add_option("--request-id", options->request_id,
                      "Repeating a creation with the same id returns the same model");
  command->add_flag("--validate-only", options->validate_only, "Check, and create nothing");
  command->footer(
      "Examples:\n"
      "  perceptronctl create iris --learner perceptron --dimension 4\n"
      "  perceptronctl create spam --named --labels ham,spam --margin-of-interest 0.01\n"
      "  perceptronctl create clicks --hash-bits 22 --no-offset");
  command->callback([=] { *action = [=] { return Run(*globals, *command, *options); }; });
}

}  // namespace perceptrond::client
