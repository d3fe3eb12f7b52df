// `perceptronctl create`.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/connection.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/expire_after.h"
#include "client/ctl/commands/learner_flags.h"
#include "client/ctl/commands/space_flags.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "core/file/read_file.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

struct CreateOptions {
  std::string name;
  SpaceFlags space;
  FeatureMapFlags map;
  LearnerFlags learner;
  std::vector<std::string> labels;
  double margin_of_interest = 0;
  std::optional<uint32_t> store_updates;
  uint32_t store_sample = 0;
  std::string keep_predictions;
  uint64_t keep_predictions_mib = 0;
  bool durable_predictions = false;
  std::string expire_after;
  std::string description;
  std::string start_weights;
  bool validate_only = false;
};

// True if an array has a null among its elements: protobuf would leave it out and move the others.
bool HasNullElement(const google::protobuf::Value& value) {
  for (const google::protobuf::Value& element : value.list_value().values()) {
    if (element.has_null_value() || HasNullElement(element)) return true;
  }
  for (const auto& [key, field] : value.struct_value().fields()) {
    if (HasNullElement(field)) return true;
  }
  return false;
}

// Reads JSON of one of three forms: weights, a whole model as `get --weights -o json` prints it, or
// one vector.
absl::Status ReadWeights(const std::string& path, v1::Weights* weights) {
  // As many as the largest message has.
  constexpr size_t kMaxWeightsBytes = 1 << 30;
  const absl::StatusOr<std::string> content = ReadFileUpTo(path, kMaxWeightsBytes, FileKind::kAny);
  if (!content.ok()) return content.status();
  const auto parse = [&content](google::protobuf::Message* message) {
    return google::protobuf::util::JsonStringToMessage(*content, message);
  };
  google::protobuf::Value whole;
  if (parse(&whole).ok() && HasNullElement(whole))
    return absl::InvalidArgumentError(absl::StrCat(path, ": an array has null among its elements"));
  if (parse(weights).ok()) return absl::OkStatus();
  v1::Model model;
  if (parse(&model).ok() && model.has_weights()) {
    *weights = model.weights();
    return absl::OkStatus();
  }
  weights->Clear();
  const auto status = parse(weights->add_vectors());
  if (status.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, " has no weights in JSON: ", std::string(status.message().as_string()),
                   "; expected for example {\"indices\": [0, 2], \"values\": [0.5, -1], "
                   "\"bias\": 1}"));
}

// What is wrong with the flags; empty: nothing.
std::string SetKept(const CreateOptions& options, v1::Model* model) {
  if (options.keep_predictions.empty()) return "";
  v1::StoredPredictions& kept = *model->mutable_stored_predictions();
  if (std::string wrong =
          SetDuration("--keep-predictions", options.keep_predictions, kept.mutable_max_age());
      !wrong.empty())
    return wrong;
  kept.set_max_bytes(options.keep_predictions_mib << 20);
  kept.set_durable(options.durable_predictions);
  return "";
}

int Run(const Globals& globals, const CreateOptions& options) {
  v1::Model model;
  v1::FeatureSpace* space = model.mutable_feature_space();
  if (const std::string wrong = options.space.Apply(space); !wrong.empty())
    return PrintUsageError(wrong);
  if (const std::string wrong = options.map.Apply(space); !wrong.empty())
    return PrintUsageError(wrong);
  v1::Learner* learner = model.mutable_learner();
  if (const std::string wrong = options.learner.Apply(learner); !wrong.empty())
    return PrintUsageError(wrong);
  if (!options.start_weights.empty()) {
    absl::Status status = ReadWeights(options.start_weights, learner->mutable_starting_weights());
    if (!status.ok()) return PrintUsageError(std::string(status.message()));
  }
  for (const std::string& label : options.labels) model.add_label_names(label);
  model.set_margin_of_interest(options.margin_of_interest);
  model.set_description(options.description);
  if (options.store_updates.has_value())
    model.mutable_stored_examples()->set_max_updates(*options.store_updates);
  if (options.store_sample > 0)
    model.mutable_stored_examples()->set_max_sample(options.store_sample);

  if (const std::string wrong = SetKept(options, &model); !wrong.empty())
    return PrintUsageError(wrong);
  if (!options.expire_after.empty()) {
    if (const std::string wrong = SetExpireAfter(options.expire_after, &model); !wrong.empty())
      return PrintUsageError(wrong);
  }

  const absl::StatusOr<v1::Model> created =
      globals.Connect().CreateModel(options.name, model, /*request_id=*/"", options.validate_only);
  if (!created.ok()) return PrintError(absl::StrCat("create ", options.name), created.status());
  if (globals.json()) {
    Print(ToJson(*created, true) + "\n");
  } else {
    PrintDone(absl::StrCat(options.validate_only ? "would create " : "created ",
                           DescribeModel(*created)));
  }
  return kExitOk;
}

void AddKeptFlags(CLI::App* command, CreateOptions* options) {
  auto* const keep = command->add_option(
      "--keep-predictions", options->keep_predictions,
      "Keep the features of predictions for labels that come later ('predict --ids'), for this "
      "time: 30m, 24h, 7d; at most 365d (default: not)");
  command
      ->add_option("--keep-predictions-mib", options->keep_predictions_mib,
                   "The most memory that waiting predictions take; the oldest are removed first "
                   "(default 64)")
      ->check(CLI::Range(1, 1 << 20))
      ->needs(keep);
  command
      ->add_flag("--durable-predictions", options->durable_predictions,
                 "Waiting predictions survive a restart of the server; not in a fleet")
      ->needs(keep);
}

}  // namespace

void AddCreate(CLI::App* app, const Globals* globals, Action* action) {
  auto options = std::make_shared<CreateOptions>();
  CLI::App* command = app->add_subcommand("create", "Create a model");
  command->add_option("NAME", options->name, "Name of the model: spam or models/spam")
      ->required()
      ->check(Utf8());
  options->space.AddTo(command);
  options->map.AddTo(command);
  options->learner.AddTo(command);
  AddListFlag(command, "--labels", &options->labels,
              "Names of the labels -1 and +1, such as ham,spam; with --classes of 0, 1, ...")
      ->check(Utf8());
  command->add_option(
      "--margin-of-interest", options->margin_of_interest,
      "Smallest margin of practical interest, >= 0: the report says when the data are proven "
      "not to be separable with it (default 0: none)");
  command->add_option("--store-updates", options->store_updates,
                      "Store the latest N examples that caused updates, for analyses and pictures; "
                      "0 to 1000000 (default 1000)");
  command
      ->add_option(
          "--store-sample", options->store_sample,
          "Also store a uniform sample of N distinct examples; 0 to 1000000. While the model "
          "has seen no more than N, the sample is complete and analyses cover all data")
      ->capture_default_str();
  AddKeptFlags(command, options.get());
  command
      ->add_option("--expire-after", options->expire_after,
                   "Have the server delete the model once it was not used for this time: 12h, 30d; "
                   "at least 1s (default: never)")
      ->check(Utf8());
  command->add_option("--description", options->description, "Free text, at most 1024 bytes")
      ->check(Utf8());
  command
      ->add_option("--start-weights", options->start_weights,
                   "JSON file with the starting weights: perceptron.v1.Weights, or the output of "
                   "'get --weights -o json' (default: zero)")
      ->type_name("FILE");
  command->add_flag("--validate-only", options->validate_only,
                    "Validate the settings without creating the model");
  command->footer(
      R"(Creates an empty model and prints its settings. Exactly one of --dimension,
--dimension-from, --hash-bits, --named, --text and --compose is required.

Examples:
  perceptronctl create iris --learner perceptron --dimension 4
  perceptronctl create digits --dimension-from digits.svm --index-base 1 --classes 10
  perceptronctl create spam --text --labels ham,spam
  perceptronctl create mail --named --labels ham,spam --margin-of-interest 0.01
  perceptronctl create clicks --hash-bits 22 --no-bias
  perceptronctl create topics --named --classes 100 --new-classes named
  perceptronctl create xor --compose or,nand)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
