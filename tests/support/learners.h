// Learners by name in the API's messages: "arow", "averaged-perceptron". A name is a rule's field
// of perceptron.v1.Learner, after a wrapper's or none (CatalogueEntry::name).
#pragma once

#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::testing {

namespace v1 = ::perceptron::v1;

inline const google::protobuf::FieldDescriptor* LearnerField(absl::string_view name) {
  return v1::Learner::descriptor()->FindFieldByName(absl::StrReplaceAll(name, {{"-", "_"}}));
}

// Logistic regression with other steps, which the catalogue has under one name. For SetLearner.
inline std::vector<std::string> LogisticWithSteps() {
  return {"logistic-regression/decreasing", "averaged-logistic-regression/decreasing",
          "logistic-regression/adaptive"};
}

// Sets rule and wrapper, with their defaults; steps if they follow the name.
inline void SetLearner(v1::Learner& learner, const std::string& given) {
  const size_t slash = given.find('/');
  const std::string name = given.substr(0, slash);
  std::vector<std::string> parts = {name};
  if (LearnerField(name) == nullptr)
    parts = {name.substr(0, name.find('-')), name.substr(name.find('-') + 1)};
  for (const std::string& part : parts)
    learner.GetReflection()->MutableMessage(&learner, LearnerField(part));
  if (slash == std::string::npos) return;
  learner.mutable_logistic_regression()->set_steps(given.substr(slash) == "/decreasing"
                                                       ? v1::LogisticRegression::STEPS_DECREASING
                                                       : v1::LogisticRegression::STEPS_ADAPTIVE);
}

// The name in the name of a test, which has no dashes.
inline std::string TestName(const std::string& learner) {
  return absl::StrReplaceAll(learner, {{"-", "_"}, {"/", "_"}});
}

// The message of the learner's rule or wrapper that has a setting; null: neither has. Without a
// rule the learner becomes a perceptron.
inline google::protobuf::Message* MessageWith(v1::Learner& learner, const std::string& setting) {
  if (learner.rule_case() == v1::Learner::RULE_NOT_SET) learner.mutable_perceptron();
  for (const char* oneof : {"rule", "prediction"}) {
    const auto* field = learner.GetReflection()->GetOneofFieldDescriptor(
        learner, v1::Learner::descriptor()->FindOneofByName(oneof));
    if (field == nullptr) continue;
    if (field->message_type()->FindFieldByName(setting) != nullptr)
      return learner.GetReflection()->MutableMessage(&learner, field);
  }
  return nullptr;
}

inline bool HasSetting(const std::string& learner, const std::string& setting) {
  v1::Learner settings;
  SetLearner(settings, learner);
  return MessageWith(settings, setting) != nullptr;
}

// Sets a number if the learner has it. Returns whether it has.
inline bool SetNumber(v1::Learner& learner, const std::string& setting, double value) {
  google::protobuf::Message* const message = MessageWith(learner, setting);
  if (message == nullptr) return false;
  message->GetReflection()->SetDouble(message, message->GetDescriptor()->FindFieldByName(setting),
                                      value);
  return true;
}
inline bool SetCount(v1::Learner& learner, const std::string& setting, uint32_t value) {
  google::protobuf::Message* const message = MessageWith(learner, setting);
  if (message == nullptr) return false;
  message->GetReflection()->SetUInt32(message, message->GetDescriptor()->FindFieldByName(setting),
                                      value);
  return true;
}

// The one vector of a model of two labels that it starts from.
inline v1::WeightVector& StartingVector(v1::Learner& learner) {
  v1::Weights& weights = *learner.mutable_starting_weights();
  return weights.vectors_size() > 0 ? *weights.mutable_vectors(0) : *weights.add_vectors();
}

}  // namespace perceptrond::testing
