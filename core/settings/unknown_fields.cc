#include "core/settings/unknown_fields.h"

#include <google/protobuf/descriptor.h>

#include <vector>

#include "absl/strings/str_cat.h"

namespace perceptrond {

std::optional<std::string> FindUnknownField(const google::protobuf::Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!reflection.GetUnknownFields(message).empty()) return "";
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const auto* const field : fields) {
    if (field->cpp_type() != google::protobuf::FieldDescriptor::CPPTYPE_MESSAGE) continue;
    const int repeated = field->is_repeated() ? reflection.FieldSize(message, field) : 0;
    for (int i = 0; i < repeated; ++i) {
      const auto below = FindUnknownField(reflection.GetRepeatedMessage(message, field, i));
      if (below.has_value()) return absl::StrCat(".", field->name(), "[", i, "]", *below);
    }
    if (field->is_repeated()) continue;
    const auto below = FindUnknownField(reflection.GetMessage(message, field));
    if (below.has_value()) return absl::StrCat(".", field->name(), *below);
  }
  return std::nullopt;
}

}  // namespace perceptrond
