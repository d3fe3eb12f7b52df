#include "client/ctl/number_flag.h"

#include <CLI/CLI.hpp>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace perceptrond::client {

CLI::Validator Between(double least, double most) {
  // All the digits of a large one.
  const std::string from = absl::StrFormat("%.15g", least);
  const std::string to = absl::StrFormat("%.15g", most);
  const auto check = [=](const std::string& text) -> std::string {
    double value = 0;
    // Any comparison with nan is false.
    if (absl::SimpleAtod(text, &value) && value >= least && value <= most) return "";
    return absl::StrCat(text, " is no number from ", from, " to ", to);
  };
  // As CLI::Range has it.
  return CLI::Validator(check, absl::StrCat("FLOAT in [", from, " - ", to, "]"));
}

}  // namespace perceptrond::client
