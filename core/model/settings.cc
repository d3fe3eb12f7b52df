#include "core/model/settings.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/learner/catalogue.h"
#include "core/model/class_settings.h"
#include "core/model/error.h"
#include "core/model/kernel_settings.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Of each label.
constexpr size_t kMaxLabelBytes = 256;
// Its square is within float32's range.
constexpr double kMaxOffsetValue = 1e18;
constexpr int kMaxComponents = 1024;

absl::Status Invalid(absl::string_view field, absl::string_view description) {
  return InvalidField("INVALID_FIELD", field, description);
}

absl::StatusOr<FeatureSpace> ReadInputSpace(const v1::FeatureSpace& space) {
  switch (space.space_case()) {
    case v1::FeatureSpace::kDense:
      if (space.dense().dimension() < 1 || space.dense().dimension() > FeatureSpace::kMaxFeatures) {
        return Invalid("model.feature_space.dense.dimension",
                       absl::StrCat(space.dense().dimension(), " is not between 1 and ",
                                    FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense, space.dense().dimension()};
    case v1::FeatureSpace::kHashed:
      if (space.hashed().bits() < 1 || space.hashed().bits() > FeatureSpace::kMaxBits) {
        return Invalid(
            "model.feature_space.hashed.bits",
            absl::StrCat(space.hashed().bits(), " is not between 1 and ", FeatureSpace::kMaxBits));
      }
      return FeatureSpace{FeatureSpace::Kind::kHashed, 1U << space.hashed().bits()};
    case v1::FeatureSpace::kNamed:
      if (space.named().max_features() < 1 ||
          space.named().max_features() > FeatureSpace::kMaxFeatures) {
        return Invalid("model.feature_space.named.max_features",
                       absl::StrCat(space.named().max_features(), " is not between 1 and ",
                                    FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kNamed, space.named().max_features()};
    case v1::FeatureSpace::kComposition:
      if (space.composition().inputs_size() < 1 ||
          space.composition().inputs_size() > kMaxComponents) {
        return Invalid("model.feature_space.composition.inputs",
                       absl::StrCat(space.composition().inputs_size(), " is not between 1 and ",
                                    kMaxComponents, " models"));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense,
                          static_cast<uint32_t>(space.composition().inputs_size())};
    case v1::FeatureSpace::SPACE_NOT_SET:
      break;
  }
  return Invalid("model.feature_space",
                 "say where examples live: dense of a dimension, hashed of some bits, named, or a "
                 "composition of other models");
}

absl::StatusOr<std::vector<Component>> ReadComponents(const v1::FeatureSpace& space) {
  std::vector<Component> components;
  for (const v1::FeatureSpace::Composition::Input& input : space.composition().inputs()) {
    switch (input.output()) {
      case v1::FeatureSpace::Composition::OUTPUT_UNSPECIFIED:
      case v1::FeatureSpace::Composition::OUTPUT_STEP:
        components.push_back({input.model(), Component::Output::kStep});
        break;
      case v1::FeatureSpace::Composition::OUTPUT_SIGN:
        components.push_back({input.model(), Component::Output::kSign});
        break;
      case v1::FeatureSpace::Composition::OUTPUT_SCORE:
        components.push_back({input.model(), Component::Output::kScore});
        break;
      default:
        return Invalid(
            absl::StrCat("model.feature_space.composition.inputs[", components.size(), "].output"),
            absl::StrCat("this server knows no output number ", input.output()));
    }
  }
  return components;
}

FeatureMap ReadMap(const v1::FeatureMap& map) {
  FeatureMap read;
  switch (map.map_case()) {
    case v1::FeatureMap::kPolynomial:
      read.kind = FeatureMap::Kind::kPolynomial;
      read.degree = map.polynomial().degree();
      read.interactions_only = map.polynomial().interactions_only();
      break;
    case v1::FeatureMap::kProducts:
      read.kind = FeatureMap::Kind::kProducts;
      read.interactions_only = map.products().interactions_only();
      for (const v1::FeatureMap::Products::Pair& pair : map.products().pairs())
        read.pairs.push_back({pair.first(), pair.second()});
      break;
    case v1::FeatureMap::kFourier:
      read.kind = FeatureMap::Kind::kFourier;
      read.dimension = map.fourier().dimension();
      read.gamma = map.fourier().gamma();
      read.seed = map.fourier().seed();
      break;
    case v1::FeatureMap::MAP_NOT_SET:
      break;
  }
  return read;
}

// The map's message in FeatureMap, for the path of a field that is out of range.
const char* MapName(const FeatureMap& map) {
  switch (map.kind) {
    case FeatureMap::Kind::kPolynomial:
      return "polynomial";
    case FeatureMap::Kind::kProducts:
      return "products";
    case FeatureMap::Kind::kFourier:
      return "fourier";
    case FeatureMap::Kind::kIdentity:
      break;
  }
  return "identity";
}

absl::StatusOr<FeatureSpace> ReadSpace(const v1::FeatureSpace& stored) {
  absl::StatusOr<FeatureSpace> space = ReadInputSpace(stored);
  if (!space.ok()) return space;
  space->map = ReadMap(stored.map());
  if (const std::optional<MapProblem> problem = CheckFeatureMap(*space)) {
    return Invalid(absl::StrCat("model.feature_space.map.", MapName(space->map),
                                problem->field.empty() ? "" : ".", problem->field),
                   problem->description);
  }
  return space;
}

absl::Status CheckStartPlaces(const v1::Weights& weights, const FeatureSpace& space) {
  constexpr absl::string_view kField = "model.learner.starting_weights";
  const bool named = space.kind == FeatureSpace::Kind::kNamed;
  const int places = named ? weights.names_size() : weights.indices_size();
  if ((named ? weights.indices_size() : weights.names_size()) > 0 ||
      places != weights.values_size()) {
    return Invalid(kField, named ? "a named space takes as many names as values, and no indices"
                                 : "takes as many indices as values, and no names");
  }
  if (named) {
    const absl::flat_hash_set<absl::string_view> distinct(weights.names().begin(),
                                                          weights.names().end());
    if (static_cast<int>(distinct.size()) != places) return Invalid(kField, "a name stands twice");
    for (const std::string& name : weights.names()) {
      if (name.empty() || name.size() > FeatureSpace::kMaxNameBytes)
        return Invalid(kField, absl::StrCat("a name has 1 to ", FeatureSpace::kMaxNameBytes,
                                            " bytes, one has ", name.size()));
    }
    if (static_cast<uint32_t>(places) > space.size)
      return Invalid(kField, "more names than max_features");
    return absl::OkStatus();
  }
  for (int i = 0; i < places; ++i) {
    if (weights.indices(i) >= space.size)
      return Invalid(kField,
                     absl::StrCat("index ", weights.indices(i), " is not below ", space.size));
    if (i > 0 && weights.indices(i - 1) >= weights.indices(i))
      return Invalid(kField, "indices must strictly ascend");
  }
  return absl::OkStatus();
}

absl::StatusOr<StartingWeights> ReadStart(const v1::Learner& learner, const FeatureSpace& space) {
  constexpr absl::string_view kField = "model.learner.starting_weights";
  const v1::Weights& weights = learner.starting_weights();
  if (absl::Status status = CheckStartPlaces(weights, space); !status.ok()) return status;
  if (!std::isfinite(weights.offset()) ||
      !std::all_of(weights.values().begin(), weights.values().end(),
                   [](float v) { return std::isfinite(v); })) {
    return Invalid(kField, "weights must be finite");
  }
  if (weights.offset() != 0 && learner.offset_value() == 0) {
    return Invalid(absl::StrCat(kField, ".offset"),
                   "a boundary through the origin (offset_value 0) has no offset");
  }
  if (weights.offset() != 0 &&
      !(std::abs(weights.offset() / learner.offset_value()) <= std::numeric_limits<float>::max())) {
    return Invalid(absl::StrCat(kField, ".offset"),
                   "divided by offset_value it is out of float32's range");
  }
  StartingWeights start;
  start.indices.assign(weights.indices().begin(), weights.indices().end());
  start.names.assign(weights.names().begin(), weights.names().end());
  start.values.assign(weights.values().begin(), weights.values().end());
  start.bias = weights.offset();
  // Names are numbered in their order: see core/features/dictionary.h.
  for (size_t i = 0; i < start.names.size(); ++i)
    start.indices.push_back(static_cast<uint32_t>(i + 1));
  return start;
}

// A number that some rules are told: where it stands in the API and in the core, and its range.
template <typename T>
struct RuleOption {
  LearnerOption option;
  const char* field;
  bool (v1::Learner::*has)() const;
  T (v1::Learner::*get)() const;
  void (v1::Learner::*set)(T);
  T LearnerSettings::*setting;
  T default_value;
  bool (*in_range)(T);
  const char* range;
};

// That a learner may keep.
constexpr uint32_t kMostRows = 100'000;

bool IsPositive(double value) { return value > 0 && std::isfinite(value); }

const RuleOption<double> kRuleOptions[] = {
    {kTakesStepSize, "step_size", &v1::Learner::has_step_size, &v1::Learner::step_size,
     &v1::Learner::set_step_size, &LearnerSettings::step_size, 1, &IsPositive,
     "above 0 and finite"},
    {kTakesAggressiveness, "aggressiveness", &v1::Learner::has_aggressiveness,
     &v1::Learner::aggressiveness, &v1::Learner::set_aggressiveness,
     &LearnerSettings::aggressiveness, 1, &IsPositive, "above 0 and finite"},
    {kTakesMarginSlack, "margin_slack", &v1::Learner::has_margin_slack, &v1::Learner::margin_slack,
     &v1::Learner::set_margin_slack, &LearnerSettings::margin_slack, 0.9,
     [](double value) { return value > 0 && value <= 1; }, "above 0 and at most 1"},
    {kTakesRegularization, "regularization", &v1::Learner::has_regularization,
     &v1::Learner::regularization, &v1::Learner::set_regularization,
     &LearnerSettings::regularization, 1, &IsPositive, "above 0 and finite"},
    {kTakesUpdateThreshold, "update_threshold", &v1::Learner::has_update_threshold,
     &v1::Learner::update_threshold, &v1::Learner::set_update_threshold,
     &LearnerSettings::update_threshold, 0, [](double value) { return value >= 0 && value < 0.5; },
     "from 0 to below 0.5"},
    {kTakesConfidence, "confidence", &v1::Learner::has_confidence, &v1::Learner::confidence,
     &v1::Learner::set_confidence, &LearnerSettings::confidence, 0.75,
     [](double value) { return value > 0.5 && value < 1; }, "above 0.5 and below 1"},
};

const RuleOption<uint32_t> kRuleCounts[] = {
    {kTakesMiniBatch, "mini_batch", &v1::Learner::has_mini_batch, &v1::Learner::mini_batch,
     &v1::Learner::set_mini_batch, &LearnerSettings::mini_batch, 0,
     [](uint32_t value) { return value < 1U << 31; }, "below 2^31"},
    {kTakesBudget, "budget", &v1::Learner::has_budget, &v1::Learner::budget,
     &v1::Learner::set_budget, &LearnerSettings::budget, 1000,
     [](uint32_t value) { return value >= 1 && value <= kMostRows; }, "between 1 and 100000"},
    {kTakesRatchet, "ratchet_examples", &v1::Learner::has_ratchet_examples,
     &v1::Learner::ratchet_examples, &v1::Learner::set_ratchet_examples,
     &LearnerSettings::ratchet_examples, 0, [](uint32_t value) { return value <= kMostRows; },
     "at most 100000"},
};

absl::Status NoSuchSetting(const CatalogueEntry& entry, absl::string_view field) {
  return Invalid(field, absl::StrCat("the learner ", entry.name, " has no such setting"));
}

template <typename T>
void FillOptions(std::span<const RuleOption<T>> options, uint16_t taken, v1::Learner& learner) {
  for (const RuleOption<T>& option : options) {
    if ((taken & option.option) != 0 && !(learner.*option.has)())
      (learner.*option.set)(option.default_value);
  }
}

template <typename T>
absl::Status ReadOptions(std::span<const RuleOption<T>> options, const v1::Learner& learner,
                         LearnerSettings& settings) {
  const CatalogueEntry& entry = FindLearner(settings);
  for (const RuleOption<T>& option : options) {
    const std::string field = absl::StrCat("model.learner.", option.field);
    if ((entry.options & option.option) == 0) {
      if ((learner.*option.has)()) return NoSuchSetting(entry, field);
      continue;
    }
    const T value = (learner.*option.get)();
    if (!option.in_range(value))
      return Invalid(field, absl::StrCat(value, " is not ", option.range));
    settings.*option.setting = value;
  }
  return absl::OkStatus();
}

absl::Status ReadKernelOption(const v1::Learner& learner, LearnerSettings& settings) {
  const CatalogueEntry& entry = FindLearner(settings);
  if ((entry.options & kTakesKernel) == 0)
    return learner.has_kernel() ? NoSuchSetting(entry, "model.learner.kernel") : absl::OkStatus();
  absl::StatusOr<KernelSettings> kernel = ReadKernel(learner.kernel());
  if (!kernel.ok()) return kernel.status();
  settings.kernel = *kernel;
  return absl::OkStatus();
}

absl::Status ReadClassWeights(const v1::Learner& learner, LearnerSettings& settings) {
  if (learner.class_weights().empty()) return absl::OkStatus();
  constexpr absl::string_view kField = "model.learner.class_weights";
  if (!FindLearner(settings).takes_weights)
    return Invalid(kField, absl::StrCat("the learner ", FindLearner(settings).name,
                                        " has no weights of examples"));
  for (const double weight : learner.class_weights()) {
    if (!IsPositive(weight))
      return Invalid(kField, absl::StrCat(weight, " is not above 0 and finite"));
  }
  if (settings.classes.max > 0) return ReadWeightsOfClasses(learner, settings.classes);
  if (learner.class_weights_size() != 2)
    return Invalid(kField, "give two: that of -1 and that of +1; or none");
  for (int i = 0; i < 2; ++i) settings.class_weights[i] = learner.class_weights(i);
  return absl::OkStatus();
}

absl::StatusOr<LearnerSettings> ReadLearner(const v1::Learner& learner, const FeatureSpace& space) {
  LearnerSettings settings;
  const int kind = learner.kind() - 1;
  if (kind < 0 || static_cast<size_t>(kind) >= Catalogue().size()) {
    return Invalid("model.learner.kind",
                   absl::StrCat("this server knows no learner number ", learner.kind()));
  }
  const CatalogueEntry& entry = FindLearner(static_cast<LearnerKind>(kind));
  settings.rule = entry.rule;
  settings.wrapper = entry.wrapper;
  switch (learner.tie_rule()) {
    case v1::TIE_RULE_MISTAKE:
      settings.tie_rule = TieRule::kMistake;
      break;
    case v1::TIE_RULE_POSITIVE:
      settings.tie_rule = TieRule::kPositive;
      break;
    case v1::TIE_RULE_CORRECT:
      settings.tie_rule = TieRule::kCorrect;
      break;
    default:
      return Invalid("model.learner.tie_rule",
                     absl::StrCat("this server knows no tie rule number ", learner.tie_rule()));
  }
  if (absl::Status status = ReadClasses(learner, space, settings); !status.ok()) return status;
  if (absl::Status status = ReadOptions<double>(kRuleOptions, learner, settings); !status.ok())
    return status;
  if (absl::Status status = ReadOptions<uint32_t>(kRuleCounts, learner, settings); !status.ok())
    return status;
  if (absl::Status status = ReadKernelOption(learner, settings); !status.ok()) return status;
  if (absl::Status status = ReadClassWeights(learner, settings); !status.ok()) return status;
  settings.bias_input = learner.offset_value();
  if (!(settings.bias_input >= 0 && settings.bias_input <= kMaxOffsetValue)) {
    return Invalid("model.learner.offset_value",
                   absl::StrCat(settings.bias_input, " is not between 0 and ", kMaxOffsetValue));
  }
  absl::StatusOr<StartingWeights> start = ReadStart(learner, space);
  if (!start.ok()) return start.status();
  settings.start = *std::move(start);
  if (FindLearner(settings).form == Form::kKernel && learner.has_starting_weights())
    return Invalid(
        "model.learner.starting_weights",
        absl::StrCat("the learner ", FindLearner(settings).name, " has no weights to start from"));
  if (settings.tie_rule == TieRule::kCorrect && settings.start.all_zero()) {
    return InvalidField("ZERO_START", "model.learner.tie_rule",
                        "from zero weights every score is 0, and this rule counts 0 as correct: "
                        "nothing would ever be "
                        "learned; give starting_weights");
  }
  return settings;
}

absl::StatusOr<RetentionSettings> ReadRetention(const v1::Retention& retention) {
  const auto in_range = [](absl::string_view field, uint32_t value) {
    if (value <= RetentionSettings::kMost) return absl::OkStatus();
    return Invalid(absl::StrCat("model.retention.", field),
                   absl::StrCat(value, " is above ", RetentionSettings::kMost));
  };
  if (absl::Status status = in_range("updates", retention.updates()); !status.ok()) return status;
  if (absl::Status status = in_range("sample", retention.sample()); !status.ok()) return status;
  return RetentionSettings{
      retention.has_updates() ? retention.updates() : RetentionSettings::kDefaultUpdates,
      retention.sample()};
}

}  // namespace

void FillDefaults(v1::Model& model) {
  if (!model.retention().has_updates())
    model.mutable_retention()->set_updates(RetentionSettings::kDefaultUpdates);
  if (model.feature_space().has_named() && model.feature_space().named().max_features() == 0) {
    model.mutable_feature_space()->mutable_named()->set_max_features(
        DefaultFeatureCap(model.learner()));
  }
  if (model.feature_space().has_composition()) {
    for (v1::FeatureSpace::Composition::Input& input :
         *model.mutable_feature_space()->mutable_composition()->mutable_inputs()) {
      if (input.output() == v1::FeatureSpace::Composition::OUTPUT_UNSPECIFIED)
        input.set_output(v1::FeatureSpace::Composition::OUTPUT_STEP);
    }
  }
  v1::Learner& learner = *model.mutable_learner();
  if (learner.kind() == v1::LEARNER_KIND_UNSPECIFIED) learner.set_kind(v1::LEARNER_KIND_PERCEPTRON);
  if (learner.tie_rule() == v1::TIE_RULE_UNSPECIFIED) learner.set_tie_rule(v1::TIE_RULE_MISTAKE);
  if (!learner.has_offset_value()) learner.set_offset_value(1);
  if (learner.has_classes()) FillDefaultClasses(*learner.mutable_classes());
  const int kind = learner.kind() - 1;
  // Another number is refused by ReadSettings.
  if (kind < 0 || static_cast<size_t>(kind) >= Catalogue().size()) return;
  const uint16_t options = Catalogue()[static_cast<size_t>(kind)].options;
  FillOptions<double>(kRuleOptions, options, learner);
  FillOptions<uint32_t>(kRuleCounts, options, learner);
  if ((options & kTakesKernel) != 0) FillDefaults(*learner.mutable_kernel());
}

absl::StatusOr<ModelSettings> ReadSettings(const v1::Model& model) {
  absl::StatusOr<FeatureSpace> space = ReadSpace(model.feature_space());
  if (!space.ok()) return space.status();
  absl::StatusOr<LearnerSettings> learner = ReadLearner(model.learner(), space->mapped());
  if (!learner.ok()) return learner.status();
  absl::StatusOr<std::vector<Component>> components = ReadComponents(model.feature_space());
  if (!components.ok()) return components.status();
  ModelSettings settings{*space,
                         *std::move(learner),
                         {model.label_names().begin(), model.label_names().end()},
                         *std::move(components)};
  absl::StatusOr<RetentionSettings> retention = ReadRetention(model.retention());
  if (!retention.ok()) return retention.status();
  settings.retention = *retention;
  settings.example_space = *space;
  if (const auto& composition = model.feature_space().composition();
      composition.has_example_space()) {
    absl::StatusOr<FeatureSpace> examples = ReadSpace(composition.example_space());
    if (!examples.ok()) return examples.status();
    settings.example_space = *examples;
  }
  if (settings.is_multiclass()) {
    if (absl::Status status = ReadClassNames(model, settings); !status.ok()) return status;
    if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
    return settings;
  }
  const std::vector<std::string>& labels = settings.label_names;
  if (!labels.empty() &&
      (labels.size() != 2 || labels[0] == labels[1] || labels[0].empty() || labels[1].empty() ||
       labels[0].size() > kMaxLabelBytes || labels[1].size() > kMaxLabelBytes)) {
    return Invalid("model.label_names",
                   absl::StrCat("name both labels, that of -1 first, differently and in at most ",
                                kMaxLabelBytes, " bytes each: [\"ham\", \"spam\"]; or none"));
  }
  if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
  return settings;
}

absl::Status CheckNew(const ModelSettings& settings) {
  constexpr double kLeast = std::numeric_limits<float>::min();
  constexpr double kMost = std::numeric_limits<float>::max();
  const double step_size = settings.learner.step_size;
  if (step_size >= kLeast && step_size <= kMost) return absl::OkStatus();
  return Invalid("model.learner.step_size",
                 absl::StrCat(step_size, " is beyond the range of the weights, which are float32: ",
                              "from ", kLeast, " to ", kMost, "; 1 is the default"));
}

absl::Status CheckMutableFields(const v1::Model& model) {
  if (model.description().size() > 1024)
    return Invalid("model.description", "has more than 1024 bytes");
  if (!(model.margin_of_interest() >= 0) || !std::isfinite(model.margin_of_interest())) {
    return Invalid("model.margin_of_interest", "must be above 0 and finite, or 0 for none");
  }
  return absl::OkStatus();
}

bool IsModelId(absl::string_view id) {
  if (id.empty() || id.size() > 128 || !absl::ascii_isalnum(id[0])) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace perceptrond
