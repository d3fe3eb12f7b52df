// Saying things: results, complaints, errors that say what to do, and protos as JSON.
#pragma once

#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/report/format.h"

namespace perceptrond::client {

// To standard output, as terminal.h has it. Threads: any.
void Print(std::string_view text);
// A line on standard error, after "perceptronctl: ". Threads: any.
void Complain(std::string_view line);

// How a command ended: its exit code and, if that was an error, what is to be said last.
struct Outcome {
  int code = 0;
  std::string error;

  bool ok() const { return code == 0; }
  // Says the error, if there is one, and returns the code.
  int Report() const;
};

// What failed, why by the server's own reason, which fields are wrong, and what to do about it.
Outcome Failed(std::string_view doing, const absl::Status& status);
// Wrong usage or unreadable input.
Outcome WrongUsage(std::string_view message);

int PrintError(std::string_view doing, const absl::Status& status);
int PrintUsageError(std::string_view message);

// Protobuf's JSON form, its maps sorted; on several lines if `pretty`. Zeros, false and empty lists
// are there; `optional` fields and messages that are absent are not.
std::string ToJson(const google::protobuf::Message& message, bool pretty);

// The shortest decimal that reads back as the same number.
std::string Shortest(float value);
std::string Shortest(double value);

}  // namespace perceptrond::client
