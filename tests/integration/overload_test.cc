// At twice the load that the server can take, what it accepts keeps its latency, the rest is shed
// early, and management and health answer.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>

#include "tests/integration/memory_fixture.h"

namespace perceptrond::testing {
namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr int kQueue = 8;
constexpr std::chrono::seconds kTime(4);
constexpr std::chrono::seconds kConnectTime(30);
constexpr std::chrono::milliseconds kManagementInterval(20);
// Calls in work and in the queue before one, on processors that their clients keep busy as well; and
// whatever else the machine does.
constexpr double kMaxFactor = 2 * kQueue;
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

struct Overloaded {
  // What a call takes that has the server to itself, in milliseconds.
  double alone = 0;
  Seen seen;
  // Of a health check and a GetModel together.
  std::vector<double> management;
};

class OverloadTest : public ServerTest {
 protected:
  explicit OverloadTest(const std::vector<std::string>& flags = {}) : ServerTest(flags) {
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
  static void Load(const std::shared_ptr<grpc::Channel>& channel, Clock::duration interval,
                   const std::atomic<bool>& end, Seen& seen) {
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
  // Twice what two processors can do, by this many clients: more than are in the queue and in work.
  Overloaded LoadTwice(int clients) {
    Overloaded result;
    Seen alone;
    std::atomic<bool> ended = false;
    std::thread timer([&] {
      std::this_thread::sleep_for(kTime / 4);
      ended = true;
    });
    Load(channel_, Clock::duration::zero(), ended, alone);
    timer.join();
    result.alone = Seen::Percentile(alone.accepted, 0.5);
    const double per_second =
        1000 / result.alone * std::max(1U, std::thread::hardware_concurrency());
    const auto interval = std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(clients / (2 * per_second)));
    std::vector<std::shared_ptr<grpc::Channel>> channels;
    for (int i = 0; i < kChannels; ++i) {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      channels.push_back(grpc::CreateCustomChannel(server_.address(),
                                                   grpc::InsecureChannelCredentials(), arguments));
      EXPECT_TRUE(
          channels.back()->WaitForConnected(std::chrono::system_clock::now() + kConnectTime));
    }
    std::vector<Seen> seen(clients);
    std::vector<std::thread> threads;
    std::atomic<bool> end = false;
    for (int i = 0; i < clients; ++i)
      threads.emplace_back([&, i, first = Clock::now() + i * interval / clients] {
        std::this_thread::sleep_until(first);
        Load(channels[i % kChannels], interval, end, seen[i]);
      });
    for (const auto until = Clock::now() + kTime; Clock::now() < until;) {
      std::this_thread::sleep_for(kManagementInterval);
      const auto began = Clock::now();
      EXPECT_TRUE(CallRaw("/grpc.health.v1.Health/Check", {""}).ok());
      EXPECT_EQ(Get("m", v1::MODEL_VIEW_BASIC).revision(), 0);
      result.management.push_back(Milliseconds(Clock::now() - began).count());
    }
    end = true;
    for (std::thread& thread : threads) thread.join();
    Seen& all = result.seen;
    for (const Seen& client : seen) {
      all.accepted.insert(all.accepted.end(), client.accepted.begin(), client.accepted.end());
      all.shed.insert(all.shed.end(), client.shed.begin(), client.shed.end());
      all.others += client.others;
    }
    std::printf(
        "alone %.1f ms; at twice the load %zu accepted, median %.1f and p99 %.1f ms; %zu shed in "
        "%.1f ms; management and health p99 %.1f ms; peak %zu MB\n",
        result.alone, all.accepted.size(), Seen::Percentile(all.accepted, 0.5),
        Seen::Percentile(all.accepted, 0.99), all.shed.size(), Seen::Percentile(all.shed, 0.5),
        Seen::Percentile(result.management, 0.99), PeakMemory(server_.pid()) / 1'000'000);
    EXPECT_EQ(all.others, 0);
    EXPECT_GT(all.shed.size(), 0U);
    EXPECT_GT(all.accepted.size(), 0U);
    return result;
  }

  // The same until accepted calls and management take no longer than they may. A few times, since the times contain
  // whatever else the machine does.
  Overloaded LoadUntilServed(int clients) {
    Overloaded result;
    double most = 0;
    double accepted = 0;
    double management = 0;
    for (int attempt = 0; attempt < 3; ++attempt) {
      result = LoadTwice(clients);
      most = kMaxFactor * result.alone + kSlack.count();
      accepted = Seen::Percentile(result.seen.accepted, 0.99);
      management = Seen::Percentile(result.management, 0.99);
      if (accepted < most && management < most) break;
    }
    EXPECT_LT(accepted, most);
    EXPECT_LT(management, most);
    return result;
  }

  static constexpr int kChannels = 8;
};

class OverloadShortQueueTest : public OverloadTest {
 protected:
  OverloadShortQueueTest() : OverloadTest({"--max-queued-calls", std::to_string(kQueue)}) {}
};

TEST_F(OverloadShortQueueTest, AcceptedCallsWaitForTheQueueAloneAndTheRestIsShedEarly) {
  LoadUntilServed(48);
}

// With the default options too, once a burst proves to be overload.
TEST_F(OverloadTest, AcceptedCallsWaitForAShortQueueAndTheRestIsShedEarly) {
  const Overloaded result = LoadUntilServed(400);
  EXPECT_LT(Seen::Percentile(result.seen.accepted, 0.5), kMaxFactor * result.alone);
}

// More streams than there are processors, each with work at all times.
TEST_F(OverloadTest, StreamsLeaveCallsTheirShare) {
  constexpr int kStreams = 16;
  constexpr std::chrono::seconds kLongest(5);
  v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(1);
  Create("small", settings);
  std::atomic<bool> end = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < kStreams; ++i) {
    threads.emplace_back([&] {
      grpc::ClientContext context;
      const auto stream = v1::PredictionService::NewStub(channel_)->PredictStream(&context);
      v1::PredictRequest request;
      request.set_model("models/m");
      *request.mutable_columns() = Request().columns();
      v1::PredictResponse response;
      while (!end && stream->Write(request) && stream->Read(&response)) {
      }
      stream->WritesDone();
      EXPECT_TRUE(stream->Finish().ok());
    });
  }
  std::vector<double> took;
  v1::PredictRequest small = Request();
  small.set_model("models/small");
  for (const auto until = Clock::now() + kTime; Clock::now() < until;) {
    for (const v1::PredictRequest& request : {small, Request()}) {
      const auto began = Clock::now();
      v1::PredictResponse response;
      const grpc::Status status = Predict(request, &response);
      EXPECT_TRUE(status.ok()) << status.error_message();
      EXPECT_EQ(Get("m", v1::MODEL_VIEW_BASIC).revision(), 0);
      EXPECT_LT(Clock::now() - began, kLongest);
      took.push_back(Milliseconds(Clock::now() - began).count());
    }
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
  std::printf("beside %d streams: a prediction and a report, median %.1f and p99 %.1f ms\n",
              kStreams, Seen::Percentile(took, 0.5), Seen::Percentile(took, 0.99));
}

}  // namespace
}  // namespace perceptrond::testing
