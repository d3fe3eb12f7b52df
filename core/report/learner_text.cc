#include "core/report/learner_text.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "perceptron/v1/learner.pb.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// The field that is set of a oneof; null: none is.
const FieldDescriptor* ChosenField(const v1::Learner& learner, const char* oneof) {
  return learner.GetReflection()->GetOneofFieldDescriptor(
      learner, v1::Learner::descriptor()->FindOneofByName(oneof));
}

std::string DescribeTie(v1::TieRule rule) {
  switch (rule) {
    case v1::TIE_RULE_POSITIVE:
      return "a score of 0 is predicted as +1";
    case v1::TIE_RULE_CORRECT:
      return "a score of 0 is never a mistake";
    default:
      return "a score of 0 is a mistake";
  }
}

std::string DescribeKernel(const v1::Kernel& kernel) {
  switch (kernel.kernel_case()) {
    case v1::Kernel::kPolynomial:
      return absl::StrFormat("kernel (%g + x z)^%d", kernel.polynomial().coef0(),
                             kernel.polynomial().degree());
    case v1::Kernel::kRbf:
      return absl::StrFormat("kernel exp(-%g |x - z|^2)", kernel.rbf().gamma());
    case v1::Kernel::kLinear:
      return "kernel x z";
    case v1::Kernel::KERNEL_NOT_SET:
      break;
  }
  return "a kernel unknown to this version";
}

// ", step size 1, ratchet examples 100".
std::string DescribeSettings(const v1::Learner& learner) {
  std::string text;
  for (const char* oneof : {"rule", "prediction"}) {
    const FieldDescriptor* const chosen = ChosenField(learner, oneof);
    if (chosen == nullptr) continue;
    const Message& message = learner.GetReflection()->GetMessage(learner, chosen);
    std::vector<const FieldDescriptor*> fields;
    message.GetReflection()->ListFields(message, &fields);
    for (const FieldDescriptor* field : fields) {
      const std::string name = absl::StrReplaceAll(field->name(), {{"_", " "}});
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE)
        absl::StrAppendFormat(&text, ", %s %g", name,
                              message.GetReflection()->GetDouble(message, field));
      // 0 of a count means that the rule does without it.
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_UINT32)
        if (const uint32_t count = message.GetReflection()->GetUInt32(message, field); count > 0)
          absl::StrAppendFormat(&text, ", %s %d", name, count);
    }
  }
  if (learner.logistic_regression().steps() == v1::LogisticRegression::STEPS_DECREASING)
    absl::StrAppend(&text, ", decreasing steps");
  if (learner.logistic_regression().steps() == v1::LogisticRegression::STEPS_ADAPTIVE)
    absl::StrAppend(&text, ", adaptive steps");
  if (learner.has_kernel_perceptron())
    absl::StrAppend(&text, ", ", DescribeKernel(learner.kernel_perceptron().kernel()));
  return text;
}

}  // namespace

std::string LearnerName(const v1::Learner& learner) {
  std::string name;
  for (const char* oneof : {"prediction", "rule"}) {
    const FieldDescriptor* const field = ChosenField(learner, oneof);
    if (field == nullptr) continue;
    absl::StrAppend(&name, name.empty() ? "" : "-",
                    absl::StrReplaceAll(field->name(), {{"_", "-"}}));
  }
  return learner.rule_case() == v1::Learner::RULE_NOT_SET ? "a learner unknown to this version"
                                                          : name;
}

std::string FormatLearner(const v1::Learner& learner) {
  std::string text = absl::StrCat(LearnerName(learner), DescribeSettings(learner));
  absl::StrAppendFormat(&text, ", bias input %g",
                        learner.has_bias_input() ? learner.bias_input() : 1);
  if (learner.class_weights_size() == 2)
    absl::StrAppendFormat(&text, ", class weights %g and %g", learner.class_weights(0),
                          learner.class_weights(1));
  if (learner.class_weights_size() > 2) absl::StrAppend(&text, ", with class weights");
  absl::StrAppend(&text, ", ", DescribeTie(learner.tie_rule()));
  if (learner.has_starting_weights()) absl::StrAppend(&text, ", started from given weights");
  return text;
}

}  // namespace perceptrond
