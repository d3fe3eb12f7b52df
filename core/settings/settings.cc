#include "core/settings/settings.h"

#include <google/protobuf/message.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"
#include "core/features/feature_space.h"
#include "core/features/words.h"
#include "core/settings/learner_settings.h"
#include "core/settings/unknown_fields.h"
#include "core/vector/name.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::Message;

constexpr int kMaxComponents = 1024;

absl::StatusOr<TextOptions::Value> ReadTextValue(v1::FeatureSpace::Text::Value value) {
  switch (value) {
    case v1::FeatureSpace::Text::VALUE_UNSPECIFIED:
    case v1::FeatureSpace::Text::VALUE_PRESENCE:
      return TextOptions::Value::kPresence;
    case v1::FeatureSpace::Text::VALUE_COUNT:
      return TextOptions::Value::kCount;
    case v1::FeatureSpace::Text::VALUE_LOG_COUNT:
      return TextOptions::Value::kLogCount;
    default:
      return InvalidSetting("model.feature_space.text.value",
                            absl::StrCat("this server knows no value number ", int{value}));
  }
}

absl::StatusOr<FeatureSpace> ReadTextSpace(const v1::FeatureSpace::Text& text) {
  const auto in_range = [](absl::string_view field, uint32_t value, uint32_t least, uint32_t most) {
    if (value >= least && value <= most) return absl::OkStatus();
    return InvalidSetting(absl::StrCat("model.feature_space.text.", field),
                          absl::StrCat(value, " is not between ", least, " and ", most));
  };
  absl::Status status = in_range("bits", text.bits(), 1, FeatureSpace::kMaxBits);
  if (status.ok()) status = in_range("max_words", text.max_words(), 0, TextOptions::kMaxWords);
  const bool characters = text.min_characters() > 0 || text.max_characters() > 0;
  if (status.ok() && characters)
    status = in_range("min_characters", text.min_characters(), 1, TextOptions::kMaxCharacters);
  if (status.ok() && characters)
    status = in_range("max_characters", text.max_characters(), text.min_characters(),
                      TextOptions::kMaxCharacters);
  if (status.ok() && !characters && text.max_words() == 0)
    status = InvalidSetting("model.feature_space.text.max_words",
                            "is 0 without n-grams of characters, so that there are no features");
  if (status.ok() && text.inverse_document_frequency())
    status = in_range("bits", text.bits(), 1, TextOptions::kMaxFrequencyBits);
  if (!status.ok()) return status;
  const absl::StatusOr<TextOptions::Value> value = ReadTextValue(text.value());
  if (!value.ok()) return value.status();
  FeatureSpace space{FeatureSpace::Kind::kHashed, 1U << text.bits()};
  space.text = TextOptions{*value,
                           text.max_words(),
                           text.min_characters(),
                           text.max_characters(),
                           text.keep_norm(),
                           text.inverse_document_frequency(),
                           text.icu_version()};
  return space;
}

absl::StatusOr<FeatureSpace> ReadInputSpace(const v1::FeatureSpace& space) {
  switch (space.space_case()) {
    case v1::FeatureSpace::kDense:
      if (space.dense().dimension() < 1 || space.dense().dimension() > FeatureSpace::kMaxFeatures) {
        return InvalidSetting("model.feature_space.dense.dimension",
                              absl::StrCat(space.dense().dimension(), " is not between 1 and ",
                                           FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense, space.dense().dimension()};
    case v1::FeatureSpace::kHashed:
      if (space.hashed().bits() < 1 || space.hashed().bits() > FeatureSpace::kMaxBits) {
        return InvalidSetting(
            "model.feature_space.hashed.bits",
            absl::StrCat(space.hashed().bits(), " is not between 1 and ", FeatureSpace::kMaxBits));
      }
      return FeatureSpace{FeatureSpace::Kind::kHashed, 1U << space.hashed().bits()};
    case v1::FeatureSpace::kNamed:
      if (space.named().max_features() < 1 ||
          space.named().max_features() > FeatureSpace::kMaxFeatures) {
        return InvalidSetting("model.feature_space.named.max_features",
                              absl::StrCat(space.named().max_features(), " is not between 1 and ",
                                           FeatureSpace::kMaxFeatures));
      }
      return FeatureSpace{FeatureSpace::Kind::kNamed, space.named().max_features()};
    case v1::FeatureSpace::kComposition:
      if (space.composition().inputs_size() < 1 ||
          space.composition().inputs_size() > kMaxComponents) {
        return InvalidSetting("model.feature_space.composition.inputs",
                              absl::StrCat(space.composition().inputs_size(),
                                           " is not between 1 and ", kMaxComponents, " models"));
      }
      return FeatureSpace{FeatureSpace::Kind::kDense,
                          static_cast<uint32_t>(space.composition().inputs_size())};
    case v1::FeatureSpace::kText:
      return ReadTextSpace(space.text());
    case v1::FeatureSpace::SPACE_NOT_SET:
      break;
  }
  return InvalidSetting(
      "model.feature_space",
      "say where examples live: dense of a dimension, hashed of some bits, named, text, or a "
      "composition of other models");
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

// Sets outputs of components that were left out.
void FillDefaultOutputs(v1::FeatureSpace& space) {
  if (!space.has_composition()) return;
  for (v1::FeatureSpace::Composition::Input& input :
       *space.mutable_composition()->mutable_inputs()) {
    if (input.output() == v1::FeatureSpace::Composition::OUTPUT_UNSPECIFIED)
      input.set_output(v1::FeatureSpace::Composition::OUTPUT_STEP);
  }
}

// Sets what was left out, and the version of ICU here.
void FillTextDefaults(v1::FeatureSpace::Text& text) {
  using Text = v1::FeatureSpace::Text;
  if (text.bits() == 0) text.set_bits(TextOptions::kDefaultBits);
  if (text.value() == Text::VALUE_UNSPECIFIED) text.set_value(Text::VALUE_PRESENCE);
  if (!text.has_max_words()) text.set_max_words(TextOptions::kDefaultWords);
  text.set_icu_version(IcuVersion());
}

void FillDefaults(v1::StoredPredictions& stored) {
  constexpr int64_t kDefaultSeconds = 24 * 3600;
  constexpr uint64_t kDefaultBytes = 64 << 20;
  if (!stored.has_max_age()) stored.mutable_max_age()->set_seconds(kDefaultSeconds);
  if (stored.max_bytes() == 0) stored.set_max_bytes(kDefaultBytes);
}

// The space of the examples that are sent, with its feature map; of a composition the dense space
// of its components' outputs. INVALID_ARGUMENT.
absl::StatusOr<FeatureSpace> ReadSpace(const v1::FeatureSpace& stored) {
  absl::StatusOr<FeatureSpace> space = ReadInputSpace(stored);
  if (!space.ok()) return space;
  space->map = ReadMap(stored.map());
  if (const std::optional<MapProblem> problem = CheckFeatureMap(*space)) {
    return InvalidSetting(absl::StrCat("model.feature_space.map.", MapName(space->map),
                                       problem->field.empty() ? "" : ".", problem->field),
                          problem->description);
  }
  return space;
}

// The components of a composition; empty for other spaces. INVALID_ARGUMENT.
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
        return InvalidSetting(
            absl::StrCat("model.feature_space.composition.inputs[", components.size(), "].output"),
            absl::StrCat("this server knows no output number ", input.output()));
    }
  }
  return components;
}

absl::StatusOr<StoredExamplesSettings> ReadStoredExamples(const v1::StoredExamples& stored) {
  const auto in_range = [](absl::string_view field, uint32_t value) {
    if (value <= StoredExamplesSettings::kMost) return absl::OkStatus();
    return InvalidSetting(absl::StrCat("model.stored_examples.", field),
                          absl::StrCat(value, " is above ", StoredExamplesSettings::kMost));
  };
  if (absl::Status status = in_range("max_updates", stored.max_updates()); !status.ok())
    return status;
  if (absl::Status status = in_range("max_sample", stored.max_sample()); !status.ok())
    return status;
  return StoredExamplesSettings{stored.max_updates(), stored.max_sample()};
}

absl::StatusOr<StoredPredictionsSettings> ReadStoredPredictions(
    const v1::StoredPredictions& stored) {
  constexpr int64_t kMostSeconds = int64_t{365} * 24 * 3600;
  const absl::Duration age =
      absl::Seconds(stored.max_age().seconds()) + absl::Nanoseconds(stored.max_age().nanos());
  if (age <= absl::ZeroDuration() || age > absl::Seconds(kMostSeconds)) {
    return InvalidSetting("model.stored_predictions.max_age",
                          absl::StrCat(absl::FormatDuration(age),
                                       " is not above 0 and at most 365 days; leave it out for a "
                                       "day"));
  }
  return StoredPredictionsSettings{age, stored.max_bytes(), stored.durable()};
}

// Names of the two labels, or none.
absl::Status CheckLabelNames(const std::vector<std::string>& labels) {
  if (!labels.empty() &&
      (labels.size() != 2 || labels[0] == labels[1] || labels[0].empty() || labels[1].empty() ||
       labels[0].size() > kMaxNameBytes || labels[1].size() > kMaxNameBytes)) {
    return InvalidSetting("model.label_names",
                          absl::StrCat("give two different names of at most ", kMaxNameBytes,
                                       " bytes, that of -1 first: [\"ham\", \"spam\"]; or none"));
  }
  return absl::OkStatus();
}

// INVALID_ARGUMENT if a newer client set a field that this server does not know, here or in a
// message below: without it the setting would be another.
absl::Status CheckKnown(const Message& message, absl::string_view path) {
  const std::optional<std::string> unknown = FindUnknownField(message);
  if (!unknown.has_value()) return absl::OkStatus();
  return InvalidSetting(
      absl::StrCat(path, *unknown),
      "it has a field that this server does not know; leave it out, or ask a newer server");
}

absl::Status CheckKnownAndSupported(const v1::Model& model) {
  absl::Status status = CheckKnown(model.feature_space(), "model.feature_space");
  if (status.ok()) status = CheckKnown(model.learner(), "model.learner");
  if (status.ok()) status = CheckKnown(model.stored_examples(), "model.stored_examples");
  if (status.ok()) status = CheckKnown(model.stored_predictions(), "model.stored_predictions");
  return status;
}

}  // namespace

void FillDefaults(v1::Model& model) {
  if (!model.stored_examples().has_max_updates())
    model.mutable_stored_examples()->set_max_updates(StoredExamplesSettings::kDefaultUpdates);
  if (model.has_stored_predictions()) FillDefaults(*model.mutable_stored_predictions());
  if (model.feature_space().has_named() && model.feature_space().named().max_features() == 0) {
    model.mutable_feature_space()->mutable_named()->set_max_features(
        DefaultFeatureCap(model.learner()));
  }
  if (model.feature_space().has_text())
    FillTextDefaults(*model.mutable_feature_space()->mutable_text());
  if (model.has_feature_space()) FillDefaultOutputs(*model.mutable_feature_space());
  FillDefaults(*model.mutable_learner());
}

StoredExamplesSettings StoredExamplesWithin(const ModelSettings& settings, size_t max_model_bytes) {
  // With an index and a value for each feature. Names that have no weight yet are stored with it.
  constexpr size_t kRow = 256;
  constexpr size_t kFeature = sizeof(uint32_t) + sizeof(float);
  const FeatureSpace space = settings.space.mapped();
  const size_t row = space.kind == FeatureSpace::Kind::kNamed
                         ? max_model_bytes
                         : std::min(max_model_bytes, kRow + kFeature * space.size);
  const auto most = [&](uint32_t count, size_t bytes, size_t part) {
    return count > 0 && row > part / count ? std::min(bytes, part) : std::min(bytes, count * row);
  };
  StoredExamplesSettings stored = settings.stored_examples;
  stored.update_bytes = most(stored.updates, stored.update_bytes, max_model_bytes / 12);
  stored.sample_bytes = most(stored.sample, stored.sample_bytes, max_model_bytes / 3);
  return stored;
}

absl::StatusOr<ModelSettings> ReadSettings(const v1::Model& model) {
  if (absl::Status status = CheckKnownAndSupported(model); !status.ok()) return status;
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
  absl::StatusOr<StoredExamplesSettings> stored = ReadStoredExamples(model.stored_examples());
  if (!stored.ok()) return stored.status();
  settings.stored_examples = *stored;
  if (model.has_stored_predictions()) {
    absl::StatusOr<StoredPredictionsSettings> predictions =
        ReadStoredPredictions(model.stored_predictions());
    if (!predictions.ok()) return predictions.status();
    settings.stored_predictions = *predictions;
  }
  settings.example_space = *space;
  if (const auto& composition = model.feature_space().composition();
      composition.has_example_space()) {
    absl::StatusOr<FeatureSpace> examples = ReadSpace(composition.example_space());
    if (!examples.ok()) return examples.status();
    settings.example_space = *examples;
  }
  absl::Status labels = settings.is_multiclass() ? ReadClassNames(model, settings)
                                                 : CheckLabelNames(settings.label_names);
  if (!labels.ok()) return labels;
  if (absl::Status status = CheckMutableFields(model); !status.ok()) return status;
  return settings;
}

std::optional<absl::Duration> ExpireAfter(const v1::Model& model) {
  if (!model.has_expire_after()) return std::nullopt;
  return absl::Seconds(model.expire_after().seconds()) +
         absl::Nanoseconds(model.expire_after().nanos());
}

absl::Status CheckMutableFields(const v1::Model& model) {
  if (model.description().size() > 1024)
    return InvalidSetting("model.description", "has more than 1024 bytes");
  if (!(model.margin_of_interest() >= 0) || !std::isfinite(model.margin_of_interest())) {
    return InvalidSetting("model.margin_of_interest", "must be above 0 and finite, or 0 for none");
  }
  const std::optional<absl::Duration> expire_after = ExpireAfter(model);
  if (!expire_after.has_value()) return absl::OkStatus();
  constexpr absl::Duration kShortest = absl::Seconds(1);
  constexpr absl::Duration kLongest = absl::Hours(36'500 * 24);
  constexpr int32_t kNanosPerSecond = 1'000'000'000;
  const int32_t nanos = model.expire_after().nanos();
  if (nanos < 0 || nanos >= kNanosPerSecond || *expire_after < kShortest ||
      *expire_after > kLongest) {
    return InvalidSetting("model.expire_after",
                          absl::StrCat(absl::FormatDuration(*expire_after),
                                       " is not between 1 s and 36500 days, or no Duration; leave "
                                       "it out to keep the model"));
  }
  return absl::OkStatus();
}

bool IsModelId(absl::string_view id) {
  if (id.empty() || id.size() > kMaxIdBytes || !absl::ascii_isalnum(id[0])) return false;
  return std::all_of(id.begin(), id.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
  });
}

}  // namespace perceptrond
