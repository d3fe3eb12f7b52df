#include "deploy/manual/roff.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace perceptrond::manual {
namespace {

// troff replaces these characters by typographic ones, which a shell does not accept.
std::string Escaped(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    default:
      return std::string(1, c);
  }
}

std::string EscapedAll(absl::string_view text) {
  std::string escaped;
  for (const char c : text) escaped += Escaped(c);
  return escaped;
}

// The length of the flag ("--passes") that text[from...] begins with, or 0.
size_t FlagLength(absl::string_view text, size_t from) {
  const bool inside = from > 0 && (absl::ascii_isalnum(text[from - 1]) || text[from - 1] == '-');
  if (inside || text.substr(from, 2) != "--") return 0;
  size_t end = from + 2;
  while (end < text.size() &&
         (absl::ascii_islower(text[end]) || absl::ascii_isdigit(text[end]) || text[end] == '-'))
    ++end;
  return end > from + 2 ? end - from : 0;
}

bool EndsSentence(absl::string_view text, size_t at) {
  return text[at] == '.' && at + 2 < text.size() && text[at + 1] == ' ' &&
         absl::ascii_isupper(text[at + 2]);
}

// Escapes a line that would start a macro.
std::string Guarded(std::string line) {
  return !line.empty() && line.front() == '.' ? absl::StrCat("\\&", line) : line;
}

}  // namespace

std::string Literal(absl::string_view line) { return Guarded(EscapedAll(line)); }

std::string Bold(absl::string_view text) { return absl::StrCat("\\fB", EscapedAll(text), "\\fR"); }

std::string Italic(absl::string_view text) {
  return absl::StrCat("\\fI", EscapedAll(text), "\\fR");
}

std::string Prose(absl::string_view text) {
  std::string prose;
  for (size_t i = 0; i < text.size(); ++i) {
    if (const size_t length = FlagLength(text, i); length > 0) {
      prose += Bold(text.substr(i, length));
      i += length - 1;
    } else if (EndsSentence(text, i)) {
      prose += ".\n";
      ++i;
    } else {
      prose += Escaped(text[i]);
    }
  }
  return Guarded(std::move(prose));
}

}  // namespace perceptrond::manual
