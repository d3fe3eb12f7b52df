// Any bytes as a config file, or as arguments: options or words about what is wrong, never a crash;
// and --print-config's text gives the same options again. The first byte chooses which it is.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "server/config/options.h"
#include "tests/fuzz/fuzz_input.h"

namespace {

using perceptrond::ParseResult;
using perceptrond::testing::Check;

// A file without a disk. Its path is good as long as the process lives.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("config", MFD_CLOEXEC)) { Check(descriptor_ >= 0); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }
  void Write(std::string_view content) const {
    Check(ftruncate(descriptor_, 0) == 0);
    Check(pwrite(descriptor_, content.data(), content.size(), 0) ==
          static_cast<ssize_t>(content.size()));
  }

 private:
  const int descriptor_;
};

ParseResult ParseFile(std::string_view content) {
  static const MemoryFile file;
  file.Write(content);
  return perceptrond::ParseOptions({"--config=" + file.path()});
}

// One argument a line. Other files than ours are not to be read.
ParseResult ParseLines(std::string_view lines) {
  std::vector<std::string> args;
  while (!lines.empty()) {
    const size_t end = lines.find('\n');
    const std::string_view line = lines.substr(0, end);
    lines = end == std::string_view::npos ? std::string_view() : lines.substr(end + 1);
    if (!line.starts_with("--config")) args.emplace_back(line);
  }
  return perceptrond::ParseOptions(args);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const bool file = data[0] % 2 == 0;
  const ParseResult parsed = file ? ParseFile(text) : ParseLines(text);
  if (parsed.exit_code.has_value()) {
    // Only arguments ask for help, the version or the settings.
    Check(*parsed.exit_code == 2 || (*parsed.exit_code == 0 && !file));
    Check(*parsed.exit_code == 0 ? !parsed.out.empty() : !parsed.err.empty());
    return 0;
  }
  const std::string printed = perceptrond::ConfigText(parsed.options);
  const ParseResult again = ParseFile(printed);
  // A path that the file's syntax cannot hold is refused aloud; nothing is taken for another value.
  if (again.exit_code.has_value()) {
    Check(*again.exit_code == 2 && !again.err.empty());
  } else {
    Check(perceptrond::ConfigText(again.options) == printed);
  }
  return 0;
}
