// Printing: errors that say what to do, and protos as JSON.
#pragma once

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/status.h"

namespace perceptrond::client {

// Tells standard error what failed, why by the server's own reason, which fields are wrong, and
// what to do about it. Returns kExitFailed.
int PrintError(const std::string& doing, const absl::Status& status);

// Wrong usage or unreadable input, on standard error. Returns kExitUsage.
int PrintUsageError(const std::string& message);

// Protobuf's JSON form; on several lines if `pretty`.
std::string ToJson(const google::protobuf::Message& message, bool pretty);

// "12.34%" of a ratio.
std::string Percent(double ratio);
// The shortest decimal that reads back as the same number.
std::string Shortest(float value);
std::string Shortest(double value);

}  // namespace perceptrond::client
