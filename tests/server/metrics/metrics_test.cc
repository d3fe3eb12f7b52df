// What the endpoint says of models, of the server, of its process and of its calls, which the interceptor counts once, under their
// method's name; and how it answers HTTP.
#include "server/metrics/metrics.h"

#include <google/protobuf/text_format.h>
#include <grpcpp/support/status.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <tuple>

#include "absl/strings/str_split.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "server/http/http_server.h"
#include "server/metrics/rpc_metrics.h"
#include "server/metrics/stats.h"
#include "tests/server/rpc/rpc_server.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::metrics_test {
namespace {

using namespace ::perceptrond::testing;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// The answer; "" if the server closes the connection.
std::string Ask(int port, const std::string& what) {
  const int fd = ConnectRaw(port);
  const std::string request = what + " HTTP/1.0\r\n\r\n";
  EXPECT_EQ(write(fd, request.data(), request.size()), static_cast<ssize_t>(request.size()));
  std::string response;
  char buffer[4096];
  for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) response.append(buffer, n);
  close(fd);
  return response;
}

std::string Body(const std::string& response) {
  EXPECT_THAT(response, StartsWith("HTTP/1.1 200"));
  return response.substr(response.find("\r\n\r\n") + 4);
}

ModelMetrics FullModel() {
  ModelMetrics model;
  model.id = "spam";
  model.revision = 12;
  model.journal_bytes = 4096;
  model.snapshot_time = absl::FromUnixMillis(1700000000500);
  model.memory_bytes = 1 << 20;
  model.in_memory = true;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "examples: 100 mistakes: 13 updates: 12 duplicates: 3 streak: 7 radius: 3 "
      "row_errors { key: 'NON_FINITE_VALUE' value: 2 } row_errors { key: 'UNKNOWN_LABEL' value: 1 "
      "} "
      "last_pass { mistakes: 4 risk: 1.5 converged: true } progressive_error: 0.13 "
      "window_error: 0.25 window_examples: 80 window_risk: 0.5 weight_norm: 2.5 "
      "state: CONVERGENCE_STATE_NOT_SEPARABLE margin_ceiling: 0.75 bound_in_use: 0.125 "
      "margin_floor: 0.0625 update_bound: 2304 margin_refuted: false updates_left: 165 "
      "drift { detections: 2 } analysis { separability: SEPARABILITY_SEPARABLE "
      "margin_lower: 0.0625 margin_upper: 0.09375 time { seconds: 1700000000 nanos: 500000000 } }",
      &model.report));
  model.stored_examples = {.updates = 9, .sampled = 30, .complete = true};
  for (const bool retired : {false, true}) {
    ::perceptron::v1::Member& member = model.members.emplace_back();
    member.set_learner(retired ? "averaged-perceptron" : "arow, regularization 0.1");
    member.set_mistakes(retired ? 71 : 5);
    member.set_vote(retired ? 0 : 0.875);
    member.set_retired(retired);
  }
  return model;
}

class MetricsTest : public ::testing::Test {
 protected:
  void Start(size_t max_models = 1000) {
    rpc_.Add(RpcType::kUnary, "perceptron.v1.ModelService", "GetModel");
    auto metrics = Metrics::Start("127.0.0.1:0", max_models, TestSources());
    ASSERT_TRUE(metrics.ok()) << metrics.status();
    metrics_ = std::move(*metrics);
  }
  Metrics::Sources TestSources() {
    return {.models =
                [this](size_t limit) {
                  MutexLock lock(&mutex_);
                  auto models = models_;
                  models.resize(std::min(models.size(), limit));
                  return models;
                },
            .server =
                [this] {
                  MutexLock lock(&mutex_);
                  return stats_;
                },
            .rpc = &rpc_};
  }
  void SetModels(std::vector<ModelMetrics> models) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    stats_.models = models.size();
    models_ = std::move(models);
  }
  void SetStats(const ServerStats& stats) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    stats_ = stats;
  }
  std::string Scrape() { return Body(Ask(metrics_->port(), "GET /metrics")); }
  std::vector<std::string> Lines() { return absl::StrSplit(Scrape(), '\n'); }

  RpcMetrics rpc_;
  std::unique_ptr<Metrics> metrics_;

 private:
  Mutex mutex_;
  std::vector<ModelMetrics> models_ ABSL_GUARDED_BY(mutex_);
  ServerStats stats_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(MetricsTest, PromtoolFindsNothingToSay) {
  Start();
  ModelMetrics bare;
  bare.id = "bare";
  SetModels({FullModel(), bare});
  rpc_.Find("/perceptron.v1.ModelService/GetModel")
      .Handled(grpc::StatusCode::OK, absl::Microseconds(80));
  // The second scrape has what the endpoint says of the first.
  Scrape();
  const std::string path = absl::StrCat(::testing::TempDir(), "/metrics_", getpid(), ".txt");
  std::ofstream(path) << Scrape();
  FILE* promtool = popen(("promtool check metrics < " + path + " 2>&1").c_str(), "r");
  ASSERT_NE(promtool, nullptr);
  std::string said;
  char buffer[4096];
  for (size_t n; (n = fread(buffer, 1, sizeof(buffer), promtool)) > 0;) said.append(buffer, n);
  EXPECT_EQ(pclose(promtool), 0);
  EXPECT_EQ(said, "");
  unlink(path.c_str());
}

// tests/core/report/report_test.cc has the figures of reports.
TEST_F(MetricsTest, AModelsReportAndWhatIsNoFigureOfItAreExported) {
  Start();
  SetModels({FullModel()});
  const std::vector<std::string> lines = Lines();
  for (const auto& [figure, value] : {std::pair{"examples_total", "100"},
                                      {"stored_examples", "39"},
                                      {"sample_complete", "1"},
                                      {"revision", "12"},
                                      {"journal_bytes", "4096"},
                                      {"snapshot_timestamp_seconds", "1700000000.5"},
                                      {"memory_bytes", "1048576"},
                                      {"in_memory", "1"}})
    EXPECT_THAT(lines, ::testing::Contains(absl::StrCat("perceptrond_model_", figure,
                                                        "{model_name=\"spam\"} ", value)));
  for (const auto& [member, mistakes, vote] :
       {std::tuple{"arow, regularization 0.1", 5, 0.875}, {"averaged-perceptron", 71, 0.0}}) {
    const std::string labels = absl::StrCat("{model_name=\"spam\",member=\"", member, "\"} ");
    for (const std::string& line : {absl::StrCat("mistakes_total", labels, mistakes),
                                    absl::StrCat("vote_ratio", labels, vote)})
      EXPECT_THAT(lines, ::testing::Contains("perceptrond_model_member_" + line));
  }
  for (const char* line : {"# TYPE perceptrond_model_member_mistakes_total counter",
                           "# TYPE perceptrond_model_updates_total counter",
                           "# TYPE perceptrond_model_revision gauge"})
    EXPECT_THAT(lines, ::testing::Contains(line));
}

TEST_F(MetricsTest, WhatIsNotKnownHasNoSeries) {
  Start();
  ModelMetrics bare;
  bare.id = "bare";
  SetModels({bare});
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("perceptrond_model_examples_total{model_name=\"bare\"} 0"));
  EXPECT_THAT(text, HasSubstr("perceptrond_model_in_memory{model_name=\"bare\"} 0"));
  for (const char* family :
       {"row_errors_total", "progressive_error_ratio", "window_error_ratio", "window_risk",
        "margin_", "bound_in_use_ratio", "update_bound", "last_pass_", "analysis_",
        "snapshot_timestamp_seconds", "weight_norm", "journal_bytes", "window_examples",
        "drift_window_examples", "state", "member_"}) {
    EXPECT_THAT(text, Not(HasSubstr(absl::StrCat("perceptrond_model_", family)))) << family;
  }
}

TEST_F(MetricsTest, ModelsBeyondTheCapAreCountedOnly) {
  Start(/*max_models=*/2);
  std::vector<ModelMetrics> models(5);
  for (size_t i = 0; i < models.size(); ++i) models[i].id = absl::StrCat("m", i);
  SetModels(models);
  EXPECT_THAT(Scrape(), AllOf(HasSubstr("\"m1\""), Not(HasSubstr("\"m2\"")),
                              HasSubstr("perceptrond_models 5\n"),
                              HasSubstr("perceptrond_models_not_exported 3\n")));
}

TEST_F(MetricsTest, TheServerIsDescribed) {
  Start();
  SetStats({.models = 9,
            .models_in_memory = 4,
            .memory_bytes = 5,
            .memory_budget_bytes = 6,
            .memory_uses = {{"models", 61, 62}, {"answers", 63, 64}},
            .slow_consumers = 65,
            .journal_commits = 7,
            .journal_commit_failures = 8,
            .journal_commit_seconds = 0.5,
            .journal_wait_seconds = 0.25,
            .journal_lost_writes = 30,
            .journal_read_only = true,
            .disk_free_bytes = 14,
            .disk_size_bytes = 15,
            .disk_reserve_bytes = 16,
            .snapshot_threshold_bytes = 17,
            .loads = 10,
            .evictions = 11,
            .snapshots = 12,
            .snapshot_failures = 13,
            .fleet = ServerStats::Fleet{.servers = 31,
                                        .partitions_written = 32,
                                        .partitions_unreachable = 34,
                                        .take_overs = 33,
                                        .contact_seconds = 0.125,
                                        .delay_seconds = 2.5,
                                        .pending_entries = 36},
            .models_expired = 68,
            .predictions =
                {.waiting = 37, .joined = 38, .expired = 39, .delays = {1, 2}, .delay_sum = 12.5},
            .transport = {.open = 18,
                          .accepted = 19,
                          .refused = {20, 21, 22},
                          .closed = {23, 24, 25, 26, 27},
                          .streams_refused_connection = 28,
                          .streams_refused_all = 29}});
  const std::vector<std::string> lines = Lines();
  for (const char* line : {"models 9",
                           "fleet_servers 31",
                           "fleet_partitions_written 32",
                           "fleet_partitions_unreachable 34",
                           "fleet_take_overs_total 33",
                           "fleet_pending_entries 36",
                           "fleet_contact_seconds 0.125",
                           "fleet_delay_seconds 2.5",
                           "predictions_waiting 37",
                           "predictions_joined_total 38",
                           "predictions_expired_total 39",
                           "prediction_label_delay_seconds_bucket{le=\"1\"} 1",
                           "prediction_label_delay_seconds_bucket{le=\"10\"} 3",
                           "prediction_label_delay_seconds_bucket{le=\"+Inf\"} 3",
                           "prediction_label_delay_seconds_sum 12.5",
                           "models_not_exported 9",
                           "models_in_memory 4",
                           "memory_bytes 5",
                           "memory_budget_bytes 6",
                           "journal_commits_total 7",
                           "journal_commit_failures_total 8",
                           "loads_total 10",
                           "evictions_total 11",
                           "models_expired_total 68",
                           "snapshots_total 12",
                           "snapshot_failures_total 13",
                           "journal_commit_seconds_total 0.5",
                           "journal_wait_seconds 0.25",
                           "journal_lost_writes 30",
                           "journal_read_only 1",
                           "disk_free_bytes 14",
                           "disk_size_bytes 15",
                           "disk_reserve_bytes 16",
                           "snapshot_threshold_bytes 17",
                           "in_flight_rpcs 0",
                           "connections_open 18",
                           "connections_accepted_total 19",
                           "connections_refused_total{reason=\"max_connections\"} 20",
                           "connections_refused_total{reason=\"descriptors\"} 22",
                           "connections_closed_total{reason=\"no_call\"} 23",
                           "connections_closed_total{reason=\"memory\"} 27",
                           "calls_refused_total{reason=\"max_streams_per_connection\"} 28",
                           "calls_refused_total{reason=\"max_streams\"} 29"})
    EXPECT_THAT(lines, ::testing::Contains(absl::StrCat("perceptrond_", line)));
  const std::string text = Scrape();
  EXPECT_THAT(text, HasSubstr("perceptrond_build_info{version=\""));
  for (const char* name :
       {"process_cpu_seconds_total ", "process_resident_memory_bytes ",
        "process_virtual_memory_bytes ", "process_open_fds ", "process_start_time_seconds "}) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", name)));
  }
}

TEST_F(MetricsTest, RpcsAreCountedByTheUsualNames) {
  Start();
  RpcMethodMetrics& method = rpc_.Find("/perceptron.v1.ModelService/GetModel");
  method.Started();
  method.Started();
  method.Started();
  method.Received();
  method.Sent();
  method.Handled(grpc::StatusCode::OK, absl::Microseconds(80));
  method.Handled(grpc::StatusCode::NOT_FOUND, absl::Seconds(2));
  const std::string labels =
      "{grpc_type=\"unary\",grpc_service=\"perceptron.v1.ModelService\",grpc_method=\"GetModel\"";
  const std::vector<std::string> lines = Lines();
  for (const std::string& line : {
           "grpc_server_started_total" + labels + "} 3",
           "grpc_server_msg_received_total" + labels + "} 1",
           "grpc_server_msg_sent_total" + labels + "} 1",
           "grpc_server_handled_total" + labels + ",grpc_code=\"OK\"} 1",
           "grpc_server_handled_total" + labels + ",grpc_code=\"NotFound\"} 1",
           "grpc_server_handled_total" + labels + ",grpc_code=\"DataLoss\"} 0",
           "grpc_server_handling_seconds_count" + labels + "} 2",
           "grpc_server_handling_seconds_bucket" + labels + ",le=\"5e-05\"} 0",
           "grpc_server_handling_seconds_bucket" + labels + ",le=\"0.0001\"} 1",
           "grpc_server_handling_seconds_bucket" + labels + ",le=\"60\"} 2",
           "grpc_server_handling_seconds_bucket" + labels + ",le=\"+Inf\"} 2",
           std::string("perceptrond_in_flight_rpcs 1"),
       }) {
    EXPECT_THAT(lines, ::testing::Contains(line));
  }
}

TEST_F(MetricsTest, ConnectionsThatSayNothingDoNotKeepAScrapeWaitingAndTheOldestMakesRoom) {
  Start();
  std::vector<int> silent;
  for (size_t i = 0; i < 2 * HttpServer::kMaxConnections; ++i)
    silent.push_back(ConnectRaw(metrics_->port()));
  EXPECT_THAT(Ask(metrics_->port(), "GET /metrics"), HasSubstr("perceptrond_build_info"));
  char byte;
  EXPECT_EQ(recv(silent.front(), &byte, 1, 0), 0);
  EXPECT_EQ(recv(silent.back(), &byte, 1, MSG_DONTWAIT), -1);
  for (const int fd : silent) close(fd);
}

TEST_F(MetricsTest, MetricsAreOnlyRead) {
  Start();
  EXPECT_THAT(Ask(metrics_->port(), "POST /metrics"),
              AllOf(HasSubstr("HTTP/1.1 405"), HasSubstr("Allow: GET, HEAD")));
}

TEST_F(MetricsTest, APortInUseIsSaidSo) {
  Start();
  const std::string address = absl::StrCat("127.0.0.1:", metrics_->port());
  const auto second = Metrics::Start(address, 1, TestSources());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              AllOf(HasSubstr("cannot listen for metrics on " + address), HasSubstr("in use")));
}

TEST(ProcessStats, AreTheFiguresOfTheFilesOfProc) {
  const TempDir proc;
  std::filesystem::create_directories(proc.path() + "/self/fd");
  const auto write_file = [&](const std::string& path, const std::string& text) {
    std::ofstream(proc.path() + "/" + path) << text;
  };
  write_file(
      "self/stat",
      "7 (odd) name ( 9) S 1 2 3 4 5 6 7 8 9 10 250 150 13 14 15 16 17 18 1000 4096000 25 99\n");
  write_file("stat", "cpu 1 2 3\nbtime 1700000000\nprocesses 5\n");
  write_file("self/limits",
             "Limit                     Soft Limit           Hard Limit           Units\n"
             "Max open files            1024                 524288               files\n");
  write_file("self/fd/0", "");
  write_file("self/fd/1", "");
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const ProcessStats stats = ReadProcessStats(proc.path());
  EXPECT_DOUBLE_EQ(*stats.cpu_seconds, 400 / ticks);
  EXPECT_EQ(stats.virtual_bytes, 4096000u);
  EXPECT_EQ(stats.resident_bytes, 25u * sysconf(_SC_PAGESIZE));
  EXPECT_DOUBLE_EQ(*stats.start_time_seconds, 1700000000 + 1000 / ticks);
  EXPECT_EQ(stats.open_fds, 2u);
  EXPECT_EQ(stats.max_fds, 1024u);
  write_file("self/limits",
             "Max open files            unlimited            unlimited      files\n");
  EXPECT_FALSE(ReadProcessStats(proc.path()).max_fds.has_value());
}

TEST(ProcessStats, WhatCannotBeReadIsAbsent) {
  const ProcessStats stats = ReadProcessStats("/nonexistent");
  EXPECT_FALSE(stats.cpu_seconds.has_value());
  EXPECT_FALSE(stats.resident_bytes.has_value());
  EXPECT_FALSE(stats.virtual_bytes.has_value());
  EXPECT_FALSE(stats.open_fds.has_value());
  EXPECT_FALSE(stats.max_fds.has_value());
  EXPECT_FALSE(stats.start_time_seconds.has_value());
}

constexpr char kGetModel[] = "/perceptron.v1.ModelService/GetModel";
constexpr char kWatchModel[] = "/perceptron.v1.ModelService/WatchModel";
constexpr char kLearnStream[] = "/perceptron.v1.LearningService/LearnStream";

class RpcMetricsTest : public ::testing::Test {
 protected:
  RpcMetricsTest() {
    for (const auto* message : {perceptron::v1::GetModelRequest::descriptor(),
                                perceptron::v1::LearnStreamRequest::descriptor()})
      metrics_.AddService(*message->file()->service(0));
    RpcServer::Interceptors interceptors;
    interceptors.push_back(MakeRpcMetricsInterceptor(metrics_));
    server_ = std::make_unique<RpcServer>(
        [this](const std::string&) -> const Call::Method& { return method_; }, 1,
        std::move(interceptors));
  }

  // One call that sends so many messages and reads until the end.
  grpc::Status Exchange(const std::string& path, int messages, const std::string& message = "m") {
    ClientCall call(server_->Connect(), path);
    for (int i = 0; i < messages; ++i) call.Write(message);
    call.WritesDone();
    for (std::string answer; call.Read(answer);) {
    }
    return call.Finish();
  }
  // Once every call is over, `code` alone was counted, so often.
  const RpcMethodMetrics& ExpectHandled(const std::string& path, grpc::StatusCode code,
                                        uint64_t times) {
    server_->Stop();
    const RpcMethodMetrics& method = metrics_.Find(path);
    for (size_t i = 0; i < kRpcCodes; ++i) {
      EXPECT_EQ(method.handled(i), i == static_cast<size_t>(code) ? times : 0) << RpcCodeName(i);
    }
    EXPECT_EQ(method.started(), times);
    uint64_t observed = 0;
    for (size_t i = 0; i <= kRpcLatencyBounds.size(); ++i) observed += method.latency_bucket(i);
    EXPECT_EQ(observed, times);
    EXPECT_EQ(metrics_.in_flight(), 0);
    return method;
  }

  CallCounts counts_;
  RpcMetrics metrics_;
  Call::Method method_ = Make<Echo>(counts_);
  std::unique_ptr<RpcServer> server_;
};

TEST_F(RpcMetricsTest, CallsOfEveryTypeCountTheirMessagesBothWays) {
  const struct {
    const char* path;
    const char* type;
    uint64_t messages;
  } cases[] = {
      {kGetModel, "unary", 1}, {kWatchModel, "server_stream", 3}, {kLearnStream, "bidi_stream", 5}};
  for (const auto& one : cases)
    EXPECT_TRUE(Exchange(one.path, static_cast<int>(one.messages)).ok());
  for (const auto& one : cases) {
    const RpcMethodMetrics& method = ExpectHandled(one.path, grpc::StatusCode::OK, 1);
    EXPECT_STREQ(RpcTypeName(method.type()), one.type);
    EXPECT_EQ(method.received(), one.messages) << one.path;
    EXPECT_EQ(method.sent(), one.messages) << one.path;
    EXPECT_GT(method.latency_sum_seconds(), 0);
  }
}

TEST_F(RpcMetricsTest,
       AnOpenStreamIsInFlightAndOneThatTheClientCancelsIsCanceledWhateverTheServerSays) {
  // Finishes with OK once it is cancelled.
  class Content final : public Reactor {
   public:
    explicit Content(Call& call) : call_(call) {}
    void OnCancel() override { call_.Finish(grpc::Status::OK); }

   private:
    Call& call_;
  };
  method_ = [this](Call& call) {
    call.Bind(std::make_shared<Content>(call));
    counts_.Begin();
  };
  ClientCall call(server_->Connect(), kLearnStream);
  ASSERT_TRUE(counts_.AwaitBegun(1));
  EXPECT_EQ(metrics_.in_flight(), 1);
  call.Cancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::StatusCode::CANCELLED);
  ExpectHandled(kLearnStream, grpc::StatusCode::CANCELLED, 1);
}

TEST_F(RpcMetricsTest, UnknownMethodsShareOneName) {
  for (const char* path : {"/perceptron.v1.ModelService/Guess", "/a/b", "/c/d", "/nonsense"})
    EXPECT_TRUE(Exchange(path, 1).ok());
  const RpcMethodMetrics& method = ExpectHandled("/no/such", grpc::StatusCode::OK, 4);
  EXPECT_EQ(method.service(), "unknown");
  EXPECT_EQ(method.method(), "unknown");
}

TEST(RpcMethodMetrics, LatenciesFallIntoTheBucketTheyDoNotExceedAndCodesNobodyDefinedAreUnknown) {
  RpcMethodMetrics method(RpcType::kUnary, "s", "m");
  method.Handled(0, absl::Microseconds(50));
  method.Handled(17, absl::Microseconds(51));
  method.Handled(static_cast<size_t>(-1), absl::Seconds(61));
  EXPECT_EQ(method.latency_bucket(0), 1);
  EXPECT_EQ(method.latency_bucket(1), 1);
  EXPECT_EQ(method.latency_bucket(kRpcLatencyBounds.size()), 1);
  EXPECT_NEAR(method.latency_sum_seconds(), 61.000101, 1e-9);
  EXPECT_EQ(method.handled(grpc::StatusCode::UNKNOWN), 2);
  EXPECT_STREQ(RpcCodeName(99), "Unknown");
  EXPECT_STREQ(RpcCodeName(grpc::StatusCode::CANCELLED), "Canceled");
}

}  // namespace
}  // namespace perceptrond::metrics_test
