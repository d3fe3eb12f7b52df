// Changes of a message of any type, as a fuzzer's input chooses them: numbers at the bounds of their
// types, fields left out, counts far beyond limits, names and tokens that answers had.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/fuzz_input.h"

namespace perceptrond::testing {

class MessageMutator {
 public:
  // Makes the bytes of a field that is a file.
  using MakeBytes = std::function<std::string(FuzzInput&)>;

  // `strings`: what a string may be, chosen by the input; they may be added to. A message grows to
  // about `max_bytes` at most.
  MessageMutator(const std::vector<std::string>& strings, size_t max_bytes)
      : strings_(strings), max_bytes_(max_bytes) {}
  void SetMakeBytes(MakeBytes make_bytes) { make_bytes_ = std::move(make_bytes); }

  // Makes one change, to a field of the message or below.
  void Mutate(FuzzInput& input, google::protobuf::Message& message) const;

 private:
  using Field = google::protobuf::FieldDescriptor;

  void Mutate(FuzzInput& input, google::protobuf::Message& message, size_t room, int depth) const;
  void MutateMessage(FuzzInput& input, google::protobuf::Message& message, const Field& field,
                     size_t room, int depth) const;
  void MutateRepeated(FuzzInput& input, google::protobuf::Message& message, const Field& field,
                      size_t room, int depth) const;
  // Sets the field, or adds to it, `count` times the same value.
  void SetScalar(FuzzInput& input, google::protobuf::Message& message, const Field& field,
                 size_t room, size_t count) const;

  const std::vector<std::string>& strings_;
  const size_t max_bytes_;
  MakeBytes make_bytes_;
};

}  // namespace perceptrond::testing
