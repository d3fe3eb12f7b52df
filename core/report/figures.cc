#include "core/report/figures.h"

#include <google/protobuf/timestamp.pb.h>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

namespace pb = ::google::protobuf;
namespace v1 = ::perceptron::v1;

bool IsTimestamp(const pb::FieldDescriptor& field) {
  return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE &&
         field.message_type() == pb::Timestamp::descriptor();
}

bool HoldsFigures(const pb::FieldDescriptor& field) {
  return field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE && !field.is_repeated() &&
         !IsTimestamp(field);
}

// Appends the figures of `type`, which lie within `parent`.
void Append(const pb::Descriptor& type, const Figure& parent, std::vector<Figure>& figures) {
  for (int i = 0; i < type.field_count(); ++i) {
    const pb::FieldDescriptor& field = *type.field(i);
    if (!field.options().HasExtension(v1::figure)) continue;
    const v1::Figure& options = field.options().GetExtension(v1::figure);
    Figure figure = parent;
    figure.path.push_back(&field);
    figure.options = &options;
    figure.title =
        parent.title.empty() ? options.title() : absl::StrCat(parent.title, ": ", options.title());
    absl::StrAppend(&figure.metric, options.metric());
    if (parent.path.empty()) {
      figure.line = options.line();
      figure.line_key = options.line().empty() ? field.name() : options.line();
    }
    if (HoldsFigures(field)) {
      Append(*field.message_type(), figure, figures);
    } else {
      figures.push_back(std::move(figure));
    }
  }
}

double Seconds(const pb::Message& time) {
  const auto& timestamp = static_cast<const pb::Timestamp&>(time);
  return static_cast<double>(timestamp.seconds()) + 1e-9 * timestamp.nanos();
}

std::optional<double> NumberIn(const pb::Message& holder, const pb::FieldDescriptor& field) {
  const pb::Reflection& reflection = *holder.GetReflection();
  if (field.is_repeated()) return std::nullopt;
  if (field.has_presence() && !reflection.HasField(holder, &field)) return std::nullopt;
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return reflection.GetDouble(holder, &field);
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return reflection.GetFloat(holder, &field);
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return static_cast<double>(reflection.GetUInt64(holder, &field));
    case pb::FieldDescriptor::CPPTYPE_INT64:
      return static_cast<double>(reflection.GetInt64(holder, &field));
    case pb::FieldDescriptor::CPPTYPE_UINT32:
      return reflection.GetUInt32(holder, &field);
    case pb::FieldDescriptor::CPPTYPE_INT32:
      return reflection.GetInt32(holder, &field);
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return reflection.GetBool(holder, &field) ? 1 : 0;
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return reflection.GetEnumValue(holder, &field);
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      if (IsTimestamp(field)) return Seconds(reflection.GetMessage(holder, &field));
      return std::nullopt;
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::vector<Figure> ListFigures(const pb::Descriptor& type) {
  std::vector<Figure> figures;
  Append(type, Figure(), figures);
  return figures;
}

const pb::Message* FindHolder(const pb::Message& report, const Figure& figure) {
  const pb::Message* holder = &report;
  for (size_t i = 0; i + 1 < figure.path.size(); ++i) {
    const pb::Reflection& reflection = *holder->GetReflection();
    if (!reflection.HasField(*holder, figure.path[i])) return nullptr;
    holder = &reflection.GetMessage(*holder, figure.path[i]);
  }
  return holder;
}

std::optional<double> ValueOf(const pb::Message& report, const Figure& figure) {
  const pb::Message* const holder = FindHolder(report, figure);
  if (holder == nullptr) return std::nullopt;
  const std::optional<double> value = NumberIn(*holder, figure.field());
  const bool unspecified =
      figure.field().cpp_type() == pb::FieldDescriptor::CPPTYPE_ENUM && value == 0.0;
  return unspecified ? std::nullopt : value;
}

std::map<std::string, double> EntriesOf(const pb::Message& report, const Figure& figure) {
  std::map<std::string, double> entries;
  const pb::Message* const holder = FindHolder(report, figure);
  if (holder == nullptr || !figure.field().is_map()) return entries;
  const pb::Reflection& reflection = *holder->GetReflection();
  const pb::Descriptor& entry_type = *figure.field().message_type();
  const int size = reflection.FieldSize(*holder, &figure.field());
  for (int i = 0; i < size; ++i) {
    const pb::Message& entry = reflection.GetRepeatedMessage(*holder, &figure.field(), i);
    const std::string key = entry.GetReflection()->GetString(entry, entry_type.map_key());
    entries[key] = NumberIn(entry, *entry_type.map_value()).value_or(0);
  }
  return entries;
}

const v1::ValueText& TextOf(const pb::EnumValueDescriptor& value) {
  return value.options().GetExtension(v1::value_text);
}

}  // namespace perceptrond
