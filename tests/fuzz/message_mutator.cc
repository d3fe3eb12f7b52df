#include "tests/fuzz/message_mutator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>

namespace perceptrond::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr int kMaxDepth = 8;
constexpr size_t kMaxTagBytes = 8;

// Of those beyond limits, which take a hundred times as long as others, there are few.
constexpr size_t kCounts[] = {1, 2, 3, 17, 1000, 65'537, 5, 100, 300, 1'000'000};

constexpr uint64_t kWholeNumbers[] = {
    0, 1, 2, 3, 7, 100, 127, 65'536, 65'537, uint64_t{1} << 28, std::numeric_limits<int32_t>::max(),
    uint64_t{1} << 31, std::numeric_limits<uint32_t>::max(), uint64_t{1} << 48, uint64_t{1} << 62,
    std::numeric_limits<int64_t>::max(), uint64_t{1} << 63,
    // -2 and -1.
    std::numeric_limits<uint64_t>::max() - 1, std::numeric_limits<uint64_t>::max()};

constexpr double kNumbers[] = {0,
                               1,
                               -1,
                               0.5,
                               3,
                               -0.0,
                               1e-300,
                               std::numeric_limits<float>::denorm_min(),
                               1e18,
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<double>::max(),
                               std::numeric_limits<double>::infinity(),
                               -std::numeric_limits<double>::infinity(),
                               std::numeric_limits<double>::quiet_NaN()};

// What a float cannot hold is converted without a defined result.
float AsFloat(double value) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::isfinite(value) ? std::clamp(value, -kMost, kMost) : value);
}

}  // namespace

void MessageMutator::Mutate(FuzzInput& input, Message& message) const {
  const size_t bytes = message.ByteSizeLong();
  Mutate(input, message, max_bytes_ - std::min(max_bytes_, bytes), 0);
}

void MessageMutator::Mutate(FuzzInput& input, Message& message, size_t room, int depth) const {
  const auto* const type = message.GetDescriptor();
  if (type->field_count() == 0 || depth == kMaxDepth) return;
  const Field& field = *type->field(static_cast<int>(input.Below(type->field_count())));
  if (field.is_repeated()) return MutateRepeated(input, message, field, room, depth);
  if (field.cpp_type() == Field::CPPTYPE_MESSAGE)
    return MutateMessage(input, message, field, room, depth);
  if (input.Below(8) == 7) return message.GetReflection()->ClearField(&message, &field);
  SetScalar(input, message, field, room, 1);
}

void MessageMutator::MutateMessage(FuzzInput& input, Message& message, const Field& field,
                                   size_t room, int depth) const {
  const Reflection& reflection = *message.GetReflection();
  const size_t choice = input.Below(8);
  if (choice == 7) return reflection.ClearField(&message, &field);
  Message& below = *reflection.MutableMessage(&message, &field);
  // Present alone.
  if (choice == 6) return;
  Mutate(input, below, room, depth + 1);
}

void MessageMutator::MutateRepeated(FuzzInput& input, Message& message, const Field& field,
                                    size_t room, int depth) const {
  const Reflection& reflection = *message.GetReflection();
  const bool of_messages = field.cpp_type() == Field::CPPTYPE_MESSAGE;
  const int size = reflection.FieldSize(message, &field);
  switch (input.Below(4)) {
    case 0:
      // One more, or one of those that there are.
      if (!of_messages) return SetScalar(input, message, field, room, 1);
      return Mutate(input,
                    size > 0 && input.Flag()
                        ? *reflection.MutableRepeatedMessage(
                              &message, &field, static_cast<int>(input.Below(256)) % size)
                        : *reflection.AddMessage(&message, &field),
                    room, depth + 1);
    case 1: {
      // As many copies of the last one, or of an empty one.
      size_t count = input.OneOf(kCounts);
      if (!of_messages) return SetScalar(input, message, field, room, count);
      if (size == 0) reflection.AddMessage(&message, &field);
      const std::unique_ptr<Message> last(
          reflection.GetRepeatedMessage(message, &field, std::max(size, 1) - 1).New());
      last->CopyFrom(reflection.GetRepeatedMessage(message, &field, std::max(size, 1) - 1));
      count = std::min(count, room / (last->ByteSizeLong() + 2));
      for (size_t i = 1; i < count; ++i) reflection.AddMessage(&message, &field)->CopyFrom(*last);
      return;
    }
    case 2:
      if (size > 0) reflection.RemoveLast(&message, &field);
      return;
    default:
      return reflection.ClearField(&message, &field);
  }
}

void MessageMutator::SetScalar(FuzzInput& input, Message& message, const Field& field, size_t room,
                               size_t count) const {
  const Reflection& reflection = *message.GetReflection();
  const bool adds = field.is_repeated();
  // A field is set by `set` or added to by `add`, with a value of so many bytes.
  const auto write = [&](auto set, auto add, auto value, size_t bytes) {
    if (!adds) return (reflection.*set)(&message, &field, value);
    const size_t most = std::min(count, room / (bytes + 1));
    for (size_t i = 0; i < most; ++i) (reflection.*add)(&message, &field, value);
  };
  switch (field.cpp_type()) {
    case Field::CPPTYPE_INT32:
      return write(&Reflection::SetInt32, &Reflection::AddInt32,
                   static_cast<int32_t>(input.OneOf(kWholeNumbers)), kMaxTagBytes);
    case Field::CPPTYPE_INT64:
      return write(&Reflection::SetInt64, &Reflection::AddInt64,
                   static_cast<int64_t>(input.OneOf(kWholeNumbers)), kMaxTagBytes);
    case Field::CPPTYPE_UINT32:
      return write(&Reflection::SetUInt32, &Reflection::AddUInt32,
                   static_cast<uint32_t>(input.OneOf(kWholeNumbers)), kMaxTagBytes);
    case Field::CPPTYPE_UINT64:
      return write(&Reflection::SetUInt64, &Reflection::AddUInt64, input.OneOf(kWholeNumbers),
                   kMaxTagBytes);
    case Field::CPPTYPE_DOUBLE:
      return write(&Reflection::SetDouble, &Reflection::AddDouble, input.OneOf(kNumbers),
                   sizeof(double));
    case Field::CPPTYPE_FLOAT:
      return write(&Reflection::SetFloat, &Reflection::AddFloat, AsFloat(input.OneOf(kNumbers)),
                   sizeof(float));
    case Field::CPPTYPE_BOOL:
      return write(&Reflection::SetBool, &Reflection::AddBool, input.Flag(), 1);
    case Field::CPPTYPE_ENUM:
      // Also values that it does not have.
      return write(&Reflection::SetEnumValue, &Reflection::AddEnumValue,
                   static_cast<int>(input.Below(12)) - 1, 1);
    case Field::CPPTYPE_STRING: {
      const bool is_file = field.type() == Field::TYPE_BYTES && make_bytes_ != nullptr;
      const std::string value =
          is_file ? make_bytes_(input) : strings_[input.Below(256) % strings_.size()];
      if (!adds) return reflection.SetString(&message, &field, value);
      const size_t most = std::min(count, room / (value.size() + 2));
      for (size_t i = 0; i < most; ++i) reflection.AddString(&message, &field, value);
      return;
    }
    case Field::CPPTYPE_MESSAGE:
      return;
  }
}

}  // namespace perceptrond::testing
