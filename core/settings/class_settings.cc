#include "core/settings/learner_settings.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/learner/catalogue.h"
#include "core/vector/name.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// Of all classes together: as many as a model of two labels may have.
constexpr uint64_t kMostWeights = FeatureSpace::kMaxFeatures;

std::string RulesWithClasses() {
  std::string names;
  for (const CatalogueEntry& entry : Catalogue()) {
    if (entry.has_classes() && entry.wrapper == WrapperKind::kNone)
      absl::StrAppend(&names, names.empty() ? "" : ", ", entry.name);
  }
  return names;
}

absl::Status CheckNames(const std::vector<std::string>& names) {
  constexpr absl::string_view kField = "model.label_names";
  absl::flat_hash_set<absl::string_view> distinct;
  for (const std::string& name : names) {
    if (name.empty() || name.size() > kMaxNameBytes)
      return InvalidSetting(
          kField, absl::StrCat("a name has 1 to ", kMaxNameBytes, " bytes, one has ", name.size()));
    if (!distinct.insert(name).second)
      return InvalidSetting(kField, absl::StrCat("\"", name, "\" is given twice"));
  }
  return absl::OkStatus();
}

// Whether a model of at most `max` classes may be created with this many names.
absl::Status CheckNumberOfNames(NewClasses new_classes, size_t names, uint32_t max) {
  constexpr absl::string_view kField = "model.label_names";
  switch (new_classes) {
    case NewClasses::kNone:
      if (names == 0 || names == max) break;
      return InvalidSetting(kField,
                            absl::StrCat("names ", names, " of ", max,
                                         " classes; name all of them, in the order of their "
                                         "numbers, or none, or let new ones be added by name"));
    case NewClasses::kNumbered:
      if (names == 0) break;
      return InvalidSetting(kField,
                            "classes that are added by number have no names; leave them out");
    case NewClasses::kNamed:
      if (names <= max) break;
      return InvalidSetting(kField,
                            absl::StrCat(names, " names are more than max_classes, which is ", max,
                                         "; raise it or give fewer names"));
  }
  return absl::OkStatus();
}

}  // namespace

void FillDefaultClasses(v1::Classes& classes) {
  if (classes.new_classes() == v1::Classes::NEW_CLASSES_UNSPECIFIED)
    classes.set_new_classes(v1::Classes::NEW_CLASSES_NONE);
}

uint32_t DefaultFeatureCap(const v1::Learner& learner) {
  const uint64_t classes = std::max<uint32_t>(1, learner.classes().max_classes());
  return static_cast<uint32_t>(
      std::clamp<uint64_t>(kMostWeights / classes, 1, FeatureSpace::kDefaultCap));
}

absl::Status ReadClasses(const v1::Learner& learner, const FeatureSpace& space,
                         LearnerSettings& settings) {
  if (!learner.has_classes()) return absl::OkStatus();
  constexpr absl::string_view kField = "model.learner.classes";
  const CatalogueEntry& entry = FindLearner(settings);
  if (!entry.has_classes())
    return InvalidSetting(
        kField,
        absl::StrCat("the learner ", entry.name, " has two labels only: ", entry.two_labels_only,
                     "; leave classes out, or choose one of ", RulesWithClasses()));
  const uint32_t max = learner.classes().max_classes();
  if (max < 2 || max > ClassSettings::kMost)
    return InvalidSetting(absl::StrCat(kField, ".max_classes"),
                          absl::StrCat(max, " is not between 2 and ", ClassSettings::kMost));
  if (uint64_t{max} * space.size > kMostWeights)
    return InvalidSetting(
        absl::StrCat(kField, ".max_classes"),
        absl::StrCat(max, " classes of ", space.size, " weights each are more than ", kMostWeights,
                     " weights in all; use fewer classes or features"));
  settings.classes.max = max;
  return absl::OkStatus();
}

absl::Status ReadWeightsOfClasses(const v1::Learner& learner, ClassSettings& classes) {
  if (static_cast<uint32_t>(learner.class_weights_size()) != classes.max)
    return InvalidSetting(
        "model.learner.class_weights",
        absl::StrCat("give one for each of the ", classes.max, " classes; or none"));
  classes.weights.assign(learner.class_weights().begin(), learner.class_weights().end());
  return absl::OkStatus();
}

absl::Status ReadClassNames(const v1::Model& model, ModelSettings& settings) {
  ClassSettings& classes = settings.learner.classes;
  switch (model.learner().classes().new_classes()) {
    case v1::Classes::NEW_CLASSES_NONE:
      settings.new_classes = NewClasses::kNone;
      break;
    case v1::Classes::NEW_CLASSES_NUMBERED:
      settings.new_classes = NewClasses::kNumbered;
      break;
    case v1::Classes::NEW_CLASSES_NAMED:
      settings.new_classes = NewClasses::kNamed;
      break;
    default:
      return InvalidSetting("model.learner.classes.new_classes",
                            absl::StrCat("this server knows no value numbered ",
                                         model.learner().classes().new_classes()));
  }
  const size_t names = settings.label_names.size();
  if (absl::Status status = CheckNumberOfNames(settings.new_classes, names, classes.max);
      !status.ok())
    return status;
  classes.initial =
      settings.new_classes == NewClasses::kNone ? classes.max : static_cast<uint32_t>(names);
  const size_t starts = settings.learner.start.vectors.size();
  if (starts != 0 && starts != classes.initial)
    return InvalidSetting("model.learner.starting_weights.vectors",
                          absl::StrCat("has ", starts, " vectors; ", classes.initial,
                                       " classes exist from the start, and each takes one"));
  return CheckNames(settings.label_names);
}

}  // namespace perceptrond
