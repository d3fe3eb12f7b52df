// Text from files, servers and command lines, made safe to show on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace perceptrond::client {

// Valid UTF-8 as it is, but control characters (C0, DEL, C1) as \x1b or \u009b and bytes that are
// no UTF-8 as \xff: a terminal would obey them. Line ends and tabs stay. Threads: any.
std::string Printable(std::string_view text);

// The same for a text that must stay on its line and in its column: "\n" and "\t" come out escaped,
// too.
std::string PrintableInLine(std::string_view text);

}  // namespace perceptrond::client
