#include "client/ctl/output.h"

#include <gtest/gtest.h>

namespace perceptrond::client {
namespace {

TEST(Printable, LeavesValidUtf8Alone) {
  for (const char* text : {"", "ham & spam", "Grüße, 漢字 🍄", "two\nlines\tand a tab"}) {
    EXPECT_EQ(Printable(text), text);
  }
}

TEST(Printable, EscapesWhatATerminalWouldObey) {
  EXPECT_EQ(Printable("\x1b[31mred\x07\r\x7f"), "\\x1b[31mred\\x07\\x0d\\x7f");
  EXPECT_EQ(Printable(std::string("\0", 1)), "\\x00");
  // U+009B is an escape sequence's start in one character; U+00A0 is but a blank.
  EXPECT_EQ(Printable("\xC2\x9B\xC2\xA0"), "\\u009b\xC2\xA0");
}

TEST(Printable, EscapesWhatWouldReorderALineOrEndIt) {
  EXPECT_EQ(Printable("a\u202Eb\u202C"), "a\\u202eb\\u202c");
  EXPECT_EQ(Printable("\u2066\u2069\u200E\u200F\u061C"), "\\u2066\\u2069\\u200e\\u200f\\u061c");
  EXPECT_EQ(Printable("\u2028\u2029"), "\\u2028\\u2029");
  // Joins characters, as those of a family in one sign.
  EXPECT_EQ(Printable("\u200D\u2027\u202F"), "\u200D\u2027\u202F");
}

TEST(Printable, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(Printable("\xFF\xFEx"), "\\xff\\xfex");
  EXPECT_EQ(Printable("\x9B"), "\\x9b");
  // Cut off, overlong, a surrogate.
  EXPECT_EQ(Printable("\xE6\xBC"), "\\xe6\\xbc");
  EXPECT_EQ(Printable("\xC0\xAF"), "\\xc0\\xaf");
  EXPECT_EQ(Printable("\xED\xA0\x80"), "\\xed\\xa0\\x80");
}

TEST(Printable, KeepsATextInItsLine) {
  EXPECT_EQ(PrintableInLine("a\nstate: frozen\tü\x1b"), "a\\nstate: frozen\\tü\\x1b");
}

TEST(JsonObject, EscapesEveryControlCharacter) {
  EXPECT_EQ(JsonObject().Text("t", "\x1b\x7f\xC2\x9Bü\n").str(),
            "{\"t\":\"\\u001b\\u007f\\u009bü\\n\"}");
}

}  // namespace
}  // namespace perceptrond::client
