// Output to a terminal: plain text, a progress line that is overwritten, and a text that is
// redrawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/report/format.h"

namespace perceptrond::client {

// Writes Printable(text), after wiping the progress line. All output goes through here. Threads:
// any.
void Write(std::FILE* file, std::string_view text);

// Writes the bytes as they are. Threads: any.
void WriteBytes(std::FILE* file, std::string_view bytes);

// Writes what standard output has buffered. Returns 0, or the system's error number of the first
// write to standard output that failed: what was written since may be lost. Threads: any.
int FlushOutput();

// With --quiet neither progress nor notices nor confirmations are shown. Call before any output; the
// default is false. Threads: any.
void SetQuiet(bool quiet);
bool IsQuiet();

// Whether a person can be asked: standard input and standard error are terminals.
bool CanAsk();
// Asks on standard error and reads a line. True: it is "y" or "yes".
bool AskYesNo(std::string_view question);

// Width of the progress line; absent if standard error is not a terminal, or quiet. Leaves room for
// the cursor and an echoed ^C, because a wrapped line cannot be wiped. Threads: any.
std::optional<size_t> ProgressColumns();
// Replaces the progress line on standard error, cut to ProgressColumns(); does nothing if that is
// not a terminal. The next Write() wipes it. Threads: any.
void ShowProgress(std::string_view line);
// Removes the progress line. Threads: any.
void WipeProgress();

struct WindowSize {
  size_t columns = 80;
  size_t rows = 24;
  bool operator==(const WindowSize&) const = default;
};

// Absent if the descriptor is not a terminal.
std::optional<WindowSize> SizeOfWindow(int descriptor);

// How many columns the text takes, at most: characters from U+1100 on may be two wide.
size_t ColumnsOf(std::string_view text);
// The longest prefix of the line that surely fits into `columns`.
std::string_view CutToColumns(std::string_view line, size_t columns);
// The line wrapped at blanks, continuation lines indented.
std::vector<std::string> WrapToColumns(std::string_view line, size_t columns);

// A text of several lines that is redrawn in place. Threads: one at a time.
class RedrawnText {
 public:
  // Returns the bytes that draw `text` over the previous one, cut to the lines that fit into the
  // window. A window whose size has changed is cleared first.
  std::string Draw(std::string_view text, WindowSize window);

 private:
  size_t drawn_lines_ = 0;
  WindowSize window_;
};

// Limits redrawing of progress to about ten times a second, without reading the clock for each row.
class RedrawTimer {
 public:
  // Call once per row: whether to redraw now.
  bool Due();

 private:
  uint64_t rows_ = 0;
  absl::Time drawn_ = absl::InfinitePast();
};

// The progress of a run. A plain value.
struct Progress {
  // Fraction done, 0 to 1; absent if the total is unknown.
  std::optional<double> fraction;
  // What the fraction refers to, such as "of pass 3"; empty: the whole run.
  std::string of;
  // Further figures, the most important first.
  std::vector<std::string> figures;
};

// "[=====>     ] 42 %  pass 3/10  54,000 examples". The bar shrinks to make room for figures;
// figures that still do not fit into `columns` are omitted, the last ones first. No bar without a
// fraction.
std::string ProgressLine(const Progress& progress, size_t columns);

// "105,564/s"; "-/s" if no time has elapsed.
std::string Rate(uint64_t count, absl::Duration elapsed);

}  // namespace perceptrond::client
