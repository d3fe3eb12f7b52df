// Any bytes as a file of examples: read or refused with words, never a crash, and what is read is
// well formed. The first byte chooses the format and its options.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "client/batch_builder.h"
#include "client/format/format.h"

namespace {

using perceptrond::client::FormatKind;
using perceptrond::client::FormatOptions;

FormatOptions Options(uint8_t choice) {
  FormatOptions options;
  options.kind = static_cast<FormatKind>(choice % 5);
  options.require_label = (choice & 0x20) != 0;
  options.index_base = (choice & 0x40) != 0 ? 1 : 0;
  options.header = (choice & 0x40) != 0;
  options.dense = (choice & 0x80) != 0;
  if (options.kind == FormatKind::kCsv) options.label_column = "1";
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto format = perceptrond::client::MakeFormat(Options(data[0]));
  if (!format.ok()) return 0;
  (*format)->StartFile();
  perceptrond::client::Row row;
  perceptrond::client::BatchBuilder batch;
  std::string_view rest(reinterpret_cast<const char*>(data + 1), size - 1);
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    const auto parsed = (*format)->Parse(line, &row);
    if (!parsed.ok()) {
      if (parsed.status().message().empty()) std::abort();
      continue;
    }
    if (*parsed == perceptrond::client::LineKind::kNothing) continue;
    if (!row.values.empty() && row.values.size() != row.feature_count()) std::abort();
    (void)batch.Add(row);
  }
  return 0;
}
