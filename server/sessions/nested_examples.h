// Nested examples of a request, read from its bytes without an Example object for each: Protobuf
// allocates, copies and frees a string for every name, which costs several times what learning
// does. Accepts and reads exactly what Protobuf's parser does (tests/server/sessions), and besides texts
// that are not UTF-8.
#pragma once

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/rpc/message.h"
#include "server/rpc/message_work.h"

namespace perceptrond {

// Numbers of four bytes, as a packed field has them on the wire: little-endian, not aligned.
template <typename T>
class WireArray {
 public:
  WireArray() = default;
  explicit WireArray(absl::string_view bytes) : bytes_(bytes) {}

  bool empty() const { return bytes_.empty(); }
  size_t size() const { return bytes_.size() / sizeof(T); }
  void AppendTo(std::vector<T>& numbers) const {
    if (empty()) return;
    const size_t begin = numbers.size();
    numbers.resize(begin + size());
    std::memcpy(&numbers[begin], bytes_.data(), bytes_.size());
  }

 private:
  absl::string_view bytes_;
};

// perceptron.v1.Example. Fields of other features or another target are empty.
struct NestedExample {
  enum class FeaturesCase : uint8_t { kNone, kDense, kSparse, kNamed, kText, kPredictionId };
  enum class TargetCase : uint8_t { kNone, kLabel, kLabelName };

  FeaturesCase features = FeaturesCase::kNone;
  TargetCase target = TargetCase::kNone;
  bool has_weight = false;
  float weight = 0;
  int32_t label = 0;
  absl::string_view label_name;
  WireArray<uint32_t> indices;
  WireArray<float> values;
  // Not necessarily UTF-8.
  absl::string_view text;
  absl::string_view prediction_id;
  // The example as it came.
  absl::string_view bytes;
  // Where its names are in NestedExamples::names().
  size_t names_begin = 0;
  size_t names_end = 0;
};

// The examples of one request. Reuses its memory from one request to the next. May be moved, but
// not copied, since it holds views of its own bytes. Not thread-safe.
class NestedExamples {
 public:
  // The most examples that a request may have.
  static constexpr size_t kMaxExamples = 1 << 16;

  NestedExamples() = default;
  NestedExamples(NestedExamples&&) = default;
  NestedExamples& operator=(NestedExamples&&) = default;

  // Removes all examples.
  void Clear();
  // Reads a request's examples, its field of this number, and copies the request's other fields to
  // `rest`. Reading examples ends with the first one too many, which CheckExampleCount refuses.
  // Returns false if the framing of the request, or of an example that is read, is malformed; the
  // examples are then unusable. O(the request).
  bool Read(const grpc::ByteBuffer& request, int field_number, std::string& rest);

  bool empty() const { return examples_.empty(); }
  size_t size() const { return examples_.size(); }
  const NestedExample& operator[](size_t i) const { return examples_[i]; }
  auto begin() const { return examples_.begin(); }
  auto end() const { return examples_.end(); }
  std::span<const absl::string_view> names(const NestedExample& example) const {
    return std::span(names_).subspan(example.names_begin, example.names_end - example.names_begin);
  }

 private:
  // The request.
  std::vector<char> bytes_;
  // Arrays that the request has in several pieces, joined.
  std::deque<std::string> joined_;
  std::vector<absl::string_view> names_;
  std::vector<NestedExample> examples_;
};

// INVALID_ARGUMENT (TOO_MANY_EXAMPLES), naming `field`, if this is more than
// NestedExamples::kMaxExamples.
absl::Status CheckExampleCount(absl::string_view field, size_t examples);

// A request of a method that takes examples: its examples in columns are in `message`, its nested
// ones in `examples` alone.
template <typename Message>
struct RequestWithExamples {
  Message message;
  NestedExamples examples;

  // What RequestCanRunInline needs.
  const std::string& model() const { return message.model(); }
};

// Whether a message has a field of this number that is a string or a message; true also if the
// message is malformed. O(fields).
bool MayHaveField(grpc::ByteBuffer& message, int field_number);

// As for other messages (server/rpc/message_work.h). An example of two bytes becomes a NestedExample, and a name of two a
// view.
template <typename Message>
size_t ParsedBytesOf(grpc::ByteBuffer& bytes, const RequestWithExamples<Message>& request) {
  return ParsedBytes(
      *request.message.GetDescriptor(), bytes,
      {Message::kExamplesFieldNumber, sizeof(NestedExample), sizeof(absl::string_view) / 2});
}

// As for other messages (server/rpc/message.h).
template <typename Message>
absl::Status ParseMessage(grpc::ByteBuffer& bytes, size_t max_bytes,
                          RequestWithExamples<Message>& request) {
  constexpr int kField = Message::kExamplesFieldNumber;
  request.examples.Clear();
  if (bytes.Length() > max_bytes || !MayHaveField(bytes, kField))
    return ParseMessage(bytes, max_bytes, request.message);
  std::string rest;
  const bool is_read =
      request.examples.Read(bytes, kField, rest) && request.message.ParseFromString(rest);
  bytes.Clear();
  return is_read ? absl::OkStatus() : MalformedMessage(request.message.GetTypeName());
}

}  // namespace perceptrond
