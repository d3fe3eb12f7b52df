#include "server/rpc/slow_calls.h"

#include <cmath>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "server/config/logging.h"

namespace perceptrond {
namespace {

constexpr const char* kPartFields[] = {"receive_ms", "queue_ms",  "parse_ms",
                                       "load_ms",    "lock_ms",   "work_ms",
                                       "forward_ms", "commit_ms", "write_ms"};
static_assert(std::size(kPartFields) == kParts);

// To a microsecond, so that the line shows no digits that mean nothing.
double Rounded(double milliseconds) { return std::round(milliseconds * 1000) / 1000; }

// Paths and names are the client's: what it sent must not reorder the line on a terminal.
std::string Printable(absl::string_view text) {
  return absl::CHexEscape(text.substr(0, CallTiming::kMaxNameBytes));
}

}  // namespace

void SlowCallLog::Write(const SlowCall& call) {
  uint64_t left_out = 0;
  if (!TakeLine(left_out)) return;
  const std::string method = Printable(call.method);
  const std::string model = Printable(call.model);
  const std::string code = absl::StatusCodeToString(static_cast<absl::StatusCode>(call.code));
  std::vector<LogField> fields = {{"method", method}};
  if (!model.empty()) fields.emplace_back("model", model);
  fields.emplace_back("peer", call.peer);
  if (!call.principal.empty()) fields.emplace_back("principal", call.principal);
  if (!call.trace.empty()) {
    fields.emplace_back("trace_id", call.trace.trace_id);
    fields.emplace_back("span_id", call.trace.span_id);
  }
  if (call.message.has_value()) fields.emplace_back("message", *call.message);
  fields.emplace_back("bytes", call.bytes);
  fields.emplace_back("rows", call.rows);
  fields.emplace_back("status", code);
  fields.emplace_back("total_ms", Rounded(call.total));
  for (size_t part = 0; part < kParts; ++part) {
    // One server has none.
    if (part == static_cast<size_t>(Part::kForward) && call.parts[part] == 0) continue;
    fields.emplace_back(kPartFields[part], Rounded(call.parts[part]));
  }
  if (left_out > 0) fields.emplace_back("left_out", left_out);
  LogAll(LogLevel::kWarning, "slow call", fields);
}

bool SlowCallLog::TakeLine(uint64_t& left_out) {
  const SteadyClock::time_point now = SteadyClock::now();
  MutexLock lock(&mutex_);
  if (now - second_ >= std::chrono::seconds(1)) {
    second_ = now;
    lines_ = 0;
  }
  if (lines_ == kMaxLinesPerSecond) {
    ++left_out_;
    return false;
  }
  ++lines_;
  left_out = std::exchange(left_out_, 0);
  return true;
}

}  // namespace perceptrond
