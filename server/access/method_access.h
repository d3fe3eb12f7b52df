// What each method of the API needs: a role for the models that its requests name, or a right.
#pragma once

#include <google/protobuf/descriptor.h>
#include <grpcpp/support/byte_buffer.h>

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "server/access/rules.h"

namespace perceptrond {

// A field within a message: the numbers of the fields that lead to it.
using FieldPath = std::vector<int>;

// The models that a message names, as full names, and whether it asks for more than reading.
struct NamedModels {
  // Empty if the message does not say.
  std::string model;
  // Another model that the message refers to; empty if it does not.
  std::string other_model;
  bool asks_for_more = false;
};

// Thread contract: constant after construction.
class MethodAccess {
 public:
  // Aborts the process if the method is not in the table of method_access.cc, or the table names a
  // field that the method's request does not have: a method without an entry is not served.
  explicit MethodAccess(const google::protobuf::MethodDescriptor& method);

  // "/perceptron.v1.ModelService/GetModel".
  const std::string& path() const { return path_; }
  bool is_stream() const { return is_stream_; }
  // Present if it needs a right and no role.
  std::optional<Right> right() const { return right_; }
  // For the model that a request names. A method that names none needs the role for some model, or
  // for every one.
  Role role() const { return role_; }
  bool for_every_model() const { return for_every_model_; }
  // True if its requests name a model.
  bool names_model() const { return !model_.empty(); }
  // For a message that asks for more.
  Role more_role() const { return more_role_; }
  // Whether a call must be recorded: one that needs the role admin.
  bool is_administrative() const { return !right_.has_value() && role_ == Role::kAdmin; }
  // Whether its requests hold examples.
  bool takes_examples() const { return takes_examples_; }
  // Whether some of its calls are administrative.
  bool may_be_administrative() const { return is_administrative() || !more_.empty(); }

  // Whether an alias may stand in the place of the model; and, of a stream, whether each message asks
  // for it again.
  bool takes_alias() const { return takes_alias_; }
  bool follows_alias() const { return follows_alias_; }
  // The role for the other model that a request names.
  Role other_role() const { return other_role_; }
  // Sets the model that a message names, a full name, as if it had named that: of a field that occurs
  // twice the last one counts. The method takes aliases.
  void SetModel(const std::string& model, grpc::ByteBuffer& message) const;

  // Reads the names out of a message as Protobuf's parser would, without parsing the rest. False if
  // the message is malformed. O(fields).
  bool Read(grpc::ByteBuffer& message, NamedModels& named) const;

 private:
  std::string path_;
  bool is_stream_ = false;
  bool takes_examples_ = false;
  std::optional<Right> right_;
  Role role_ = Role::kAdmin;
  Role more_role_ = Role::kAdmin;
  Role other_role_ = Role::kRead;
  bool takes_alias_ = false;
  bool follows_alias_ = false;
  bool for_every_model_ = false;
  // Whether model_ is an id, without "models/".
  bool is_id_ = false;
  FieldPath model_;
  FieldPath other_;
  // Of a bool.
  FieldPath more_;
};

}  // namespace perceptrond
