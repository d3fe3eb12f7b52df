#include "server/config/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tests/server/config/options_fixture.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::OptionsTest;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(OptionsTest, DefaultsAreSafeAndLocal) {
  EXPECT_EQ(ConfigText(Good({})), R"(address = ["127.0.0.1:7600"]
data-dir = "./perceptrond-data"
backup-dir = ""
accept-data-loss = "no"
journal = "rocksdb"
nats-credentials = ""
nats-ca = ""
nats-cert = ""
nats-key = ""
fleet = "perceptrond"
fleet-address = "127.0.0.1:7602"
client-address = ""
fleet-advertise = ""
fleet-partitions = 16
fleet-replicas = 3
fleet-timeout = "2s"
fleet-max-lag = "30s"
fleet-cert = ""
fleet-key = ""
fleet-ca = ""
durability = "auto"
durability-interval = "100ms"
memory-budget = "1GiB"
in-flight-budget = "0"
write-timeout = "30s"
max-models = 100000
max-model-features = 268435456
max-producers = 10000
max-message-bytes = "16MiB"
max-connections = 0
max-connections-per-address = 0
max-streams-per-connection = 1000
max-streams = 10000
receive-timeout = "5m"
max-connection-idle = "15m"
max-connection-age = "0"
self-probe-interval = "10s"
max-in-flight-messages = 1024
max-in-flight-bytes = "16MiB"
max-example-features = 1048576
max-message-cost = 4000000000
max-queued-calls = 1024
max-queue-wait = "10ms"
max-analysis-time = "15m"
max-queued-analyses = 64
snapshot-bytes = "4MiB"
max-history-bytes = "256MiB"
metrics-address = "127.0.0.1:7601"
metrics-hosts = ""
metrics-max-models = 1000
metrics-tls = false
status-page = "on"
busy-poll = "100us"
drain-timeout = "30s"
log-level = "info"
log-format = "text"
slow-call = "1s"
tls-cert = ""
tls-key = ""
tls-client-ca = ""
access-file = ""
max-examples-per-second = 0
audit-log = ""
insecure = false
)");
}

struct OptionCase {
  std::string flag;
  // The last one is not the default.
  std::vector<std::string> good;
  std::vector<std::string> bad;
  std::string accepted;
};

const std::vector<OptionCase>& Cases() {
  static const auto& cases = *new std::vector<OptionCase>{
      {"address",
       {"127.0.0.1:0", "0.0.0.0:65535", "[::]:1", "unix:p", "host.example:1"},
       {"", "127.0.0.1", ":7600", "127.0.0.1:65536", "127.0.0.1:x", "127.0.0.1:", "::1:1", "[::1]",
        "[x]:1", "unix:", "127.0.0.1:1,"},
       "expected HOST:PORT or [IPV6]:PORT with a port from 0 to 65535, or unix:PATH"},
      {"data-dir", {"x"}, {""}, "expected the path of a directory"},
      {"journal",
       {"rocksdb", "memory"},
       {"", "disk"},
       "expected rocksdb, memory, or nats://HOST:PORT"},
      {"client-address",
       {"", "db1:7600", "[::1]:7600"},
       {"db1", "db1:0", "unix:p"},
       "expected HOST:PORT, with a port that clients know"},
      {"durability",
       {"auto", "sync", "interval", "none"},
       {"", "fsync"},
       "expected one of auto, sync, interval, none, replicated"},
      {"durability-interval",
       {"1ms", "1h"},
       {"", "0", "100", "999us", "61m", "-1s", "inf"},
       "from 1ms to 1h"},
      {"memory-budget",
       {"1MiB", "1048576", "1024TiB"},
       {"", "0", "1048575", "-1", "1GB", "1.5GiB", "GiB", "1025TiB", "99999999999TiB",
        "18446744073709551616", " 2MiB x"},
       "from 1MiB to 1024TiB"},
      {"in-flight-budget", {"0", "1GiB"}, {"", "-1", "1025TiB"}, "from 0 to 1024TiB"},
      {"write-timeout", {"1s", "1h"}, {"", "999ms", "2h"}, "from 1s to 1h"},
      {"max-models", {"1", "100000000"}, {"0", "100000001"}, "from 1 to 100000000"},
      {"max-model-features", {"268435456", "1"}, {"0", "268435457"}, "from 1 to 268435456"},
      {"max-producers", {"1", "10000000"}, {"0", "10000001"}, "from 1 to 10000000"},
      {"max-message-bytes", {"64KiB", "1GiB"}, {"65535", "1073741825"}, "from 64KiB to 1GiB"},
      {"max-in-flight-messages",
       {"1", "10000"},
       {"", "0", "10001", "-1", "1.5", "many", "1KiB"},
       "from 1 to 10000"},
      {"max-in-flight-bytes", {"64KiB", "16GiB"}, {"65535", "17GiB"}, "from 64KiB to 16GiB"},
      {"max-example-features", {"1", "268435456"}, {"0", "268435457"}, "from 1 to 268435456"},
      {"max-message-cost",
       {"1000000", "1152921504606846976"},
       {"", "999999", "1e9"},
       "from 1000000 to 1152921504606846976"},
      {"max-queued-calls", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
      {"max-queue-wait", {"1ms", "1m"}, {"0", "61s"}, "from 1ms to 1m"},
      {"fleet-partitions", {"1", "256"}, {"0", "257"}, "from 1 to 256"},
      {"fleet-timeout", {"200ms", "10m"}, {"199ms", "11m"}, "from 200ms to 10m"},
      {"fleet-max-lag", {"100ms", "24h"}, {"0s", "25h"}, "from 100ms to 24h"},
      {"max-analysis-time", {"100ms", "720h"}, {"99ms", "721h"}, "from 100ms to 720h"},
      {"max-queued-analyses", {"1", "10000"}, {"0", "10001"}, "from 1 to 10000"},
      {"snapshot-bytes", {"4KiB", "1TiB"}, {"4095", "2TiB"}, "from 4KiB to 1TiB"},
      {"max-history-bytes", {"0", "1TiB"}, {"2TiB"}, "from 0 to 1TiB"},
      {"metrics-address",
       {"127.0.0.1:0", "[::1]:7601", "[::]:1", "off"},
       {"127.0.0.1", "7601", "[::1]", "unix:/x", "127.0.0.1:70000", "127.0.0.1:80s"},
       "expected HOST:PORT with a port from 0 to 65535, or off"},
      {"metrics-max-models", {"0", "1000000"}, {"", "1000001", "-1"}, "from 0 to 1000000"},
      {"status-page", {"on", "off"}, {"", "yes", "1"}, "expected one of on, off"},
      {"max-connections", {"0", "1000000"}, {"", "-1", "1000001"}, "from 0 to 1000000"},
      {"max-connections-per-address", {"0", "9"}, {"x", "1000001"}, "from 0 to 1000000"},
      {"max-streams-per-connection", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
      {"max-streams", {"1", "1000000"}, {"0", "1000001"}, "from 1 to 1000000"},
      {"receive-timeout", {"1s", "24h"}, {"0", "999ms", "25h"}, "from 1s to 24h"},
      {"max-connection-idle", {"0", "24h"}, {"-1s", "25h"}, "from 0 to 24h"},
      {"max-connection-age", {"0", "8760h"}, {"-1s", "8761h"}, "from 0 to 8760h"},
      {"self-probe-interval", {"0", "1h"}, {"-1s", "2h"}, "from 0 to 1h"},
      {"busy-poll", {"0", "1ms", "50us"}, {"", "-1us", "2ms", "50"}, "from 0 to 1ms"},
      {"drain-timeout", {"0", "1h"}, {"", "-1s", "2h", "soon"}, "from 0 to 1h"},
      {"log-level",
       {"trace", "debug", "info", "warning", "error"},
       {"", "INFO", "warn"},
       "expected one of trace, debug, info, warning, error"},
      {"slow-call", {"0", "off", "1us", "1h"}, {"", "-1s", "2h", "1", "on"}, "at most 1h, or off"},
      {"log-format", {"text", "json"}, {"", "xml"}, "expected one of text, json"},
      {"tls-cert", {}, {"/nonexistent.pem"}, "expected a file that can be read"},
      {"tls-key", {}, {"/nonexistent.pem"}, "expected a file that can be read"},
      {"access-file", {}, {"/nonexistent"}, "expected a file that can be read"},
      {"max-examples-per-second",
       {"0", "1099511627776"},
       {"", "-1", "1099511627777"},
       "from 0 to 1099511627776"},
      {"metrics-tls", {"false"}, {"", "1", "on"}, "expected true or false"},
      {"tls-client-ca", {}, {"/nonexistent.pem"}, "expected a file that can be read"}};
  return cases;
}

TEST_F(OptionsTest, EveryFlagIsTakenAndChangesItselfAlone) {
  // Some of the addresses are refused without --insecure.
  const std::vector<std::string> before = absl::StrSplit(ConfigText(Good({"--insecure"})), '\n');
  for (const auto& [flag, good, bad, accepted] : Cases()) {
    if (good.empty() || good.back() == "false") continue;
    for (const std::string& value : good) Good({"--" + flag, value, "--insecure"});
    std::vector<std::string> after = absl::StrSplit(
        ConfigText(Good({"--insecure", absl::StrCat("--", flag, "=", good.back())})), '\n');
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i] != before[i], absl::StartsWith(before[i], flag + " =")) << flag;
  }
}

TEST_F(OptionsTest, ABadValueIsRefusedWithItsFlagAndWhatIsAcceptedFromEverySource) {
  for (const auto& [flag, good, bad, accepted] : Cases()) {
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
}

TEST_F(OptionsTest, ListsAndUnitsAreRead) {
  const Options options =
      Good({"--address", "[::1]:1", "--address=unix:/tmp/p, localhost:0", "--metrics-hosts",
            "p, p.example", "--memory-budget", "2GiB", "--snapshot-bytes", "64kib",
            "--durability-interval", "1m30s", "--slow-call", "250ms"});
  EXPECT_THAT(options.addresses, ElementsAre("[::1]:1", "unix:/tmp/p", "localhost:0"));
  EXPECT_THAT(options.metrics_hosts, ElementsAre("p", "p.example"));
  EXPECT_EQ(options.memory_budget, uint64_t{2} << 30);
  EXPECT_EQ(options.snapshot_bytes, 65536u);
  EXPECT_EQ(options.durability_interval, absl::Seconds(90));
  EXPECT_EQ(options.slow_call, absl::Milliseconds(250));
  EXPECT_THAT(ConfigText(Good({"--slow-call", "0"})), HasSubstr("slow-call = \"off\"\n"));
}

TEST_F(OptionsTest, ReplicatedDurabilityAndAJournalInNatsGoTogether) {
  EXPECT_THAT(Bad({"--durability", "replicated"}), HasSubstr("needs --journal nats://"));
  EXPECT_THAT(Bad({"--journal", "nats://n1:4222", "--durability", "sync"}),
              HasSubstr("leave --durability out"));
  Good({"--journal", "nats://n1:4222", "--durability", "replicated"});
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

}  // namespace
}  // namespace perceptrond
