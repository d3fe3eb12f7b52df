#include "core/words/figures.h"

#include "absl/strings/str_format.h"

namespace perceptrond {

std::string Percent(double ratio) { return absl::StrFormat("%.2f%%", 100 * ratio); }

std::string Grouped(uint64_t count) {
  std::string text = std::to_string(count);
  for (size_t i = text.size(); i > 3; i -= 3) text.insert(i - 3, ",");
  return text;
}

}  // namespace perceptrond
