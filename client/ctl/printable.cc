#include "client/ctl/printable.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/vector/name.h"

namespace perceptrond::client {
namespace {

bool IsPlain(char c) { return (c >= 0x20 && c < 0x7F) || c == '\n' || c == '\t'; }

// C1 is U+0080 to U+009F: in UTF-8 a C2 before the byte itself.
bool IsC1(std::string_view character) {
  return character.size() == 2 && character[0] == '\xC2' &&
         static_cast<unsigned char>(character[1]) < 0xA0;
}

}  // namespace

std::string Printable(std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) return std::string(text);
  std::string out;
  while (!text.empty()) {
    const auto byte = static_cast<unsigned char>(text.front());
    const size_t length = Utf8Length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(1, length));
    if (IsC1(character)) {
      absl::StrAppendFormat(&out, "\\u%04x", static_cast<unsigned char>(character[1]));
    } else if (length > 1 || IsPlain(text.front())) {
      out.append(character);
    } else {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    }
    text.remove_prefix(character.size());
  }
  return out;
}

std::string PrintableInLine(std::string_view text) {
  return absl::StrReplaceAll(Printable(text), {{"\n", "\\n"}, {"\t", "\\t"}});
}

}  // namespace perceptrond::client
