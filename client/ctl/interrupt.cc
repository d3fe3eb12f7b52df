#include "client/ctl/interrupt.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/output.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> reading_stopped{false};
// A pipe that is readable once any thread received a signal.
int wake_up[2] = {-1, -1};

void OnSignal(int) {
  const int saved = errno;
  interrupted = true;
  [[maybe_unused]] const ssize_t written = write(wake_up[1], "", 1);
  errno = saved;
}

}  // namespace

void CatchInterrupts() {
  if (pipe2(wake_up, O_CLOEXEC | O_NONBLOCK) != 0) return;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART | SA_RESETHAND;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // SIGHUP means that the terminal is gone; nohup ignores it.
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

bool Interrupted() { return interrupted; }

bool WaitReadable(int descriptor, int stop) {
  pollfd polled[3] = {{wake_up[0], POLLIN, 0}, {descriptor, POLLIN, 0}, {stop, POLLIN, 0}};
  while (!Interrupted() && !reading_stopped) {
    const int count = poll(polled, 3, -1);
    if (count > 0) return polled[0].revents == 0 && polled[2].revents == 0;
    if (count < 0 && errno != EINTR) return true;
  }
  return false;
}

bool ReadableNow(int descriptor) {
  pollfd polled = {descriptor, POLLIN, 0};
  return poll(&polled, 1, 0) > 0;
}

void StopReading() {
  reading_stopped = true;
  [[maybe_unused]] const ssize_t written = write(wake_up[1], "", 1);
}

void WaitInterrupted(int descriptor) {
  pollfd polled[2] = {{wake_up[0], POLLIN, 0}, {descriptor, POLLIN, 0}};
  while (!Interrupted()) {
    const int count = poll(polled, 2, -1);
    if (count > 0 || (count < 0 && errno != EINTR)) return;
  }
}

InterruptWatch::InterruptWatch(std::function<bool()> on_interrupt) {
  if (pipe2(end_, O_CLOEXEC) != 0) return;
  thread_ = std::thread([end = end_[0], on_interrupt = std::move(on_interrupt)] {
    WaitInterrupted(end);
    pollfd polled = {end, POLLIN, 0};
    while (Interrupted() && poll(&polled, 1, 200) <= 0) {
      if (!on_interrupt()) return;
    }
  });
}

InterruptWatch::~InterruptWatch() {
  if (!thread_.joinable()) return;
  close(end_[1]);
  thread_.join();
  close(end_[0]);
}

namespace {

// About a second of polls.
constexpr int kPollsBeforeExplaining = 5;

}  // namespace

void Connectivity::OnLost(const absl::Status& status) {
  if (lost_.exchange(true)) return;
  const std::string why = PrintableInLine(std::string(status.message()));
  PrintStderr(ErrorReason(status).empty()
                  ? absl::StrCat("connection lost (", why, "); reconnecting")
                  : absl::StrCat("not answered yet (", why, "); trying again"));
}

StreamInterrupt::StreamInterrupt(const Connectivity* connectivity, std::function<void()> cancel)
    : connectivity_(connectivity),
      cancel_(std::move(cancel)),
      watch_([this] { return OnInterrupt(); }) {}

bool StreamInterrupt::OnInterrupt() {
  if (connectivity_->lost()) {
    cancel_();
    return false;
  }
  if (++polls_ == kPollsBeforeExplaining) {
    PrintStderr("waiting for the answers to the examples sent; press Ctrl-C again to quit at once");
  }
  return true;
}

}  // namespace perceptrond::client
