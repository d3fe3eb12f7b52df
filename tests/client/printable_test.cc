#include <gtest/gtest.h>

#include "client/ctl/output.h"

namespace perceptrond::client {
namespace {

TEST(Printable, EscapesWhatATerminalWouldObeyAndWhatIsNoUtf8) {
  const std::pair<std::string, std::string> cases[] = {
      {"", ""},
      {"Grüße, 漢字 🍄\nand\ta tab", "Grüße, 漢字 🍄\nand\ta tab"},
      {"\x1b[31mred\x07\r\x7f", "\\x1b[31mred\\x07\\x0d\\x7f"},
      {std::string("\0", 1), "\\x00"},
      // U+009B is an escape sequence's start in one character; U+00A0 is but a blank.
      {"\xC2\x9B\xC2\xA0", "\\u009b\xC2\xA0"},
      // These would reorder a line, or end it.
      {"a\u202Eb\u202C", "a\\u202eb\\u202c"},
      {"\u2066\u2069\u200E\u200F\u061C", "\\u2066\\u2069\\u200e\\u200f\\u061c"},
      {"\u2028\u2029", "\\u2028\\u2029"},
      // Joins characters, as those of a family in one sign.
      {"\u200D\u2027\u202F", "\u200D\u2027\u202F"},
      // No UTF-8: bytes, cut off, overlong, a surrogate.
      {"\xFF\xFEx\x9B", "\\xff\\xfex\\x9b"},
      {"\xE6\xBC", "\\xe6\\xbc"},
      {"\xC0\xAF", "\\xc0\\xaf"},
      {"\xED\xA0\x80", "\\xed\\xa0\\x80"},
  };
  for (const auto& [text, printed] : cases) EXPECT_EQ(Printable(text), printed);
  EXPECT_EQ(PrintableInLine("a\nstate: frozen\tü\x1b"), "a\\nstate: frozen\\tü\\x1b");
}

TEST(JsonObject, EscapesEveryControlCharacter) {
  EXPECT_EQ(JsonObject().Text("t", "\x1b\x7f\xC2\x9Bü\n").str(),
            "{\"t\":\"\\u001b\\u007f\\u009bü\\n\"}");
}

}  // namespace
}  // namespace perceptrond::client
