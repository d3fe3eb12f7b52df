// At twice the load that the server can take, what it accepts keeps its latency, the rest is shed
// early, and management and health answer.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kQueue = 8;
// More clients than are in the queue and in work.
constexpr int kClients = 48;
constexpr std::chrono::seconds kTime(4);
constexpr std::chrono::seconds kConnectTime(30);
// What waits in the queue, and a busy machine.
constexpr double kMaxFactor = 4 * kQueue;
constexpr Milliseconds kSlack(150);

struct Seen {
  std::vector<double> accepted;
  std::vector<double> shed;
  int others = 0;

  static double Percentile(std::vector<double> all, double part) {
    std::sort(all.begin(), all.end());
    return all.empty() ? 0 : all[static_cast<size_t>(part * static_cast<double>(all.size() - 1))];
  }
};

class OverloadTest : public ServerTest {
 protected:
  OverloadTest() : ServerTest({"--max-queued-calls", std::to_string(kQueue)}) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
    v1::FeatureMap::Fourier& fourier =
        *settings.mutable_feature_space()->mutable_map()->mutable_fourier();
    fourier.set_dimension(200'000);
    fourier.set_gamma(1);
    Create("m", settings);
    v1::PredictResponse response;
    EXPECT_TRUE(Predict(Request(), &response).ok());
  }

  // Some milliseconds of a processor.
  static v1::PredictRequest Request() {
    v1::PredictRequest request;
    request.set_model("models/m");
    request.mutable_columns()->set_dense_width(1);
    request.mutable_columns()->add_values(1);
    return request;
  }
  // One call after the other, one in each `interval` at the most, until `end`.
  void Load(Clock::duration interval, const std::atomic<bool>& end, Seen& seen) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto channel =
        grpc::CreateCustomChannel(server_.address(), grpc::InsecureChannelCredentials(), arguments);
    EXPECT_TRUE(channel->WaitForConnected(std::chrono::system_clock::now() + kConnectTime));
    const auto stub = v1::PredictionService::NewStub(channel);
    for (Clock::time_point next = Clock::now(); !end; next += interval) {
      std::this_thread::sleep_until(next);
      grpc::ClientContext context;
      v1::PredictResponse response;
      const auto began = Clock::now();
      const grpc::Status status = stub->Predict(&context, Request(), &response);
      const double took = Milliseconds(Clock::now() - began).count();
      if (status.ok()) {
        seen.accepted.push_back(took);
      } else if (Reason(status) == "SERVER_BUSY") {
        EXPECT_TRUE(RetryDelay(status).has_value());
        seen.shed.push_back(took);
      } else {
        ++seen.others;
      }
    }
  }
};

TEST_F(OverloadTest, AcceptedCallsKeepTheirLatencyAndTheRestIsShedEarly) {
  // One after the other: what a call takes, and so what two processors can do.
  Seen alone;
  std::atomic<bool> ended = false;
  std::thread timer([&] {
    std::this_thread::sleep_for(kTime / 4);
    ended = true;
  });
  Load(Clock::duration::zero(), ended, alone);
  timer.join();
  const double one = Seen::Percentile(alone.accepted, 0.5);
  const double per_second = 1000 / one * std::max(1U, std::thread::hardware_concurrency());
  const auto interval = std::chrono::duration_cast<Clock::duration>(
      std::chrono::duration<double>(kClients / (2 * per_second)));

  std::vector<Seen> seen(kClients);
  std::vector<std::thread> clients;
  std::atomic<bool> end = false;
  for (Seen& one_client : seen) clients.emplace_back([&] { Load(interval, end, one_client); });
  std::vector<double> management;
  for (const auto until = Clock::now() + kTime; Clock::now() < until;) {
    const auto began = Clock::now();
    EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check", {""}).ok());
    EXPECT_EQ(Get("m", v1::MODEL_VIEW_BASIC).revision(), 0);
    management.push_back(Milliseconds(Clock::now() - began).count());
  }
  end = true;
  for (std::thread& client : clients) client.join();

  Seen all;
  for (const Seen& client : seen) {
    all.accepted.insert(all.accepted.end(), client.accepted.begin(), client.accepted.end());
    all.shed.insert(all.shed.end(), client.shed.begin(), client.shed.end());
    all.others += client.others;
  }
  std::printf(
      "alone %.1f ms; at twice the load %zu accepted, median %.1f and p99 %.1f ms; %zu shed in "
      "%.1f ms; management and health p99 %.1f ms\n",
      one, all.accepted.size(), Seen::Percentile(all.accepted, 0.5),
      Seen::Percentile(all.accepted, 0.99), all.shed.size(), Seen::Percentile(all.shed, 0.5),
      Seen::Percentile(management, 0.99));
  EXPECT_EQ(all.others, 0);
  EXPECT_GT(all.shed.size(), 0U);
  EXPECT_GT(all.accepted.size(), 0U);
  EXPECT_LT(Seen::Percentile(all.accepted, 0.99), kMaxFactor * one + kSlack.count());
  EXPECT_LT(Seen::Percentile(management, 0.99), kMaxFactor * one + kSlack.count());
}

}  // namespace
}  // namespace perceptrond::testing
