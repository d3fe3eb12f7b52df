#include "client/ctl/bench/options.h"

#include <unistd.h>
#include <algorithm>

#include "absl/strings/str_format.h"
#include "client/learn_stream.h"

namespace perceptrond::client {
namespace {

// Fraction of this machine's memory; the server needs some too.
constexpr double kShare = 0.25;

double MachineBytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Bytes of the messages in flight of one stream with a full window.
double BytesInFlight(const LoadOptions& load, double row_bytes) {
  const double message = row_bytes * static_cast<double>(load.rows_per_message);
  if (load.work == LoadOptions::Work::kCall) return message;
  const LearnOptions stream;
  const double sent =
      std::max(row_bytes, std::min(message, static_cast<double>(stream.bytes_per_message)));
  return std::max(sent, std::min(sent * static_cast<double>(load.window),
                                 static_cast<double>(stream.window_bytes)));
}

std::string Bytes(double bytes) {
  constexpr double kGiB = 1 << 30;
  return bytes < kGiB ? absl::StrFormat("%.0f MiB", bytes / (1 << 20))
                      : absl::StrFormat("%.1f GiB", bytes / kGiB);
}

double BytesOfLoads(const LoadOptions& load, const SyntheticRowsOptions& rows, size_t streams) {
  const auto row_bytes = static_cast<double>(SyntheticRows::BytesOfOne(rows));
  const double made = row_bytes * static_cast<double>(SyntheticRows::Count(rows));
  return (made + BytesInFlight(load, row_bytes)) * static_cast<double>(streams);
}

}  // namespace

std::string CheckMemory(const LoadOptions& load, const SyntheticRowsOptions& rows, size_t streams) {
  const double bytes = BytesOfLoads(load, rows, streams);
  const double machine = MachineBytes();
  if (bytes <= kShare * machine) return "";
  return absl::StrFormat(
      "the examples and the messages in flight need %s, more than a quarter of this machine's "
      "memory (%s): use fewer --streams, a smaller --window or --batch, or fewer --features",
      Bytes(bytes), Bytes(kShare * machine));
}

}  // namespace perceptrond::client
