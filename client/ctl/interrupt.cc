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

namespace perceptrond::client {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> reading_stopped{false};
// Readable once a signal came, whichever thread got it.
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
  // The terminal is gone, unless nohup says that this is no matter.
  struct sigaction hangup = {};
  sigaction(SIGHUP, nullptr, &hangup);
  if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

bool Interrupted() { return interrupted; }

bool WaitReadable(int descriptor) {
  WaitInterrupted(descriptor);
  return !Interrupted() && !reading_stopped;
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

InterruptWatch::InterruptWatch(std::function<bool()> look) {
  if (pipe2(end_, O_CLOEXEC) != 0) return;
  thread_ = std::thread([end = end_[0], look = std::move(look)] {
    WaitInterrupted(end);
    pollfd polled = {end, POLLIN, 0};
    while (Interrupted() && poll(&polled, 1, 200) <= 0) {
      if (!look()) return;
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

// About a second of them: long enough to wonder.
constexpr int kLooksBeforeExplaining = 5;

}  // namespace

void Connectivity::Lost(const absl::Status& status) {
  if (away_.exchange(true)) return;
  Complain(absl::StrCat("connection lost (", PrintableInLine(std::string(status.message())),
                        "); reconnecting"));
}

StreamInterrupt::StreamInterrupt(const Connectivity* connectivity, std::function<void()> cancel)
    : connectivity_(connectivity), cancel_(std::move(cancel)), watch_([this] { return Look(); }) {}

bool StreamInterrupt::Look() {
  if (connectivity_->away()) {
    cancel_();
    return false;
  }
  if (++looks_ == kLooksBeforeExplaining) {
    Complain("waiting for the server to answer what was sent; Ctrl-C again ends at once");
  }
  return true;
}

}  // namespace perceptrond::client
