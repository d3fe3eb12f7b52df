// `create --dimension-from`: the dimension of a dense model, read from files of examples.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "client/ctl/input.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace perceptrond::client {

// The flag and those that say how the files are to be read. Must outlive the parsing of `command`.
class DimensionFrom {
 public:
  CLI::Option* AddTo(CLI::App* command);
  bool is_given() const { return !input_.files.empty(); }
  // The smallest dimension that all examples of the files fit. Reads them whole, in constant
  // memory. INVALID_ARGUMENT: incomplete options, or a malformed line. FAILED_PRECONDITION: features
  // with names, or none. CANCELLED: Ctrl-C. Others: a file cannot be read.
  absl::StatusOr<uint32_t> Read() const;

 private:
  InputOptions input_;
};

}  // namespace perceptrond::client
