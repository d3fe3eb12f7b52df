// What perceptronctl writes, on its way out, and the two things it draws on a terminal: a line of
// progress that is written over, and a picture that is redrawn.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "core/words/figures.h"

namespace perceptrond::client {

// Everything that is written for a person or a program goes through here: Printable(), and not into
// the line of progress. Threads: any.
void Write(std::FILE* file, std::string_view text);

// How wide a line of progress may be; absent where standard error is no terminal. Room is left for
// the cursor and the ^C that a terminal echoes: what wraps is not wiped. Threads: any.
std::optional<size_t> ProgressColumns();
// Shows `line` on standard error in place of the one before, cut to those columns; nothing where
// that is no terminal. The next Write() wipes it. Threads: any.
void ShowProgress(std::string_view line);
// Threads: any.
void WipeProgress();

struct WindowSize {
  size_t columns = 80;
  size_t rows = 24;
  bool operator==(const WindowSize&) const = default;
};

// Absent if the descriptor is no terminal.
std::optional<WindowSize> SizeOfWindow(int descriptor);

// As much of a line as surely fits into so many columns.
std::string_view CutToColumns(std::string_view line, size_t columns);
// The line on as many as it needs, broken at blanks where there are any, the later ones indented.
std::vector<std::string> WrapToColumns(std::string_view line, size_t columns);

// Several lines that change in place. Threads: one at a time.
class Picture {
 public:
  // The bytes that draw `text` over what was drawn before: as many of its lines as the window
  // holds, since one that scrolled away would not be found again. In a window of another size it
  // starts on a clean one.
  std::string Draw(std::string_view text, WindowSize window);

 private:
  size_t drawn_lines_ = 0;
  WindowSize window_;
};

// When a run that goes row by row is to be drawn again: about ten times a second, without a look at
// the clock for each row.
class DrawPace {
 public:
  // Of one row.
  bool Due();

 private:
  uint64_t rows_ = 0;
  absl::Time drawn_ = absl::InfinitePast();
};

struct Progress {
  // 0 to 1; absent where nobody knows how much there is to do.
  std::optional<double> fraction;
  // What it is a fraction of, as "of pass 3"; empty: of the whole run.
  std::string of;
  // The most important first.
  std::vector<std::string> figures;
};

// "[=====>     ] 42 %  pass 3/10  54,000 examples". The bar gives way to figures, and figures that
// do not fit into so many columns are left out, the last first. Without a fraction: no bar.
std::string ProgressLine(const Progress& progress, size_t columns);

// "105,564/s"; nothing can be said of no time.
std::string Rate(uint64_t count, absl::Duration elapsed);

}  // namespace perceptrond::client
