#include "client/ctl/commands/space_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/ctl/command.h"
#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;
using Composition = v1::FeatureSpace::Composition;

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

struct TextValueName {
  const char* name;
  v1::FeatureSpace::Text::Value value;
};
constexpr TextValueName kTextValues[] = {{"presence", v1::FeatureSpace::Text::VALUE_PRESENCE},
                                         {"count", v1::FeatureSpace::Text::VALUE_COUNT},
                                         {"log-count", v1::FeatureSpace::Text::VALUE_LOG_COUNT}};

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

}  // namespace

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
  dimension_from_.AddTo(command)
      ->excludes(dimension)
      ->excludes(bits)
      ->excludes(named)
      ->excludes(compose)
      ->excludes(text);
  bits->excludes(named)->excludes(compose);
  named->excludes(compose)->excludes(text);
  text->excludes(compose);
  command
      ->add_option("--max-features", max_features_,
                   "With --named: most names the model may hold, 1 to 2^28 (default 1048576)")
      ->needs(named);
  AddTextFlags(command);
}

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
  command
      ->add_flag("--idf", idf_,
                 "With --text: multiply by inverse document frequencies, of the texts learned so "
                 "far; they change at 64 texts and whenever their number has doubled. --hash-bits "
                 "is at most 24")
      ->needs("--text");
}

std::string SpaceFlags::ApplyText(v1::FeatureSpace::Text* text) const {
  text->set_bits(hash_bits_.value_or(0));
  for (const TextValueName& known : kTextValues) {
    if (text_value_ == known.name) text->set_value(known.value);
  }
  if (words_.has_value()) text->set_max_words(*words_);
  text->set_keep_norm(keep_norm_);
  text->set_inverse_document_frequency(idf_);
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
  if (dimension_from_.is_given()) {
    const absl::StatusOr<uint32_t> dimension = dimension_from_.Read();
    if (!dimension.ok()) return std::string(dimension.status().message());
    space->mutable_dense()->set_dimension(*dimension);
  } else if (text_) {
    if (const std::string wrong = ApplyText(space->mutable_text()); !wrong.empty()) return wrong;
  } else if (dimension_.has_value()) {
    space->mutable_dense()->set_dimension(*dimension_);
  } else if (hash_bits_.has_value()) {
    space->mutable_hashed()->set_bits(*hash_bits_);
  } else if (named_) {
    space->mutable_named()->set_max_features(max_features_);
  } else if (components_.empty()) {
    return "give exactly one of --dimension D (vectors), --dimension-from FILE, --hash-bits B "
           "(names hashed into 2^B weights), --named (a weight for each name), --text (texts) and "
           "--compose MODELS (outputs of other models)";
  }
  for (const std::string& component : components_) {
    if (const std::string wrong = AddInput(component, space->mutable_composition());
        !wrong.empty()) {
      return wrong;
    }
  }
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

}  // namespace perceptrond::client
