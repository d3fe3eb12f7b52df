#include "client/ctl/terminal.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

namespace perceptrond::client {
namespace {

constexpr WindowSize kWindow = {20, 5};

// Standard error is a terminal of kWindow's size while this lives; not in a jail without /dev/pts.
class FakeTerminal {
 public:
  FakeTerminal() : saved_(dup(STDERR_FILENO)) {
    winsize size = {};
    size.ws_col = kWindow.columns;
    size.ws_row = kWindow.rows;
    int slave = -1;
    if (openpty(&master_, &slave, nullptr, nullptr, &size) != 0) return;
    dup2(slave, STDERR_FILENO);
    close(slave);
  }
  ~FakeTerminal() {
    Restore();
    close(master_);
  }
  bool is_made() const { return master_ >= 0; }
  // All that was written to it.
  std::string Written() {
    std::fflush(stderr);
    Restore();
    std::string all;
    char buffer[1024];
    // Without its last writer a terminal ends with an error.
    for (ssize_t count = 1; (count = read(master_, buffer, sizeof buffer)) > 0;) {
      all.append(buffer, static_cast<size_t>(count));
    }
    return all;
  }

 private:
  void Restore() {
    if (saved_ < 0) return;
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    saved_ = -1;
  }
  int saved_;
  int master_ = -1;
};

TEST(Progress, StaysOnOneLineAndGoesBeforeAnythingElseIsWritten) {
  FakeTerminal terminal;
  if (!terminal.is_made()) GTEST_SKIP() << "no pseudo-terminals here";
  ShowProgress("pass 1  123456 examples");
  ShowProgress("short \x1b");
  Write(stderr, "done\n");
  WipeProgress();
  // Three columns stay free, for the ^C that the terminal may echo.
  EXPECT_EQ(terminal.Written(),
            "\r\033[Kpass 1  123456 ex"
            "\r\033[Kshort \\x1b"
            "\r\033[Kdone\r\n");
}

TEST(CutToColumns, NeverCutsThroughACharacterOrGoesTooFar) {
  EXPECT_EQ(CutToColumns("short", 9), "short");
  EXPECT_EQ(CutToColumns("longer than that", 6), "longer");
  EXPECT_EQ(CutToColumns("über", 2), "üb");
  // Two columns each.
  EXPECT_EQ(CutToColumns("漢字漢", 5), "漢字");
  EXPECT_EQ(CutToColumns("x", 0), "");
}

TEST(WrapToColumns, BreaksAtBlanksAndIndentsTheRest) {
  using Lines = std::vector<std::string>;
  EXPECT_EQ(WrapToColumns("fits", 20), Lines{"fits"});
  EXPECT_EQ(WrapToColumns("  error so far, over the last", 16),
            (Lines{"  error so far,", "    over the", "    last"}));
  EXPECT_EQ(WrapToColumns("abcdefghijklmn", 10), (Lines{"abcdefghij", "    klmn"}));
  for (size_t columns = 0; columns < 30; ++columns) {
    for (const std::string& line :
         WrapToColumns("some words of 漢字漢字漢字漢字 to wrap", columns)) {
      EXPECT_EQ(CutToColumns(line, columns), line);
    }
  }
}

TEST(RedrawnText, GoesBackOverExactlyWhatItDrew) {
  RedrawnText picture;
  EXPECT_EQ(picture.Draw("one\ntwo\n", kWindow), "one\ntwo\n");
  EXPECT_EQ(picture.Draw("a line that has to be wrapped\n", kWindow),
            "\033[2A\r\033[Ja line that has to\n    be wrapped\n");
  EXPECT_EQ(picture.Draw("x\n", kWindow), "\033[2A\r\033[Jx\n");
}

TEST(RedrawnText, NeverScrollsItsFirstLineAway) {
  RedrawnText picture;
  const std::string drawn = picture.Draw("1\n2\n3\n4\n5\n6\n", kWindow);
  EXPECT_EQ(drawn, "1\n2\n3\n4\n");
}

TEST(RedrawnText, StartsOnACleanScreenOnceTheWindowChanged) {
  RedrawnText picture;
  picture.Draw("one\n", kWindow);
  EXPECT_EQ(picture.Draw("one\n", {10, 5}), "\033[H\033[2Jone\n");
  EXPECT_EQ(picture.Draw("one\n", {10, 5}), "\033[1A\r\033[Jone\n");
}

TEST(RedrawnText, ShowsControlCharactersInsteadOfSendingThem) {
  RedrawnText picture;
  EXPECT_EQ(picture.Draw("\x1b[2J\n", kWindow), "\\x1b[2J\n");
}

}  // namespace
}  // namespace perceptrond::client
