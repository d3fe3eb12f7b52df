// `perceptronctl create`.
#include <google/protobuf/util/json_util.h>
#include <CLI/CLI.hpp>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/connection.h"
#include "client/ctl/command.h"
#include "client/ctl/commands/learner_flags.h"
#include "client/ctl/output.h"
#include "client/ctl/report.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;
using Composition = v1::FeatureSpace::Composition;

// The flags for the space of the examples. Must outlive the parsing of `command`.
class SpaceFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(v1::FeatureSpace* space) const;

 private:
  void AddTextFlags(CLI::App* command);
  std::string ApplyText(v1::FeatureSpace::Text* text) const;

  std::optional<uint32_t> dimension_;
  std::optional<uint32_t> hash_bits_;
  bool named_ = false;
  uint32_t max_features_ = 0;
  bool text_ = false;
  std::string text_value_ = "presence";
  std::optional<uint32_t> words_;
  std::string characters_;
  bool keep_norm_ = false;
  std::vector<std::string> components_;
};

// The flags for the feature map. Must outlive the parsing of `command`.
class FeatureMapFlags {
 public:
  void AddTo(CLI::App* command);
  // Sets the fields given by flags. Returns what is wrong with them; empty: nothing.
  std::string Apply(v1::FeatureSpace* space) const;

 private:
  uint32_t degree_ = 0;
  bool interactions_only_ = false;
  std::vector<std::string> products_;
  uint32_t fourier_ = 0;
  double gamma_ = 0;
  uint64_t seed_ = 0;
};

struct OutputName {
  const char* name;
  Composition::Output output;
};
constexpr OutputName kOutputs[] = {{"step", Composition::OUTPUT_STEP},
                                   {"sign", Composition::OUTPUT_SIGN},
                                   {"score", Composition::OUTPUT_SCORE}};

// Parses "nand:score"; without a colon the output is the step.
std::string AddInput(const std::string& text, Composition* composition) {
  const size_t colon = text.rfind(':');
  Composition::Input* input = composition->add_inputs();
  input->set_model(ModelName(text.substr(0, colon)));
  input->set_output(Composition::OUTPUT_STEP);
  if (colon == std::string::npos) return "";
  for (const OutputName& known : kOutputs) {
    if (colon == 0 || text.substr(colon + 1) != known.name) continue;
    input->set_output(known.output);
    return "";
  }
  return absl::StrCat("--compose ", text,
                      ": expected MODEL, MODEL:step, MODEL:sign or MODEL:score");
}

void SpaceFlags::AddTo(CLI::App* command) {
  auto* dimension = command->add_option("--dimension", dimension_,
                                        "Examples are vectors of this dimension, 1 to 2^28");
  auto* bits = command->add_option(
      "--hash-bits", hash_bits_,
      "Examples have named features, hashed into 2^B weights of 4 bytes, B from 1 to 28");
  auto* named = command->add_flag("--named", named_,
                                  "Examples have named features, with a weight for each name");
  auto* text = command->add_flag("--text", text_,
                                 "Examples are texts, which the server splits into words; "
                                 "--hash-bits is 20 by default");
  auto* compose = AddListFlag(command, "--compose", &components_,
                              "Features are the outputs of other models, such as or,nand: 1 for +1 "
                              "and 0 for -1; or:sign is +1 or -1, or:score the score")
                      ->type_name("MODEL,...")
                      ->check(Utf8());
  dimension->excludes(bits)->excludes(named)->excludes(compose)->excludes(text);
  bits->excludes(named)->excludes(compose);
  named->excludes(compose)->excludes(text);
  text->excludes(compose);
  command
      ->add_option("--max-features", max_features_,
                   "With --named: most names the model may hold, 1 to 2^28 (default 1048576)")
      ->needs(named);
  AddTextFlags(command);
}

struct TextValueName {
  const char* name;
  v1::FeatureSpace::Text::Value value;
};
constexpr TextValueName kTextValues[] = {{"presence", v1::FeatureSpace::Text::VALUE_PRESENCE},
                                         {"count", v1::FeatureSpace::Text::VALUE_COUNT},
                                         {"log-count", v1::FeatureSpace::Text::VALUE_LOG_COUNT}};

void SpaceFlags::AddTextFlags(CLI::App* command) {
  std::vector<std::string> names;
  for (const TextValueName& known : kTextValues) names.emplace_back(known.name);
  command
      ->add_option("--text-value", text_value_,
                   "With --text: the value of an n-gram: 1, its count, or ln(1 + count)")
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->needs("--text");
  command
      ->add_option("--words", words_,
                   "With --text: n-grams of 1 to N words, N up to 5 (default 2); 0: no words")
      ->needs("--text");
  command
      ->add_option("--characters", characters_,
                   "With --text: also n-grams of A to B characters, such as 3-5; 1 to 10")
      ->type_name("A-B")
      ->needs("--text");
  command
      ->add_flag("--keep-norm", keep_norm_,
                 "With --text: do not scale the values of a text to a norm of 1")
      ->needs("--text");
}

std::string SpaceFlags::ApplyText(v1::FeatureSpace::Text* text) const {
  text->set_bits(hash_bits_.value_or(0));
  for (const TextValueName& known : kTextValues) {
    if (text_value_ == known.name) text->set_value(known.value);
  }
  if (words_.has_value()) text->set_max_words(*words_);
  text->set_keep_norm(keep_norm_);
  if (characters_.empty()) return "";
  const std::vector<std::string> range = absl::StrSplit(characters_, '-');
  uint32_t least = 0;
  uint32_t most = 0;
  if (range.size() != 2 || !absl::SimpleAtoi(range[0], &least) ||
      !absl::SimpleAtoi(range[1], &most))
    return absl::StrCat("--characters ", PrintableInLine(characters_),
                        ": expected the fewest and the most characters, as 3-5");
  text->set_min_characters(least);
  text->set_max_characters(most);
  return "";
}

std::string SpaceFlags::Apply(v1::FeatureSpace* space) const {
  if (text_) {
    if (const std::string wrong = ApplyText(space->mutable_text()); !wrong.empty()) return wrong;
  } else if (dimension_.has_value()) {
    space->mutable_dense()->set_dimension(*dimension_);
  } else if (hash_bits_.has_value()) {
    space->mutable_hashed()->set_bits(*hash_bits_);
  } else if (named_) {
    space->mutable_named()->set_max_features(max_features_);
  } else if (components_.empty()) {
    return "give exactly one of --dimension D (vectors), --hash-bits B (names hashed into 2^B "
           "weights), --named (a weight for each name), --text (texts) and --compose MODELS "
           "(outputs of other models)";
  }
  for (const std::string& component : components_) {
    if (const std::string wrong = AddInput(component, space->mutable_composition());
        !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

// The flags use 0 for "not given".
constexpr uint32_t kLeastDegree = 2;
constexpr uint32_t kMostDegree = 4;
constexpr uint32_t kMostFourier = 1 << 20;

// Parses "user:page". Group names that are empty or contain a colon or a comma are possible through
// the API only; here they are more likely typing errors.
std::string AddPair(const std::string& text, v1::FeatureMap::Products* products) {
  const std::vector<std::string> groups = absl::StrSplit(text, ':');
  if (groups.size() != 2 || groups[0].empty() || groups[1].empty()) {
    return absl::StrCat("--products ", PrintableInLine(text),
                        ": expected the names of two groups with one colon between them, as "
                        "user:page; several pairs are separated by commas, as user:page,user:hour");
  }
  v1::FeatureMap::Products::Pair* pair = products->add_pairs();
  pair->set_first(groups[0]);
  pair->set_second(groups[1]);
  return "";
}

void FeatureMapFlags::AddTo(CLI::App* command) {
  auto* polynomial =
      command
          ->add_option("--polynomial", degree_,
                       "Feature map: all products of up to N features, N from 2 to 4")
          ->check(CLI::Range(kLeastDegree, kMostDegree));
  auto* products =
      AddListFlag(command, "--products", &products_,
                  "Feature map: also the products of two groups of names, such as user:page, or of "
                  "several pairs, such as user:page,user:hour. A feature's group is its name up to "
                  "'^' (the VW namespace)")
          ->check(Utf8());
  auto* fourier =
      command
          ->add_option(
              "--fourier", fourier_,
              "Feature map: N random Fourier features of a Gaussian kernel, N from 1 to 1048576; "
              "requires --gamma")
          ->check(CLI::Range(1U, kMostFourier));
  polynomial->excludes(products)->excludes(fourier);
  products->excludes(fourier);
  command->add_flag("--interactions-only", interactions_only_,
                    "With --polynomial or --products: no products of a feature with itself");
  command
      ->add_option("--gamma", gamma_,
                   "With --fourier: gamma of the kernel exp(-gamma |x - z|^2), > 0")
      ->needs(fourier);
  fourier->needs("--gamma");
  command->add_option("--seed", seed_, "With --fourier: seed of the random features (default 0)")
      ->needs(fourier);
}

std::string FeatureMapFlags::Apply(v1::FeatureSpace* space) const {
  if (degree_ > 0) {
    space->mutable_map()->mutable_polynomial()->set_degree(degree_);
    space->mutable_map()->mutable_polynomial()->set_interactions_only(interactions_only_);
  }
  for (const std::string& groups : products_) {
    v1::FeatureMap::Products& products = *space->mutable_map()->mutable_products();
    products.set_interactions_only(interactions_only_);
    if (const std::string wrong = AddPair(groups, &products); !wrong.empty()) return wrong;
  }
  if (fourier_ > 0) {
    v1::FeatureMap::Fourier& fourier = *space->mutable_map()->mutable_fourier();
    fourier.set_dimension(fourier_);
    fourier.set_gamma(gamma_);
    fourier.set_seed(seed_);
  }
  if (interactions_only_ && degree_ == 0 && products_.empty())
    return "--interactions-only requires --polynomial or --products";
  return "";
}

struct CreateOptions {
  std::string name;
  SpaceFlags space;
  FeatureMapFlags map;
  LearnerFlags learner;
  std::vector<std::string> labels;
  double margin_of_interest = 0;
  std::optional<uint32_t> store_updates;
  uint32_t store_sample = 0;
  std::string description;
  std::string start_weights;
  std::string request_id;
  bool validate_only = false;
};

// Reads JSON of one of three forms: weights, a whole model as `get --weights -o json` prints it, or
// one vector.
absl::Status ReadWeights(const std::string& path, v1::Weights* weights) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path));
  std::stringstream content;
  content << file.rdbuf();
  const auto parse = [&content](google::protobuf::Message* message) {
    return google::protobuf::util::JsonStringToMessage(content.str(), message);
  };
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

  const absl::StatusOr<v1::Model> created =
      globals.Connect().CreateModel(options.name, model, options.request_id, options.validate_only);
  if (!created.ok()) return PrintError(absl::StrCat("create ", options.name), created.status());
  if (globals.json()) {
    Print(ToJson(*created, true) + "\n");
  } else {
    Print(absl::StrCat(options.validate_only ? "would create " : "created ",
                       DescribeModel(*created)));
  }
  return kExitOk;
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
                      "Store the latest N examples that caused updates, for analyze and draw; 0 to "
                      "1000000 (default 1000)");
  command
      ->add_option(
          "--store-sample", options->store_sample,
          "Also store a uniform sample of N distinct examples; 0 to 1000000. While the model "
          "has seen no more than N, the sample is complete and analyses cover all data")
      ->capture_default_str();
  command->add_option("--description", options->description, "Free text, at most 1024 bytes")
      ->check(Utf8());
  command
      ->add_option("--start-weights", options->start_weights,
                   "JSON file with the starting weights: perceptron.v1.Weights, or the output of "
                   "'get --weights -o json' (default: zero)")
      ->type_name("FILE");
  command
      ->add_option("--request-id", options->request_id,
                   "Id of this request: a repetition with the same id returns the same model")
      ->check(Utf8());
  command->add_flag("--validate-only", options->validate_only,
                    "Validate the settings without creating the model");
  command->footer(
      R"(Creates an empty model and prints its settings. Exactly one of --dimension, --hash-bits,
--named, --text and --compose is required.

Examples:
  perceptronctl create iris --learner perceptron --dimension 4
  perceptronctl create spam --text --labels ham,spam
  perceptronctl create mail --named --labels ham,spam --margin-of-interest 0.01
  perceptronctl create clicks --hash-bits 22 --no-bias
  perceptronctl create digits --dimension 64 --classes 10
  perceptronctl create topics --named --classes 100 --new-classes named
  perceptronctl create xor --compose or,nand)");
  command->callback([=] { *action = [=] { return Run(*globals, *options); }; });
}

}  // namespace perceptrond::client
