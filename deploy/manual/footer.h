// The footer of --help, split into notes and examples for the manual.
#pragma once

#include <string>

namespace perceptrond::manual {

struct Footer {
  // In man macros; may be empty.
  std::string notes;
  std::string examples;
};

// Paragraphs are reflowed, indented lines are literal. Literal lines that run the program, and the
// heading "Examples:" above them, are examples.
Footer ReadFooter(const std::string& footer, const std::string& program);

}  // namespace perceptrond::manual
