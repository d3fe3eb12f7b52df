// What --help says behind the options, taken apart for the manual.
#pragma once

#include <string>

namespace perceptrond::manual {

struct Footer {
  // Both in the man macros; either may be empty.
  std::string notes;
  std::string examples;
};

// Paragraphs flow and indented lines stay as they are. Those that show the program itself, and the
// line "Examples:" over them, are examples.
Footer ReadFooter(const std::string& footer, const std::string& program);

}  // namespace perceptrond::manual
