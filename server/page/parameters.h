// The parameters of a request's query, read one by one and checked together.
#pragma once

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/page/http.h"

namespace perceptrond {

// Of a parameter that comes several times, the first is read. An absent or empty one has its default.
//
// Example:
//   Parameters parameters(request);
//   query.page = parameters.Integer("page", query.page);
//   if (absl::Status status = parameters.Check(); !status.ok()) return status;
class Parameters {
 public:
  // The request must outlive this object.
  explicit Parameters(const HttpRequest& request) : request_(request) {}

  std::string Text(absl::string_view name);
  // "true" or "false".
  bool Flag(absl::string_view name);
  // A finite number, at least 0.
  double Number(absl::string_view name, double default_value);
  // Limited to the range of uint64.
  uint64_t Integer(absl::string_view name, uint64_t default_value);

  // INVALID_ARGUMENT (INVALID_FIELD) for the first malformed value, or a parameter that was not read.
  absl::Status Check() const;

 private:
  void Refuse(absl::string_view name, absl::string_view description);

  const HttpRequest& request_;
  absl::flat_hash_set<std::string> known_;
  absl::Status status_;
};

}  // namespace perceptrond
