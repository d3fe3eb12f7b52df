#include "deploy/manual/man_page.h"

#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "deploy/manual/roff.h"

namespace perceptrond::manual {
namespace {

// The footer of --help, split for the page.
struct Footer {
  // In man macros; may be empty.
  std::string notes;
  std::string examples;
};

// Paragraphs are reflowed, indented lines are literal. Literal lines that run the program, and the
// heading "Examples:" above them, are examples.
class FooterReader {
 public:
  explicit FooterReader(std::string program) : program_(std::move(program)) {}

  void Line(const std::string& line) {
    if (absl::StartsWith(line, "  ")) {
      literal_.push_back(line.substr(2));
      return;
    }
    EndLiteral();
    if (line.empty()) {
      EndParagraph();
    } else {
      paragraph_.push_back(line);
    }
  }

  Footer Take() {
    EndLiteral();
    EndParagraph();
    return std::move(footer_);
  }

 private:
  // The paragraph above literal lines belongs to their section; the heading "Examples:" is dropped.
  void EndLiteral() {
    if (literal_.empty()) return;
    const bool example = absl::StrContains(absl::StrJoin(literal_, "\n"), program_ + " ");
    const std::string text = absl::StrJoin(std::exchange(paragraph_, {}), " ");
    absl::string_view over = text;
    const bool heading =
        absl::ConsumeSuffix(&over, "Examples:") || absl::ConsumeSuffix(&over, "Example:");
    Paragraph(over, example && !heading ? &footer_.examples : &footer_.notes);
    std::string* const to = example ? &footer_.examples : &footer_.notes;
    absl::StrAppend(to, ".PP\n.RS 4\n.nf\n");
    for (const std::string& line : literal_) absl::StrAppend(to, Literal(line), "\n");
    absl::StrAppend(to, ".fi\n.RE\n");
    literal_.clear();
  }

  void EndParagraph() {
    Paragraph(absl::StrJoin(paragraph_, " "), &footer_.notes);
    paragraph_.clear();
  }

  // Exit codes have a section of their own.
  static void Paragraph(absl::string_view text, std::string* to) {
    while (absl::ConsumeSuffix(&text, " ")) {
    }
    if (text.empty() || absl::StartsWith(text, "Exit codes:")) return;
    absl::StrAppend(to, ".PP\n", Prose(text), "\n");
  }

  const std::string program_;
  std::vector<std::string> paragraph_;
  std::vector<std::string> literal_;
  Footer footer_;
};

Footer ReadFooter(const std::string& footer, const std::string& program) {
  FooterReader reader(program);
  for (const absl::string_view line : absl::StrSplit(footer, '\n', absl::AllowEmpty()))
    reader.Line(std::string(line));
  return reader.Take();
}

// The command as typed: "perceptronctl learn".
std::string Invocation(const Command& program, const Command& command) {
  return &program == &command ? program.name : absl::StrCat(program.name, " ", command.name);
}

// The description on one line, without a leading program name.
std::string Description(const Command& command) {
  absl::string_view text = command.description;
  absl::ConsumePrefix(&text, command.name + ": ");
  std::string line = absl::StrJoin(absl::StrSplit(text, '\n'), " ");
  line.front() = absl::ascii_toupper(line.front());
  return line.back() == '.' ? line : line + ".";
}

// The first sentence of the description, for whatis(1).
std::string Summary(const Command& command) {
  const std::string text = Description(command);
  std::string first = text.substr(0, text.find(". "));
  if (first.back() == '.') first.pop_back();
  first.front() = absl::ascii_tolower(first.front());
  return first;
}

std::string Synopsis(const Command& program, const Command& command) {
  std::string line = absl::StrCat(Bold(Invocation(program, command)), " [", Italic("OPTIONS"), "]");
  if (!command.subcommands.empty()) absl::StrAppend(&line, " ", Italic("SUBCOMMAND"), " ...");
  for (const Argument& argument : command.arguments) {
    const std::string one = absl::StrCat(Italic(argument.name), argument.repeatable ? " ..." : "");
    absl::StrAppend(&line, " ", argument.required ? one : absl::StrCat("[", one, "]"));
  }
  return line + "\n";
}

std::string OptionEntry(const Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.names) names.push_back(Bold(name));
  std::string entry = absl::StrCat(".TP\n", absl::StrJoin(names, ", "));
  if (!option.value.form.empty()) absl::StrAppend(&entry, " ", Italic(option.value.form));
  absl::StrAppend(&entry, "\n", Prose(option.text), "\n");
  if (option.repeatable) absl::StrAppend(&entry, "May be given more than once.\n");
  if (!option.variable.empty())
    absl::StrAppend(&entry, ".br\nEnvironment: ", Bold(option.variable), ".\n");
  return entry;
}

std::string Variables(const Command& command) {
  std::string entries;
  for (const Option& option : command.options) {
    if (option.variable.empty()) continue;
    absl::StrAppend(&entries, ".TP\n", Bold(option.variable), "\nStands for ",
                    Bold(option.names.back()), ".\n");
  }
  return entries;
}

std::string Subcommands(const Command& program) {
  std::string entries;
  for (const Command& one : program.subcommands) {
    absl::StrAppend(&entries, ".TP\n", Bold(PageName(program, one)), "(1)\n",
                    Prose(Description(one)), "\n");
  }
  return entries;
}

// The global options that a subcommand accepts, by name.
std::string OptionsOfProgram(const Command& program, const Command& command) {
  std::vector<std::string> names;
  for (const Option& option : OptionsWithin(program, command)) {
    const bool own = option.names.back() == "--help" || [&] {
      for (const Option& mine : command.options) {
        if (mine.names == option.names) return true;
      }
      return false;
    }();
    if (!own) names.push_back(Bold(option.names.back()));
  }
  return absl::StrCat(".PP\nBesides these, the options that ", Bold(program.name),
                      "(1) explains: ", absl::StrJoin(names, ", "), ".\n");
}

// Literal blocks start a paragraph themselves.
std::string Section(absl::string_view title, absl::string_view text) {
  absl::ConsumePrefix(&text, ".PP\n");
  return text.empty() ? "" : absl::StrCat(".SH ", title, "\n", text);
}

std::string Arguments(const Command& command) {
  std::string entries;
  for (const Argument& argument : command.arguments)
    absl::StrAppend(&entries, ".TP\n", Italic(argument.name), "\n", Prose(argument.text), "\n");
  return entries;
}

}  // namespace

std::string PageName(const Command& program, const Command& command) {
  return &program == &command ? program.name : absl::StrCat(program.name, "-", command.name);
}

std::string ManPage(const Command& program, const Command& command, const Release& release,
                    const std::string& more) {
  const std::string name = PageName(program, command);
  const Footer footer = ReadFooter(command.footer, program.name);
  std::string options;
  for (const Option& option : command.options) absl::StrAppend(&options, OptionEntry(option));
  if (&program != &command) absl::StrAppend(&options, OptionsOfProgram(program, command));
  std::string page = absl::StrCat(".\\\" Made from the program's own options.\n.TH ",
                                  absl::AsciiStrToUpper(Literal(name)), " 1 ", release.date,
                                  " \"perceptrond ", release.version, "\" \"User Commands\"\n");
  absl::StrAppend(&page, Section("NAME", absl::StrCat(Literal(name), " \\- ",
                                                      Literal(Summary(command)), "\n")));
  absl::StrAppend(&page, Section("SYNOPSIS", Synopsis(program, command)));
  absl::StrAppend(&page, Section("DESCRIPTION", Prose(Description(command)) + "\n" + footer.notes));
  absl::StrAppend(&page, Section("SUBCOMMANDS", Subcommands(command)));
  absl::StrAppend(&page, Section("ARGUMENTS", Arguments(command)));
  absl::StrAppend(&page, Section("OPTIONS", options));
  absl::StrAppend(&page, Section("EXAMPLES", footer.examples));
  if (!absl::StrContains(more, ".SH ENVIRONMENT"))
    absl::StrAppend(&page, Section("ENVIRONMENT", Variables(command)));
  absl::StrAppend(&page, more);
  return page;
}

}  // namespace perceptrond::manual
