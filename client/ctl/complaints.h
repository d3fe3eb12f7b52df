// Complaints about single examples: the first few are shown, the rest only counted.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "client/ctl/input.h"
#include "client/ctl/output.h"

namespace perceptrond::client {

// Threads: any.
class Complaints {
 public:
  // skip_bad_lines: a line without an example is left out.
  explicit Complaints(bool skip_bad_lines) : skip_bad_lines_(skip_bad_lines) {}

  // What is wrong with the input: INVALID_ARGUMENT is a bad line, which may be left out; anything
  // else ends the run.
  Outcome Take(const absl::Status& status);
  // The server refused the example that Input::tag() named.
  void Refused(const Input& input, uint64_t tag, const absl::Status& status);
  // How many there were, where not all were shown.
  void ReportCounts() const;

  uint64_t skipped() const { return skipped_; }
  uint64_t refused() const { return refused_; }

 private:
  const bool skip_bad_lines_;
  std::atomic<uint64_t> skipped_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace perceptrond::client
