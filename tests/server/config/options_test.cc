#include "server/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/server/config/options_fixture.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::OptionsTest;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(OptionsTest, DefaultsAreSafeAndLocal) {
  const Options options = Good({});
  EXPECT_THAT(options.addresses, ElementsAre("127.0.0.1:7600"));
  EXPECT_EQ(options.data_dir, "./perceptrond-data");
  EXPECT_EQ(options.backup_dir, "");
  EXPECT_FALSE(options.accept_data_loss);
  EXPECT_EQ(options.journal, JournalKind::kRocksDb);
  EXPECT_EQ(options.durability, DurabilityChoice::kAuto);
  EXPECT_EQ(options.durability_interval, absl::Milliseconds(100));
  EXPECT_EQ(options.memory_budget, 1073741824u);
  EXPECT_EQ(options.in_flight_budget, 0u);
  EXPECT_EQ(options.write_timeout, absl::Seconds(30));
  EXPECT_EQ(options.max_models, 100000u);
  EXPECT_EQ(options.max_model_features, 268435456u);
  EXPECT_EQ(options.max_producers, 10000u);
  EXPECT_EQ(options.max_message_bytes, 16777216u);
  EXPECT_EQ(options.max_in_flight_messages, 1024u);
  EXPECT_EQ(options.max_in_flight_bytes, 16777216u);
  EXPECT_EQ(options.max_example_features, 1048576u);
  EXPECT_EQ(options.snapshot_bytes, 4194304u);
  EXPECT_EQ(options.metrics_address, "127.0.0.1:7601");
  EXPECT_EQ(options.metrics_max_models, 1000u);
  EXPECT_TRUE(options.status_page);
  EXPECT_EQ(options.max_connections, 0u);
  EXPECT_EQ(options.max_connections_per_address, 0u);
  EXPECT_EQ(options.max_streams_per_connection, 1000u);
  EXPECT_EQ(options.max_streams, 10000u);
  EXPECT_EQ(options.receive_timeout, absl::Minutes(5));
  EXPECT_EQ(options.max_connection_idle, absl::Minutes(15));
  EXPECT_EQ(options.max_connection_age, absl::ZeroDuration());
  EXPECT_EQ(options.self_probe_interval, absl::Seconds(10));
  EXPECT_EQ(options.busy_poll, absl::Microseconds(100));
  EXPECT_EQ(options.drain_timeout, absl::Seconds(30));
  EXPECT_EQ(options.log_level, LogLevel::kInfo);
  EXPECT_EQ(options.log_format, LogFormat::kText);
  EXPECT_EQ(options.tls_cert + options.tls_key + options.tls_client_ca, "");
}

TEST_F(OptionsTest, EveryFlagIsTaken) {
  const std::string pem = File("a.pem", "x");
  const Options options = Good({"--address",
                                "[::1]:1",
                                "--address=unix:/tmp/p, localhost:0",
                                "--data-dir",
                                "/d",
                                "--backup-dir",
                                "/b",
                                "--accept-data-loss",
                                "yes",
                                "--journal",
                                "memory",
                                "--durability",
                                "interval",
                                "--durability-interval",
                                "1m30s",
                                "--memory-budget",
                                "2GiB",
                                "--in-flight-budget=512MiB",
                                "--write-timeout=9s",
                                "--max-models=8",
                                "--max-model-features=7",
                                "--max-producers=8",
                                "--max-message-bytes",
                                "65536",
                                "--max-in-flight-messages",
                                "1",
                                "--max-in-flight-bytes",
                                "1MiB",
                                "--max-example-features",
                                "5",
                                "--max-message-cost",
                                "1000000",
                                "--max-queued-calls",
                                "7",
                                "--max-analysis-time",
                                "20m",
                                "--max-queued-analyses",
                                "8",
                                "--snapshot-bytes",
                                "64kib",
                                "--max-history-bytes",
                                "3MiB",
                                "--metrics-address",
                                "127.0.0.2:9",
                                "--metrics-hosts",
                                "p, p.example",
                                "--metrics-max-models",
                                "0",
                                "--status-page",
                                "off",
                                "--max-connections",
                                "11",
                                "--max-connections-per-address",
                                "12",
                                "--max-streams-per-connection",
                                "13",
                                "--max-streams",
                                "14",
                                "--receive-timeout",
                                "15s",
                                "--max-connection-idle",
                                "16s",
                                "--max-connection-age",
                                "17s",
                                "--self-probe-interval",
                                "18s",
                                "--busy-poll",
                                "20us",
                                "--drain-timeout",
                                "0",
                                "--log-level",
                                "trace",
                                "--log-format",
                                "json",
                                "--slow-call",
                                "250ms",
                                "--tls-cert",
                                pem,
                                "--tls-key",
                                pem,
                                "--tls-client-ca",
                                pem,
                                "--access-file",
                                pem,
                                "--audit-log",
                                "/a",
                                "--max-examples-per-second",
                                "7",
                                "--metrics-tls",
                                "--insecure"});
  EXPECT_THAT(options.addresses, ElementsAre("[::1]:1", "unix:/tmp/p", "localhost:0"));
  EXPECT_EQ(options.data_dir, "/d");
  EXPECT_EQ(options.backup_dir, "/b");
  EXPECT_TRUE(options.accept_data_loss);
  EXPECT_EQ(options.journal, JournalKind::kMemory);
  EXPECT_EQ(options.durability, DurabilityChoice::kInterval);
  EXPECT_EQ(options.durability_interval, absl::Seconds(90));
  EXPECT_EQ(options.memory_budget, uint64_t{2} << 30);
  EXPECT_EQ(options.in_flight_budget, uint64_t{512} << 20);
  EXPECT_EQ(options.write_timeout, absl::Seconds(9));
  EXPECT_EQ(options.max_models, 8u);
  EXPECT_EQ(options.max_model_features, 7u);
  EXPECT_EQ(options.max_producers, 8u);
  EXPECT_EQ(options.max_message_bytes, 65536u);
  EXPECT_EQ(options.max_in_flight_messages, 1u);
  EXPECT_EQ(options.max_in_flight_bytes, 1048576u);
  EXPECT_EQ(options.max_example_features, 5u);
  EXPECT_EQ(options.max_message_cost, 1'000'000u);
  EXPECT_EQ(options.max_queued_calls, 7u);
  EXPECT_EQ(options.max_analysis_time, absl::Minutes(20));
  EXPECT_EQ(options.max_queued_analyses, 8u);
  EXPECT_EQ(options.snapshot_bytes, 65536u);
  EXPECT_EQ(options.max_history_bytes, uint64_t{3} << 20);
  EXPECT_EQ(options.metrics_address, "127.0.0.2:9");
  EXPECT_THAT(options.metrics_hosts, ElementsAre("p", "p.example"));
  EXPECT_EQ(options.metrics_max_models, 0u);
  EXPECT_FALSE(options.status_page);
  EXPECT_EQ(options.max_connections, 11u);
  EXPECT_EQ(options.max_connections_per_address, 12u);
  EXPECT_EQ(options.max_streams_per_connection, 13u);
  EXPECT_EQ(options.max_streams, 14u);
  EXPECT_EQ(options.receive_timeout, absl::Seconds(15));
  EXPECT_EQ(options.max_connection_idle, absl::Seconds(16));
  EXPECT_EQ(options.max_connection_age, absl::Seconds(17));
  EXPECT_EQ(options.self_probe_interval, absl::Seconds(18));
  EXPECT_EQ(options.busy_poll, absl::Microseconds(20));
  EXPECT_EQ(options.drain_timeout, absl::ZeroDuration());
  EXPECT_EQ(options.log_level, LogLevel::kTrace);
  EXPECT_EQ(options.log_format, LogFormat::kJson);
  EXPECT_EQ(options.slow_call, absl::Milliseconds(250));
  EXPECT_EQ(options.tls_cert, pem);
  EXPECT_EQ(options.tls_key, pem);
  EXPECT_EQ(options.tls_client_ca, pem);
  EXPECT_EQ(options.access_file, pem);
  EXPECT_EQ(options.audit_log, "/a");
  EXPECT_EQ(options.max_examples_per_second, 7u);
  EXPECT_TRUE(options.metrics_tls);
  EXPECT_TRUE(options.insecure);
}

TEST_F(OptionsTest, MetricsAreOffByAnEmptyAddressOrOff) {
  EXPECT_EQ(Good({"--metrics-address="}).metrics_address, "");
  EXPECT_EQ(Good({"--metrics-address", ""}).metrics_address, "");
  EXPECT_EQ(Good({"--metrics-address", "off"}).metrics_address, "");
  EXPECT_EQ(Good({"--config", File("a.toml", "metrics-address = \"\"\n")}).metrics_address, "");
  SetEnvironment("PERCEPTROND_METRICS_ADDRESS", "off");
  EXPECT_EQ(Good({}).metrics_address, "");
}

TEST_F(OptionsTest, HostNamesAreNamesAlone) {
  EXPECT_TRUE(Good({"--metrics-hosts="}).metrics_hosts.empty());
  EXPECT_TRUE(Good({"--config", File("a.toml", "metrics-hosts = \"\"\n")}).metrics_hosts.empty());
  EXPECT_THAT(Good({"--config", File("b.toml", "metrics-hosts = [\"a\", \"b\"]\n")}).metrics_hosts,
              ElementsAre("a", "b"));
  EXPECT_THAT(Bad({"--metrics-hosts", "a:7601"}), HasSubstr("without ports"));
}

TEST_F(OptionsTest, SlowCallsAreNotLoggedByZeroOrOff) {
  EXPECT_EQ(Good({}).slow_call, absl::Seconds(1));
  EXPECT_EQ(Good({"--slow-call", "off"}).slow_call, absl::ZeroDuration());
  EXPECT_EQ(Good({"--slow-call", "0"}).slow_call, absl::ZeroDuration());
  EXPECT_THAT(ConfigText(Good({"--slow-call", "0"})), HasSubstr("slow-call = \"off\"\n"));
}

struct RangeCase {
  std::string flag;
  std::vector<std::string> good;
  std::vector<std::string> bad;
  std::string accepted;
};

void PrintTo(const RangeCase& range, std::ostream* out) { *out << range.flag; }

class OptionRange : public OptionsTest, public ::testing::WithParamInterface<RangeCase> {};

TEST_P(OptionRange, IsKeptAndNamedFromEverySource) {
  const auto& [flag, good, bad, accepted] = GetParam();
  // Some of the addresses are refused without it.
  for (const std::string& value : good) Good({"--" + flag, value, "--insecure"});
  std::string variable = "PERCEPTROND_" + flag;
  for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(toupper(c));
  for (const std::string& value : bad) {
    const auto explains = AllOf(HasSubstr("--" + flag + ": "), HasSubstr(accepted));
    EXPECT_THAT(Bad({"--" + flag, value}), explains) << value;
    EXPECT_THAT(Bad({"--config", File("a.toml", flag + " = \"" + value + "\"\n")}), explains)
        << value;
    if (value.empty()) continue;
    setenv(variable.c_str(), value.c_str(), 1);
    EXPECT_THAT(Bad({}), explains) << value;
    unsetenv(variable.c_str());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, OptionRange,
    ::testing::Values(
        RangeCase{"address",
                  {"127.0.0.1:0", "0.0.0.0:65535", "[::]:1", "unix:p", "host.example:1"},
                  {"", "127.0.0.1", ":7600", "127.0.0.1:65536", "127.0.0.1:x",
                   "127.0.0.1:", "::1:1", "[::1]", "[x]:1", "unix:", "127.0.0.1:1,"},
                  "expected HOST:PORT or [IPV6]:PORT with a port from 0 to 65535, or unix:PATH"},
        RangeCase{"data-dir", {"x"}, {""}, "expected the path of a directory"},
        RangeCase{"journal",
                  {"rocksdb", "memory"},
                  {"", "disk"},
                  "expected rocksdb, memory, or nats://HOST:PORT"},
        RangeCase{"client-address",
                  {"", "db1:7600", "[::1]:7600"},
                  {"db1", "db1:0", "unix:p"},
                  "expected HOST:PORT, with a port that clients know"},
        RangeCase{"durability",
                  {"auto", "sync", "interval", "none"},
                  {"", "fsync"},
                  "expected one of auto, sync, interval, none, replicated"},
        RangeCase{"durability-interval",
                  {"1ms", "1h"},
                  {"", "0", "100", "999us", "61m", "-1s", "inf"},
                  "from 1ms to 1h"},
        RangeCase{"memory-budget",
                  {"1MiB", "1048576", "1024TiB"},
                  {"", "0", "1048575", "-1", "1GB", "1.5GiB", "GiB", "1025TiB", "99999999999TiB",
                   "18446744073709551616", " 2MiB x"},
                  "from 1MiB to 1024TiB"},
        RangeCase{"in-flight-budget", {"0", "1GiB"}, {"", "-1", "1025TiB"}, "from 0 to 1024TiB"},
        RangeCase{"write-timeout", {"1s", "1h"}, {"", "999ms", "2h"}, "from 1s to 1h"},
        RangeCase{"max-models", {"1", "100000000"}, {"0", "100000001"}, "from 1 to 100000000"},
        RangeCase{
            "max-model-features", {"1", "268435456"}, {"0", "268435457"}, "from 1 to 268435456"},
        RangeCase{"max-producers", {"1", "10000000"}, {"0", "10000001"}, "from 1 to 10000000"},
        RangeCase{
            "max-message-bytes", {"64KiB", "1GiB"}, {"65535", "1073741825"}, "from 64KiB to 1GiB"},
        RangeCase{"max-in-flight-messages",
                  {"1", "10000"},
                  {"", "0", "10001", "-1", "1.5", "many", "1KiB"},
                  "from 1 to 10000"},
        RangeCase{
            "max-in-flight-bytes", {"64KiB", "16GiB"}, {"65535", "17GiB"}, "from 64KiB to 16GiB"},
        RangeCase{
            "max-example-features", {"1", "268435456"}, {"0", "268435457"}, "from 1 to 268435456"},
        RangeCase{"max-message-cost",
                  {"1000000", "1152921504606846976"},
                  {"", "999999", "1e9"},
                  "from 1000000 to 1152921504606846976"},
        RangeCase{"max-queued-calls", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
        RangeCase{"max-analysis-time", {"100ms", "720h"}, {"99ms", "721h"}, "from 100ms to 720h"},
        RangeCase{"max-queued-analyses", {"1", "10000"}, {"0", "10001"}, "from 1 to 10000"},
        RangeCase{"snapshot-bytes", {"4KiB", "1TiB"}, {"4095", "2TiB"}, "from 4KiB to 1TiB"},
        RangeCase{"max-history-bytes", {"0", "1TiB"}, {"2TiB"}, "from 0 to 1TiB"},
        RangeCase{"metrics-address",
                  {"127.0.0.1:0", "[::1]:7601", "[::]:1", "off"},
                  {"127.0.0.1", "7601", "[::1]", "unix:/x", "127.0.0.1:70000", "127.0.0.1:80s"},
                  "expected HOST:PORT with a port from 0 to 65535, or off"},
        RangeCase{
            "metrics-max-models", {"0", "1000000"}, {"", "1000001", "-1"}, "from 0 to 1000000"},
        RangeCase{"status-page", {"on", "off"}, {"", "yes", "1"}, "expected one of on, off"},
        RangeCase{"max-connections", {"0", "1000000"}, {"", "-1", "1000001"}, "from 0 to 1000000"},
        RangeCase{"max-connections-per-address", {"0", "9"}, {"x", "1000001"}, "from 0 to 1000000"},
        RangeCase{
            "max-streams-per-connection", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
        RangeCase{"max-streams", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
        RangeCase{"receive-timeout", {"1s", "24h"}, {"0", "999ms", "25h"}, "from 1s to 24h"},
        RangeCase{"max-connection-idle", {"0", "24h"}, {"-1s", "25h"}, "from 0 to 24h"},
        RangeCase{"max-connection-age", {"0", "8760h"}, {"-1s", "8761h"}, "from 0 to 8760h"},
        RangeCase{"self-probe-interval", {"0", "1h"}, {"-1s", "2h"}, "from 0 to 1h"},
        RangeCase{"busy-poll", {"0", "1ms", "50us"}, {"", "-1us", "2ms", "50"}, "from 0 to 1ms"},
        RangeCase{"drain-timeout", {"0", "1h"}, {"", "-1s", "2h", "soon"}, "from 0 to 1h"},
        RangeCase{"log-level",
                  {"trace", "debug", "info", "warning", "error"},
                  {"", "INFO", "warn"},
                  "expected one of trace, debug, info, warning, error"},
        RangeCase{"slow-call",
                  {"0", "off", "1us", "1h"},
                  {"", "-1s", "2h", "1", "on"},
                  "at most 1h, or off"},
        RangeCase{"log-format", {"text", "json"}, {"", "xml"}, "expected one of text, json"},
        RangeCase{"tls-cert", {}, {"/nonexistent.pem"}, "expected a file that can be read"},
        RangeCase{"tls-key", {}, {"/nonexistent.pem"}, "expected a file that can be read"},
        RangeCase{"access-file", {}, {"/nonexistent"}, "expected a file that can be read"},
        RangeCase{"max-examples-per-second",
                  {"0", "1099511627776"},
                  {"", "-1", "1099511627777"},
                  "from 0 to 1099511627776"},
        RangeCase{"metrics-tls", {"false"}, {"", "1", "on"}, "expected true or false"},
        RangeCase{"tls-client-ca", {}, {"/nonexistent.pem"}, "expected a file that can be read"}),
    [](const auto& info) {
      std::string name = info.param.flag;
      for (char& c : name) c = c == '-' ? '_' : c;
      return name;
    });

TEST_F(OptionsTest, ReplicatedDurabilityAndAJournalInNatsGoTogether) {
  EXPECT_THAT(Bad({"--durability", "replicated"}), HasSubstr("needs --journal nats://"));
  EXPECT_THAT(Bad({"--journal", "nats://n1:4222", "--durability", "sync"}),
              HasSubstr("leave --durability out"));
  Good({"--journal", "nats://n1:4222", "--durability", "replicated"});
}

TEST_F(OptionsTest, TheLagOfAFleetsCopiesIsATime) {
  EXPECT_EQ(Good({}).fleet_max_lag, absl::Seconds(30));
  EXPECT_EQ(Good({"--fleet-max-lag", "500ms"}).fleet_max_lag, absl::Milliseconds(500));
  EXPECT_THAT(Bad({"--fleet-max-lag", "0s"}), HasSubstr("--fleet-max-lag"));
}

TEST_F(OptionsTest, CertificateAndKeyGoTogether) {
  const std::string pem = File("a.pem", "x");
  EXPECT_THAT(Bad({"--tls-cert", pem}), HasSubstr("--tls-cert and --tls-key go together"));
  EXPECT_THAT(Bad({"--tls-key", pem}), HasSubstr("--tls-cert and --tls-key go together"));
  EXPECT_THAT(Bad({"--tls-client-ca", pem}), HasSubstr("--tls-client-ca needs --tls-cert"));
}

TEST_F(OptionsTest, UnknownAndRepeatedArgumentsAreErrors) {
  EXPECT_THAT(Bad({"--adress", "x:1"}), HasSubstr("--adress"));
  EXPECT_THAT(Bad({"stray"}), HasSubstr("stray"));
  EXPECT_THAT(Bad({"--log-level"}), HasSubstr("--log-level needs a value"));
  EXPECT_THAT(Bad({"--log-level", "info", "--log-level", "debug"}), HasSubstr("--log-level"));
}

TEST_F(OptionsTest, HelpNamesEveryFlagWithItsVariableRangeAndDefault) {
  const ParseResult result = ParseOptions({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  for (const char* part :
       {"--address ADDRESS,...", "--durability-interval DURATION", "from 1ms to 1h; default 100ms",
        "PERCEPTROND_MEMORY_BUDGET", "from 1MiB to 1024TiB; default 1GiB", "--config FILE",
        "PERCEPTROND_CONFIG", "--print-config", "--version", "Default 127.0.0.1:7600"}) {
    EXPECT_THAT(result.out, HasSubstr(part));
  }
}

TEST_F(OptionsTest, VersionNamesTheProgram) {
  const ParseResult result = ParseOptions({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.out, AllOf(HasSubstr("perceptrond "), HasSubstr("revision")));
}

}  // namespace
}  // namespace perceptrond
