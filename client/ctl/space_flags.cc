#include "client/ctl/space_flags.h"

#include <CLI/CLI.hpp>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/list_flag.h"
#include "client/ctl/printable.h"
#include "client/names.h"

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

// "nand:score"; without a colon the step output.
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

std::string DescribeComposition(const Composition& composition) {
  std::string text = "the answers of";
  for (const Composition::Input& input : composition.inputs()) {
    absl::StrAppend(&text, text.back() == 'f' ? " " : ", ",
                    PrintableInLine(std::string(ModelId(input.model()))));
    for (const OutputName& known : kOutputs) {
      if (known.output == input.output()) absl::StrAppend(&text, " (", known.name, ")");
    }
  }
  return text;
}

}  // namespace

void SpaceFlags::AddTo(CLI::App* command) {
  auto* dimension =
      command->add_option("--dimension", dimension_, "Vectors of this dimension, 1 to 2^28");
  auto* bits = command->add_option("--hash-bits", hash_bits_,
                                   "Names hashed into 2^B slots of 4 bytes, 1 to 28");
  auto* named = command->add_flag("--named", named_, "A weight for each name");
  auto* compose = AddListFlag(command, "--compose", &components_,
                              "The answers of other models to the example, as or,nand: 1 for +1, "
                              "else 0; or:sign gives +1 or -1, or:score the score")
                      ->type_name("MODEL,...")
                      ->check(Utf8());
  dimension->excludes(bits)->excludes(named)->excludes(compose);
  bits->excludes(named)->excludes(compose);
  named->excludes(compose);
  command
      ->add_option("--max-features", max_features_,
                   "With --named: the most names it may hold (default 1048576)")
      ->needs(named);
}

std::string SpaceFlags::Apply(v1::FeatureSpace* space) const {
  if (dimension_.has_value()) {
    space->mutable_dense()->set_dimension(*dimension_);
  } else if (hash_bits_.has_value()) {
    space->mutable_hashed()->set_bits(*hash_bits_);
  } else if (named_) {
    space->mutable_named()->set_max_features(max_features_);
  } else if (components_.empty()) {
    return "say where the examples live with exactly one of --dimension D (vectors), --hash-bits B "
           "(names hashed into 2^B slots), --named (a weight for each name) and --compose MODELS "
           "(other models' answers)";
  }
  for (const std::string& component : components_) {
    if (const std::string wrong = AddInput(component, space->mutable_composition());
        !wrong.empty()) {
      return wrong;
    }
  }
  return "";
}

std::string DescribeInput(const v1::FeatureSpace& space) {
  if (space.has_dense()) return absl::StrCat("dense, ", space.dense().dimension(), " dimensions");
  if (space.has_hashed()) return absl::StrCat("hashed, 2^", space.hashed().bits(), " slots");
  if (space.has_composition()) return DescribeComposition(space.composition());
  if (!space.has_named()) return "not stated";
  const uint32_t cap = space.named().max_features();
  return absl::StrCat("named, at most ", cap == 0 ? 1'048'576u : cap, " features");
}

const v1::FeatureSpace& ExampleSpace(const v1::FeatureSpace& space) {
  return space.has_composition() ? space.composition().example_space() : space;
}

}  // namespace perceptrond::client
