// The commands in the documents do what the documents say. In an indented block, "$ " begins a
// command, what follows is its output, and a line "..." stands for any lines.
#include <fstream>
#include <sstream>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

struct Example {
  std::string command;
  std::vector<std::string> output;
};

std::vector<Example> ReadExamples(const std::string& path) {
  std::ifstream file(path);
  std::vector<Example> examples;
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("    $ ", 0) == 0) {
      examples.push_back({line.substr(6), {}});
    } else if (line.rfind("    ", 0) == 0 && !examples.empty()) {
      examples.back().output.push_back(line.substr(4));
    }
  }
  return examples;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Whether the lines from `at` are the expected ones from `next`.
bool Matches(const std::vector<std::string>& expected, size_t next,
             const std::vector<std::string>& lines, size_t at) {
  if (next == expected.size()) return at == lines.size();
  if (expected[next] == "...") {
    for (size_t skipped = at; skipped <= lines.size(); ++skipped) {
      if (Matches(expected, next + 1, lines, skipped)) return true;
    }
    return false;
  }
  return at < lines.size() && lines[at] == expected[next] &&
         Matches(expected, next + 1, lines, at + 1);
}

class DocumentsTest : public ServerTest, public ::testing::WithParamInterface<const char*> {};

TEST_P(DocumentsTest, ItsCommandsPrintWhatItSays) {
  const std::vector<Example> examples =
      ReadExamples(std::string(PERCEPTROND_ROOT) + "/docs/" + GetParam());
  ASSERT_FALSE(examples.empty());
  const std::string before = "cd " + dir_.path() + " && export XDG_STATE_HOME=" + dir_.path() +
                             " PERCEPTROND_SERVER=" + server_.address() +
                             " PATH=" PERCEPTROND_BIN ":\"$PATH\" && { ";
  for (const Example& example : examples) {
    const CommandResult result = RunCommand(before + example.command + "\n} 2>&1");
    EXPECT_EQ(result.exit_code, 0) << example.command << "\n" << result.out;
    EXPECT_TRUE(Matches(example.output, 0, Lines(result.out), 0)) << example.command << "\n"
                                                                  << result.out;
  }
}

INSTANTIATE_TEST_SUITE_P(All, DocumentsTest, ::testing::Values("xor.md", "inference_protocol.md"),
                         [](const auto& info) {
                           const std::string file = info.param;
                           return file.substr(0, file.find('.'));
                         });

}  // namespace
}  // namespace perceptrond::testing
