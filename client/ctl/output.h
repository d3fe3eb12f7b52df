// Output of perceptronctl: results, error messages with hints, JSON, and escaping for terminals.
#pragma once

#include <google/protobuf/message.h>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/report/format.h"

namespace perceptrond::client {

// Writes to standard output through Write() of terminal.h. Threads: any.
void Print(std::string_view text);
// The same for what a command has done, which --quiet leaves out.
void PrintDone(std::string_view text);
// Writes "perceptronctl: LINE" to standard error. Threads: any.
void PrintStderr(std::string_view line);
// The same for what is no error, which --quiet leaves out. Threads: any.
void PrintNotice(std::string_view line);

// How a command ended: its exit code and, on failure, the error message. A plain value.
struct Outcome {
  int code = 0;
  std::string error;

  bool ok() const { return code == 0; }
  // Prints the error message, if any, and returns the code.
  int Report() const;
};

// The outcome of a failed call: what failed, the server's message, code and reason, the invalid
// fields, and a hint. `doing` is the prefix of the message, such as "learn spam".
Outcome Failed(std::string_view doing, const absl::Status& status);
// Sets the variable of the environment that names the proxy through which the server is called, for hints of Failed();
// empty: none does.
void NameProxy(std::string variable);
// Invalid usage or unreadable input.
Outcome UsageError(std::string_view message);

int PrintError(std::string_view doing, const absl::Status& status);
int PrintUsageError(std::string_view message);

// The message in protobuf's JSON form with sorted map keys, on several lines if `pretty`. Zeros,
// false and empty lists are printed; absent `optional` fields and messages are not.
std::string ToJson(const google::protobuf::Message& message, bool pretty);

// The shortest decimal that parses back to the same number.
std::string Shortest(float value);
std::string Shortest(double value);

// Text from files, servers and command lines, made safe for a terminal: control characters (C0,
// DEL, C1, and those that reorder text or separate lines) become \x1b or \u202e, bytes that are
// not UTF-8 become \xff; newlines and tabs stay. Threads: any.
std::string Printable(std::string_view text);

// The same for text that must stay in its line and column: newlines and tabs are escaped too.
std::string PrintableInLine(std::string_view text);

// Threads: one at a time.
class JsonObject {
 public:
  JsonObject& Text(std::string_view key, std::string_view value);
  // Written as a string, as protobuf writes 64-bit integers: many parsers read numbers as doubles.
  JsonObject& Integer(std::string_view key, int64_t value);
  // Omitted if not finite, which JSON cannot represent.
  JsonObject& Number(std::string_view key, double value);
  JsonObject& Number(std::string_view key, float value);
  JsonObject& Bool(std::string_view key, bool value);
  // `json` is inserted unchanged.
  JsonObject& Raw(std::string_view key, std::string_view json);
  std::string str() const { return text_ + "}"; }

 private:
  void Key(std::string_view key);
  std::string text_ = "{";
};

// The JSON array "[a,b,c]" of JSON values.
std::string JsonArray(const std::vector<std::string>& values);

}  // namespace perceptrond::client
