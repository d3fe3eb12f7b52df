#include "core/model/label_reader.h"

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// The label that a name of a model of two labels stands for.
int32_t SignOf(const std::vector<std::string>& names, absl::string_view name, int32_t unknown) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return i == 0 ? -1 : 1;
  }
  return unknown;
}

}  // namespace

LabelReader::LabelReader(const ModelSettings& settings, const Batch& batch)
    : settings_(settings),
      batch_(batch),
      two_labels_(!settings.is_multiclass() && batch.label_names.empty()),
      resolves_(settings.named_classes() || !batch.label_names.empty()) {}

void LabelReader::Resolve(const Dictionary& class_names) {
  resolved_size_ = class_names.size();
  numbers_.clear();
  for (const absl::string_view name : batch_.label_names) {
    if (!settings_.is_multiclass()) {
      numbers_.push_back(SignOf(settings_.label_names, name, kUnknown));
      continue;
    }
    const uint32_t number = class_names.Find(name);
    numbers_.push_back(number == Dictionary::kUnknown ? kUnknown
                                                      : static_cast<int32_t>(number - 1));
  }
}

size_t LabelReader::limit() const {
  return settings_.new_classes == NewClasses::kNamed ? resolved_size_
                                                     : settings_.learner.classes.max;
}

ValidationCode LabelReader::CheckClassOrName(size_t i) const {
  const int32_t label = batch_.labels[i];
  if (label < 0) return ValidationCode::kUnknownLabel;
  const auto position = static_cast<size_t>(label);
  if (batch_.label_names.empty())
    return position < limit() ? ValidationCode::kNone : ValidationCode::kUnknownLabel;
  if (position >= batch_.label_names.size()) return ValidationCode::kUnknownLabel;
  if (numbers_[position] != kUnknown) return ValidationCode::kNone;
  const size_t bytes = batch_.label_names[position].size();
  const bool may_be_new = settings_.new_classes == NewClasses::kNamed;
  return may_be_new && bytes > 0 && bytes <= kMaxNameBytes ? ValidationCode::kNone
                                                           : ValidationCode::kUnknownLabel;
}

absl::string_view LabelReader::NewClass(size_t i) const {
  if (batch_.label_names.empty()) return {};
  const auto position = static_cast<size_t>(batch_.labels[i]);
  return numbers_[position] == kUnknown ? batch_.label_names[position] : absl::string_view();
}

ValidationError LabelReader::Describe(size_t i) const {
  const int32_t label = batch_.labels[i];
  const auto error = [](std::string description) {
    return ValidationError{ValidationCode::kUnknownLabel, "labels", std::move(description)};
  };
  if (two_labels_) return error(absl::StrCat(label, "; the labels are -1 and +1"));
  if (batch_.label_names.empty()) {
    if (settings_.new_classes == NewClasses::kNamed)
      return error(absl::StrCat(label, " is not a class: there are ", resolved_size_,
                                ", numbered from 0, and new ones are introduced by name"));
    return error(absl::StrCat(label, " is not a class; classes are 0 to ", limit() - 1));
  }
  if (label < 0 || static_cast<size_t>(label) >= batch_.label_names.size())
    return error(absl::StrCat(label, " is not a position in label_names, which has ",
                              batch_.label_names.size()));
  const absl::string_view name = batch_.label_names[static_cast<size_t>(label)];
  if (settings_.new_classes == NewClasses::kNamed)
    return error(absl::StrCat("the name has ", name.size(), " bytes; names of classes have 1 to ",
                              kMaxNameBytes));
  if (settings_.label_names.empty()) return error("the model has no label_names; use numbers");
  return error(absl::StrCat("\"", name.substr(0, 40), "\" is not one of the model's label_names"));
}

}  // namespace perceptrond
