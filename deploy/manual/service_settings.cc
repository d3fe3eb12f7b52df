#include "deploy/manual/service_settings.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "server/config/command_line.h"
#include "server/config/options.h"

namespace perceptrond::manual {
namespace {

// Converts a value of the config file to that of a variable: "[\"a\", \"b\"]" is a,b.
std::string PlainValue(const std::string& value) {
  return absl::StrReplaceAll(value, {{"[", ""}, {"]", ""}, {"\"", ""}, {"'", ""}, {" ", ""}});
}

}  // namespace

std::string ServiceSettings() {
  std::string text =
      "# Settings of the service perceptrond: variables, each standing for a flag; perceptrond(1) "
      "has them too.\n"
      "# After a change: systemctl restart perceptrond\n"
      "# The models are in /var/lib/perceptrond. TLS files: see docs/secure.md.\n";
  Options options;
  for (const Flag& flag : MakeFlags(&options)) {
    if (flag.name == "data-dir") continue;
    absl::StrAppend(&text, "\n# ", absl::StrReplaceAll(flag.help, {{"\n", "\n# "}}), "\n#",
                    EnvironmentName(flag.name), "=", PlainValue(flag.get()), "\n");
  }
  return text;
}

}  // namespace perceptrond::manual
