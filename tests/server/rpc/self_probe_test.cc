#include "server/rpc/self_probe.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "absl/synchronization/notification.h"
#include "tests/support/ipv6.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::TempDir;

// Accepts the probe's connections on a socket, for as long as it is asked to.
class Answerer {
 public:
  Answerer(const ListeningSocket& socket, const SelfProbe& probe)
      : thread_([this, &socket, &probe] {
          while (!stopping_) {
            SocketAddress remote;
            const int descriptor = accept4(socket.descriptor(), remote.get(), &remote.size, 0);
            if (descriptor < 0) continue;
            if (probe.IsOwn(remote)) ++own_;
            close(descriptor);
          }
        }) {}
  ~Answerer() { Stop(); }
  void Stop() {
    stopping_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void AwaitOwn(int count) const {
    while (own_ < count) std::this_thread::yield();
  }

 private:
  std::atomic<bool> stopping_{false};
  std::atomic<int> own_{0};
  std::thread thread_;
};

TEST(SelfProbeTest, AnAddressThatStopsAnsweringIsReportedAfterThreeFailures) {
  const TempDir dir;
  for (const std::string& address :
       {std::string("127.0.0.1:0"), std::string("[::]:0"), "unix:" + dir.path() + "/socket"}) {
    if (address == "[::]:0" && !testing::HasIpv6()) continue;
    const auto listening = ListenOn(address);
    ASSERT_TRUE(listening.ok());
    const ListeningSocket& socket = listening->sockets[0];
    absl::Notification failed;
    // Others are accepted for as long as the address answers: no failure counts, however slow it is.
    std::atomic<bool> answers{true};
    uint64_t accepted = 0;
    SelfProbe probe({{address, socket.address()}},
                    {.interval = absl::Milliseconds(1),
                     .timeout = absl::Milliseconds(200),
                     .accepted = [&] { return answers ? accepted += 2 : accepted; },
                     .on_failure =
                         [&](const std::string& name, const std::string& error) {
                           EXPECT_EQ(name, address);
                           EXPECT_FALSE(error.empty());
                           if (!failed.HasBeenNotified()) failed.Notify();
                         }});
    Answerer answerer(socket, probe);
    // One of them, at least, is answered in time, however busy the machine.
    answerer.AwaitOwn(50);
    EXPECT_FALSE(failed.HasBeenNotified());
    answerer.Stop();
    answers = false;
    failed.WaitForNotification();
  }
}

TEST(SelfProbeTest, AnAddressThatNeverAnsweredIsNotReported) {
  const auto listening = ListenOn("127.0.0.1:0");
  ASSERT_TRUE(listening.ok());
  std::atomic<int> failures{0};
  {
    SelfProbe probe({{"silent", listening->sockets[0].address()}},
                    {.interval = absl::Milliseconds(1),
                     .timeout = absl::Milliseconds(1),
                     .on_failure = [&](const std::string&, const std::string&) { ++failures; }});
    // Each probe leaves a connection in the queue.
    for (int accepted = 0; accepted < 5;) {
      const int descriptor = accept4(listening->sockets[0].descriptor(), nullptr, nullptr, 0);
      if (descriptor < 0) continue;
      ++accepted;
      // Kept open and unanswered until the process ends.
    }
  }
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace perceptrond
