#include "client/ctl/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <iostream>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/ctl/output.h"
#include "core/sync/mutex.h"

namespace perceptrond::client {
namespace {

constexpr size_t kWrappedIndent = 4;
constexpr size_t kEchoColumns = 3;
constexpr std::string_view kWipeLine = "\r\033[K";
constexpr std::string_view kWipeScreen = "\033[H\033[2J";

// Guards the terminal too.
Mutex terminal_mutex;
bool progress_shown ABSL_GUARDED_BY(terminal_mutex) = false;

std::atomic<bool> is_quiet = false;

// The first failure of a write to standard output.
std::atomic<int> output_error = 0;

void NoteOutputError(int error) {
  int none = 0;
  output_error.compare_exchange_strong(none, error);
}

void WipeShown() ABSL_EXCLUSIVE_LOCKS_REQUIRED(terminal_mutex) {
  if (!progress_shown) return;
  std::fwrite(kWipeLine.data(), 1, kWipeLine.size(), stderr);
  progress_shown = false;
}

size_t ColumnsOfByte(unsigned char byte) {
  if ((byte & 0xC0) == 0x80) return 0;
  return byte >= 0xE1 ? 2 : 1;
}

}  // namespace

void Write(std::FILE* file, std::string_view text) { WriteBytes(file, Printable(text)); }

void WriteBytes(std::FILE* file, std::string_view bytes) {
  MutexLock lock(&terminal_mutex);
  WipeShown();
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) < bytes.size() && file == stdout)
    NoteOutputError(errno);
}

int FlushOutput() {
  if (std::fflush(stdout) != 0) NoteOutputError(errno);
  return output_error;
}

void SetQuiet(bool quiet) { is_quiet = quiet; }
bool IsQuiet() { return is_quiet; }

bool CanAsk() { return isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1; }

bool AskYesNo(std::string_view question) {
  Write(stderr, absl::StrCat(std::string(question), " [y/N] "));
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

std::optional<size_t> ProgressColumns() {
  if (IsQuiet()) return std::nullopt;
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
  MutexLock lock(&terminal_mutex);
  std::fwrite(drawn.data(), 1, drawn.size(), stderr);
  progress_shown = true;
}

void WipeProgress() {
  MutexLock lock(&terminal_mutex);
  WipeShown();
}

std::optional<WindowSize> SizeOfWindow(int descriptor) {
  if (isatty(descriptor) != 1) return std::nullopt;
  winsize size = {};
  // Some terminals do not know their size.
  if (ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) {
    return WindowSize();
  }
  return WindowSize{size.ws_col, size.ws_row};
}

size_t ColumnsOf(std::string_view text) {
  size_t columns = 0;
  for (const char c : text) columns += ColumnsOfByte(static_cast<unsigned char>(c));
  return columns;
}

std::string_view CutToColumns(std::string_view line, size_t columns) {
  size_t used = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    used += ColumnsOfByte(static_cast<unsigned char>(line[i]));
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
    // Do not break within the indentation.
    const size_t blank = last.rfind(' ', cut);
    const bool at_blank = blank != std::string::npos && blank > last.find_first_not_of(' ');
    lines.back() = last.substr(0, at_blank ? blank : cut);
    lines.push_back(indent + last.substr(at_blank ? blank + 1 : cut));
  }
  lines.back() = std::string(CutToColumns(lines.back(), columns));
  return lines;
}

std::string RedrawnText::Draw(std::string_view text, WindowSize window) {
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
      // The cursor stays in the line below the text.
      if (drawn_lines_ + 1 >= window.rows) return out;
      absl::StrAppend(&out, piece, "\n");
      ++drawn_lines_;
    }
  }
  return out;
}

namespace {

// Columns inside the brackets.
constexpr size_t kShortestBar = 8;
constexpr size_t kLongestBar = 30;
// The brackets and the blank after them.
constexpr size_t kAroundBar = 3;
constexpr size_t kBetweenFigures = 2;

constexpr uint64_t kRowsBetweenChecks = 64;
constexpr absl::Duration kBetweenDraws = absl::Milliseconds(100);

std::string Bar(double fraction, size_t length) {
  const size_t done = std::min(length, static_cast<size_t>(fraction * static_cast<double>(length)));
  std::string bar(length, ' ');
  std::fill_n(bar.begin(), done, '=');
  if (done < length) bar[done] = '>';
  return absl::StrCat("[", bar, "] ");
}

// Rounded down, so that 100 % means finished.
std::string FormatPercent(double fraction, const std::string& of) {
  return absl::StrCat(static_cast<int>(100 * fraction), " %", of.empty() ? "" : " ", of);
}

}  // namespace

bool RedrawTimer::Due() {
  if (++rows_ % kRowsBetweenChecks != 0) return false;
  const absl::Time now = absl::Now();
  if (now - drawn_ < kBetweenDraws) return false;
  drawn_ = now;
  return true;
}

std::string ProgressLine(const Progress& progress, size_t columns) {
  const bool has_bar = progress.fraction.has_value();
  const double fraction = std::clamp(progress.fraction.value_or(0), 0.0, 1.0);
  std::string text = has_bar ? FormatPercent(fraction, progress.of) : "";
  const size_t reserved = has_bar ? kShortestBar + kAroundBar : 0;
  for (const std::string& figure : progress.figures) {
    const size_t gap = text.empty() ? 0 : kBetweenFigures;
    if (!text.empty() && reserved + text.size() + gap + figure.size() > columns) break;
    absl::StrAppend(&text, std::string(gap, ' '), figure);
  }
  if (!has_bar) return text;
  const size_t room = columns - std::min(columns, text.size() + kAroundBar);
  return Bar(fraction, std::clamp(room, kShortestBar, kLongestBar)) + text;
}

std::string Rate(uint64_t count, absl::Duration elapsed) {
  const double rate = static_cast<double>(count) / absl::ToDoubleSeconds(elapsed);
  return std::isfinite(rate)
             ? absl::StrCat(Grouped(static_cast<uint64_t>(std::llround(rate))), "/s")
             : "-/s";
}

}  // namespace perceptrond::client
