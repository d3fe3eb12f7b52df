#include "client/ctl/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/printable.h"

namespace perceptrond::client {
namespace {

constexpr size_t kWrappedIndent = 4;
constexpr size_t kEchoColumns = 3;
constexpr std::string_view kWipeLine = "\r\033[K";
constexpr std::string_view kWipeScreen = "\033[H\033[2J";

// One terminal, one line of progress on it.
std::mutex terminal_mutex;
bool progress_shown = false;

void WipeShown() {
  if (!progress_shown) return;
  std::fwrite(kWipeLine.data(), 1, kWipeLine.size(), stderr);
  progress_shown = false;
}

// Rather too many than too few: from U+1100 on, characters may be two columns wide.
size_t ColumnsOf(unsigned char byte) {
  if ((byte & 0xC0) == 0x80) return 0;
  return byte >= 0xE1 ? 2 : 1;
}

}  // namespace

void Write(std::FILE* file, std::string_view text) {
  const std::string printable = Printable(text);
  const std::lock_guard<std::mutex> lock(terminal_mutex);
  WipeShown();
  std::fwrite(printable.data(), 1, printable.size(), file);
}

std::optional<size_t> ProgressColumns() {
  const std::optional<WindowSize> window = SizeOfWindow(STDERR_FILENO);
  if (!window.has_value()) return std::nullopt;
  return std::max(window->columns, kEchoColumns) - kEchoColumns;
}

void ShowProgress(std::string_view line) {
  const std::optional<size_t> columns = ProgressColumns();
  if (!columns.has_value()) return;
  const std::string printable = PrintableInLine(line);
  const std::string drawn =
      absl::StrCat(std::string(kWipeLine), std::string(CutToColumns(printable, *columns)));
  const std::lock_guard<std::mutex> lock(terminal_mutex);
  std::fwrite(drawn.data(), 1, drawn.size(), stderr);
  progress_shown = true;
}

void WipeProgress() {
  const std::lock_guard<std::mutex> lock(terminal_mutex);
  WipeShown();
}

std::optional<WindowSize> SizeOfWindow(int descriptor) {
  if (isatty(descriptor) != 1) return std::nullopt;
  winsize size = {};
  // Some terminals do not know theirs.
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return WindowSize();
  }
  return WindowSize{size.ws_col, size.ws_row};
}

std::string_view CutToColumns(std::string_view line, size_t columns) {
  size_t used = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    used += ColumnsOf(static_cast<unsigned char>(line[i]));
    if (used > columns) return line.substr(0, i);
  }
  return line;
}

std::vector<std::string> WrapToColumns(std::string_view line, size_t columns) {
  const std::string indent(kWrappedIndent, ' ');
  std::vector<std::string> lines = {std::string(line)};
  while (columns > 2 * kWrappedIndent) {
    const std::string last = lines.back();
    const size_t cut = CutToColumns(last, columns).size();
    if (cut == last.size()) break;
    // Not in the indentation.
    const size_t blank = last.rfind(' ', cut);
    const bool at_blank = blank != std::string::npos && blank > last.find_first_not_of(' ');
    lines.back() = last.substr(0, at_blank ? blank : cut);
    lines.push_back(indent + last.substr(at_blank ? blank + 1 : cut));
  }
  lines.back() = std::string(CutToColumns(lines.back(), columns));
  return lines;
}

std::string Picture::Draw(std::string_view text, WindowSize window) {
  std::string out;
  if (drawn_lines_ > 0 && window != window_) {
    out = kWipeScreen;
  } else if (drawn_lines_ > 0) {
    out = absl::StrCat("\033[", drawn_lines_, "A\r\033[J");
  }
  window_ = window;
  drawn_lines_ = 0;
  const std::string printable = Printable(text);
  for (const absl::string_view line : absl::StrSplit(printable, '\n', absl::SkipEmpty())) {
    for (const std::string& piece : WrapToColumns({line.data(), line.size()}, window.columns)) {
      // The cursor waits in the line below the picture.
      if (drawn_lines_ + 1 >= window.rows) return out;
      absl::StrAppend(&out, piece, "\n");
      ++drawn_lines_;
    }
  }
  return out;
}

}  // namespace perceptrond::client
