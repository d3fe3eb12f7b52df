#include "client/ctl/list_flag.h"

#include <CLI/CLI.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace perceptrond::client {
namespace {

void Parse(const std::string&, const std::string& part, std::string* to) { *to = part; }

void Parse(const std::string& flag, const std::string& part, double* to) {
  if (!absl::SimpleAtod(part, to))
    throw CLI::ValidationError(flag, absl::StrCat("\"", part, "\" is no number"));
}

template <typename T>
CLI::Option* Add(CLI::App* command, const std::string& flag, std::vector<T>* to,
                 const std::string& help) {
  const auto append = [flag, to](const std::vector<std::string>& lists) {
    for (const std::string& list : lists) {
      for (const std::string& part : std::vector<std::string>(absl::StrSplit(list, ','))) {
        if (part.empty()) {
          throw CLI::ValidationError(
              flag, absl::StrCat("\"", list, "\" has a comma with nothing before or after it"));
        }
        Parse(flag, part, &to->emplace_back());
      }
    }
  };
  return command->add_option_function<std::vector<std::string>>(flag, append, help)
      ->allow_extra_args(false);
}

}  // namespace

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<std::string>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("TEXT,...");
}

CLI::Option* AddListFlag(CLI::App* command, const std::string& flag, std::vector<double>* to,
                         const std::string& help) {
  return Add(command, flag, to, help)->type_name("NUMBER,...");
}

}  // namespace perceptrond::client
