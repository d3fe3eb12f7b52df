#include "deploy/manual/footer.h"

#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "deploy/manual/roff.h"

namespace perceptrond::manual {
namespace {

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

}  // namespace

Footer ReadFooter(const std::string& footer, const std::string& program) {
  FooterReader reader(program);
  for (const absl::string_view line : absl::StrSplit(footer, '\n', absl::AllowEmpty()))
    reader.Line(std::string(line));
  return reader.Take();
}

}  // namespace perceptrond::manual
