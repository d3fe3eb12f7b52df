#include "core/model/label_reader.h"

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// The label of a two-class model's name.
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
  const auto place = static_cast<size_t>(label);
  if (batch_.label_names.empty())
    return place < limit() ? ValidationCode::kNone : ValidationCode::kUnknownLabel;
  if (place >= batch_.label_names.size()) return ValidationCode::kUnknownLabel;
  if (numbers_[place] != kUnknown) return ValidationCode::kNone;
  const size_t bytes = batch_.label_names[place].size();
  const bool may_come_up = settings_.new_classes == NewClasses::kNamed;
  return may_come_up && bytes > 0 && bytes <= kMaxNameBytes ? ValidationCode::kNone
                                                            : ValidationCode::kUnknownLabel;
}

absl::string_view LabelReader::NewClass(size_t i) const {
  if (batch_.label_names.empty()) return {};
  const auto place = static_cast<size_t>(batch_.labels[i]);
  return numbers_[place] == kUnknown ? batch_.label_names[place] : absl::string_view();
}

ValidationError LabelReader::Describe(size_t i) const {
  const int32_t label = batch_.labels[i];
  const auto error = [](std::string description) {
    return ValidationError{ValidationCode::kUnknownLabel, "labels", std::move(description)};
  };
  if (two_labels_) return error(absl::StrCat(label, " is neither -1 nor +1"));
  if (batch_.label_names.empty()) {
    if (settings_.new_classes == NewClasses::kNamed)
      return error(absl::StrCat(label, " is no class: there are ", resolved_size_,
                                ", numbered from 0, and new ones come up by name"));
    return error(absl::StrCat(label, " is no class: they are numbered 0 to ", limit() - 1));
  }
  if (label < 0 || static_cast<size_t>(label) >= batch_.label_names.size())
    return error(absl::StrCat(label, " is no position in label_names, of which there are ",
                              batch_.label_names.size()));
  const absl::string_view name = batch_.label_names[static_cast<size_t>(label)];
  if (settings_.new_classes == NewClasses::kNamed)
    return error(
        absl::StrCat("a class's name has 1 to ", kMaxNameBytes, " bytes, this has ", name.size()));
  if (settings_.label_names.empty()) return error("the model's labels have no names; use numbers");
  return error(absl::StrCat("\"", name.substr(0, 40), "\" is none of the model's label_names"));
}

}  // namespace perceptrond
