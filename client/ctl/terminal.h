// What perceptronctl writes, on its way out, and the two things it draws on a terminal: a line of
// progress that is written over, and a picture that is redrawn.
#pragma once

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace perceptrond::client
