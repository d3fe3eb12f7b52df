// Generates the files that describe the options of both programs: manual pages, completions for
// three shells, and the settings of the service. Run by the build.
//   perceptrond_manual SOURCES VERSION DATE OUT
// SOURCES is this folder; DATE is the date of the release, YYYY-MM-DD.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "client/ctl/command.h"
#include "deploy/manual/command.h"
#include "deploy/manual/completion.h"
#include "deploy/manual/man_page.h"
#include "deploy/manual/roff.h"
#include "server/config/command_line.h"
#include "server/config/options.h"

namespace perceptrond::manual {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "perceptrond_manual: %s\n", what.c_str());
  std::exit(1);
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file || text.empty()) Fail("cannot read " + path.string());
  return text;
}

void WriteFile(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  if (!file.flush()) Fail("cannot write " + path.string());
}

// Converts a value of the config file to that of a variable: "[\"a\", \"b\"]" is a,b.
std::string PlainValue(const std::string& value) {
  return absl::StrReplaceAll(value, {{"[", ""}, {"]", ""}, {"\"", ""}, {"'", ""}, {" ", ""}});
}

// The settings file of the packaged service, /etc/default/perceptrond: all flags as variables,
// commented out, with description and default, except those set by the unit.
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

// The template without its marker lines. What lies between "# @MODELS@" and "# @END@" is for
// programs that name models.
std::string TakeParts(const std::string& text, bool models) {
  std::string taken;
  bool part_for_models = false;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line == "# @MODELS@" || line == "# @END@") {
      part_for_models = line == "# @MODELS@";
    } else if (models || !part_for_models) {
      absl::StrAppend(&taken, taken.empty() ? "" : "\n", line);
    }
  }
  return taken;
}

class Writer {
 public:
  Writer(fs::path sources, Release release, fs::path out)
      : sources_(std::move(sources)), release_(std::move(release)), out_(std::move(out)) {}

  // `more`: further sections of the page.
  void Page(const Command& program, const Command& command, const std::string& more) {
    WriteFile(out_ / "man" / (PageName(program, command) + ".1"),
              ManPage(program, command, release_, more));
  }

  void Completions(const Command& program) {
    Completion(program, "bash", program.name, BashTables(program));
    Completion(program, "zsh", "_" + program.name, ZshTables(program));
    Completion(program, "fish", program.name + ".fish", FishTables(program));
  }

  std::string Sections(const std::string& name) { return ReadFile(sources_ / (name + ".man")); }

  void Settings() { WriteFile(out_ / "default" / "perceptrond", ServiceSettings()); }

 private:
  void Completion(const Command& program, const std::string& shell, const std::string& file,
                  const std::string& tables) {
    const std::string text =
        TakeParts(ReadFile(sources_ / ("completion." + shell)), NamesModels(program));
    WriteFile(out_ / shell / file,
              absl::StrReplaceAll(absl::StrReplaceAll(text, {{"@TABLES@", tables}}),
                                  {{"@PROGRAM@", program.name}}));
  }

  const fs::path sources_;
  const Release release_;
  const fs::path out_;
};

std::string ExitStatus() {
  std::string section = ".SH EXIT STATUS\n";
  for (const client::ExitCode& exit : client::kExitCodes)
    absl::StrAppend(&section, ".TP\n", exit.code, "\n", Prose(exit.meaning), ".\n");
  return section;
}

std::string SeeAlso(const std::string& pages) { return ".SH SEE ALSO\n" + pages + "\n"; }

void WriteServer(Writer* writer) {
  Options options;
  CommandLine line(&options);
  const Command server = ReadCommand(*line.app());
  writer->Page(server, server,
               writer->Sections("perceptrond") + SeeAlso("\\fBperceptronctl\\fR(1)"));
  writer->Completions(server);
  writer->Settings();
}

void WriteClient(Writer* writer) {
  client::Globals globals;
  client::Action action;
  const std::unique_ptr<CLI::App> app = client::MakeApplication(&globals, &action);
  const Command program = ReadCommand(*app);
  const std::string exit_status = ExitStatus();
  writer->Page(program, program,
               exit_status + writer->Sections("perceptronctl") + SeeAlso("\\fBperceptrond\\fR(1)"));
  for (const Command& command : program.subcommands) {
    writer->Page(program, command,
                 exit_status + SeeAlso("\\fBperceptronctl\\fR(1), \\fBperceptrond\\fR(1)"));
  }
  writer->Completions(program);
}

}  // namespace
}  // namespace perceptrond::manual

int main(int argc, char** argv) {
  using perceptrond::manual::Writer;
  if (argc != 5) {
    std::fprintf(stderr, "usage: perceptrond_manual SOURCES VERSION DATE OUT\n");
    return 2;
  }
  // Removes pages of subcommands that no longer exist.
  std::filesystem::remove_all(argv[4]);
  Writer writer(argv[1], {argv[2], argv[3]}, argv[4]);
  perceptrond::manual::WriteServer(&writer);
  perceptrond::manual::WriteClient(&writer);
}
