// The flags, their values and defaults; precedence of flags, environment and config file, and what a config file may hold.
#include "server/config/options.h"

#include <gmock/gmock.h>

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
  const Options options = Good({});
  EXPECT_THAT(options.addresses, ElementsAre("127.0.0.1:7600"));
  EXPECT_EQ(options.metrics_address, "127.0.0.1:7601");
  EXPECT_EQ(options.fleet_address, "127.0.0.1:7602");
  EXPECT_FALSE(options.insecure);
  EXPECT_FALSE(options.accept_data_loss);
  EXPECT_EQ(options.durability, DurabilityChoice::kAuto);
  EXPECT_EQ(options.durability_interval, absl::Milliseconds(100));
  EXPECT_EQ(options.drain_timeout, absl::Seconds(30));
}

struct OptionCase {
  std::string flag;
  // The last one is not the default.
  std::vector<std::string> good;
  std::vector<std::string> bad;
};

const std::vector<OptionCase>& Cases() {
  static const auto& cases = *new std::vector<OptionCase>{
      {"address",
       {"127.0.0.1:0", "0.0.0.0:65535", "[::]:1", "unix:p", "host.example:1"},
       {"", "127.0.0.1", ":7600", "127.0.0.1:65536", "127.0.0.1:x", "127.0.0.1:", "::1:1", "[::1]",
        "[x]:1", "unix:", "127.0.0.1:1,"}},
      {"data-dir", {"x"}, {""}},
      {"journal", {"rocksdb", "memory", "postgres://u@h:5433,i/d"}, {"", "disk", "nats://h:1"}},
      {"client-address", {"", "db1:7600", "[::1]:7600"}, {"db1", "db1:0", "unix:p"}},
      {"durability", {"auto", "sync", "interval", "none"}, {"", "fsync"}},
      {"durability-interval", {"1ms", "1h"}, {"", "0", "100", "999us", "61m", "-1s", "inf"}},
      {"memory-budget",
       {"1MiB", "1048576", "1024TiB"},
       {"", "0", "1048575", "-1", "1GB", "1.5GiB", "GiB", "1025TiB", "99999999999TiB",
        "18446744073709551616", " 2MiB x"}},
      {"in-flight-budget", {"0", "1GiB"}, {"", "-1", "1025TiB"}},
      {"write-timeout", {"1s", "1h"}, {"", "999ms", "2h"}},
      {"max-models", {"1", "100000000"}, {"0", "100000001"}},
      {"max-model-features", {"268435456", "1"}, {"0", "268435457"}},
      {"max-producers", {"1", "10000000"}, {"0", "10000001"}},
      {"max-message-bytes", {"64KiB", "1GiB"}, {"65535", "1073741825"}},
      {"max-in-flight-messages", {"1", "10000"}, {"", "0", "10001", "-1", "1.5", "many", "1KiB"}},
      {"max-in-flight-bytes", {"64KiB", "16GiB"}, {"65535", "17GiB"}},
      {"max-example-features", {"1", "268435456"}, {"0", "268435457"}},
      {"max-message-cost", {"1000000", "1152921504606846976"}, {"", "999999", "1e9"}},
      {"max-queued-calls", {"1", "1000000"}, {"0", "1000001"}},
      {"max-queue-wait", {"1ms", "1m"}, {"0", "61s"}},
      {"fleet", {"perceptrond", "_a1"}, {"", "1a", "A", "a-b", "pg_a", std::string(51, 'a')}},
      {"fleet-partitions", {"1", "256"}, {"0", "257"}},
      {"fleet-timeout", {"200ms", "10m"}, {"199ms", "11m"}},
      {"fleet-max-lag", {"100ms", "24h"}, {"0s", "25h"}},
      {"max-analysis-time", {"100ms", "720h"}, {"99ms", "721h"}},
      {"max-queued-analyses", {"1", "10000"}, {"0", "10001"}},
      {"snapshot-bytes", {"4KiB", "1TiB"}, {"4095", "2TiB"}},
      {"max-history-bytes", {"0", "1TiB"}, {"2TiB"}},
      {"metrics-address",
       {"127.0.0.1:0", "[::1]:7601", "[::]:1", "off"},
       {"127.0.0.1", "7601", "[::1]", "unix:/x", "127.0.0.1:70000", "127.0.0.1:80s"}},
      {"metrics-max-models", {"0", "1000000"}, {"", "1000001", "-1"}},
      {"status-page", {"on", "off"}, {"", "yes", "1"}},
      {"max-connections", {"0", "1000000"}, {"", "-1", "1000001"}},
      {"max-connections-per-address", {"0", "9"}, {"x", "1000001"}},
      {"max-streams-per-connection", {"1", "1000000"}, {"0", "1000001"}},
      {"max-streams", {"1", "1000000"}, {"0", "1000001"}},
      {"receive-timeout", {"1s", "24h"}, {"0", "999ms", "25h"}},
      {"max-connection-idle", {"0", "24h"}, {"-1s", "25h"}},
      {"max-connection-age", {"0", "8760h"}, {"-1s", "8761h"}},
      {"self-probe-interval", {"0", "1h"}, {"-1s", "2h"}},
      {"busy-poll", {"0", "1ms", "50us"}, {"", "-1us", "2ms", "50"}},
      {"drain-timeout", {"0", "1h"}, {"", "-1s", "2h", "soon"}},
      {"log-level", {"trace", "debug", "info", "warning", "error"}, {"", "INFO", "warn"}},
      {"slow-call", {"0", "off", "1us", "1h"}, {"", "-1s", "2h", "1", "on"}},
      {"log-format", {"text", "json"}, {"", "xml"}},
      {"tls-cert", {}, {"/nonexistent.pem"}},
      {"tls-key", {}, {"/nonexistent.pem"}},
      {"access-file", {}, {"/nonexistent"}},
      {"max-examples-per-second", {"0", "1099511627776"}, {"", "-1", "1099511627777"}},
      {"metrics-tls", {"false"}, {"", "1", "on"}},
      {"tls-client-ca", {}, {"/nonexistent.pem"}}};
  return cases;
}

TEST_F(OptionsTest, EveryFlagIsTakenAndChangesItselfAlone) {
  // Some of the addresses are refused without --insecure.
  const std::vector<std::string> before = absl::StrSplit(ConfigText(Good({"--insecure"})), '\n');
  for (const auto& [flag, good, bad] : Cases()) {
    if (good.empty() || good.back() == "false") continue;
    for (const std::string& value : good) Good({"--" + flag, value, "--insecure"});
    std::vector<std::string> after = absl::StrSplit(
        ConfigText(Good({"--insecure", absl::StrCat("--", flag, "=", good.back())})), '\n');
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i)
      EXPECT_EQ(after[i] != before[i], absl::StartsWith(before[i], flag + " =")) << flag;
  }
}

TEST_F(OptionsTest, ABadValueIsRefusedWithItsFlagFromEverySource) {
  for (const auto& [flag, good, bad] : Cases()) {
    std::string variable = "PERCEPTROND_" + flag;
    for (char& c : variable) c = c == '-' ? '_' : static_cast<char>(toupper(c));
    for (const std::string& value : bad) {
      const auto explains = HasSubstr("--" + flag + ": ");
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

TEST_F(OptionsTest, ADurabilityGoesWithAJournalThatHasIt) {
  for (const char* const durability : {"replicated", "external"}) {
    EXPECT_THAT(Bad({"--durability", durability}), HasSubstr("need --journal postgres://"));
    Good({"--journal", "postgres://u@a,b/d", "--durability", durability});
  }
  for (const char* const durability : {"interval", "none"}) {
    EXPECT_THAT(Bad({"--journal", "postgres:///d", "--durability", durability}),
                HasSubstr("not for --journal postgres://"));
  }
  Good({"--journal", "postgresql://u@[::1]:5433/d?sslmode=verify-full", "--durability", "sync"});
}

TEST_F(OptionsTest, AWrongUriIsRefusedAndNoPasswordIsRepeated) {
  for (const char* const uri : {"postgres://u:secret@h/d", "postgres://h/d?password=secret",
                                "postgres://u:top@secret@h:x/d",
                                "postgres://h/d?sslpassword=secret", "postgres://u:secret@[h/d"}) {
    const std::string refused = Bad({"--journal", uri});
    EXPECT_THAT(refused, HasSubstr("--journal")) << uri;
    EXPECT_THAT(refused, ::testing::Not(HasSubstr("secret"))) << uri;
  }
  EXPECT_THAT(Bad({"--journal", "postgres://u:x@h/d"}), HasSubstr("passfile"));
  EXPECT_THAT(Bad({"--journal", "postgres://h/d?sslmod=require"}), HasSubstr("\"sslmod\""));
  EXPECT_THAT(Bad({"--journal", "postgres://h/d?target_session_attrs=any"}),
              HasSubstr("read-write"));
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

TEST_F(OptionsTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const std::string file = File("a.toml",
                                "# settings\n"
                                "max-in-flight-messages = 2\n"
                                "metrics-max-models = 2   # few\n"
                                "log-level = \"debug\"\n"
                                "address = [\"127.0.0.1:2\", \"[::1]:2\"]\n");
  SetEnvironment("PERCEPTROND_MAX_IN_FLIGHT_MESSAGES", "3");
  SetEnvironment("PERCEPTROND_METRICS_MAX_MODELS", "3");
  const Options options = Good({"--config", file, "--max-in-flight-messages", "4"});
  EXPECT_EQ(options.max_in_flight_messages, 4u);
  EXPECT_EQ(options.metrics_max_models, 3u);
  EXPECT_EQ(options.log_level, LogLevel::kDebug);
  EXPECT_THAT(options.addresses, ElementsAre("127.0.0.1:2", "[::1]:2"));
  EXPECT_EQ(options.memory_budget, 1073741824u);
}

TEST_F(OptionsTest, TheEnvironmentMayNameTheFileAndAFlagAnother) {
  SetEnvironment("PERCEPTROND_CONFIG", File("a.toml", "log-level = debug\n"));
  EXPECT_EQ(Good({}).log_level, LogLevel::kDebug);
  EXPECT_EQ(Good({"--config=" + File("b.toml", "log-level = error\n")}).log_level,
            LogLevel::kError);
}

TEST_F(OptionsTest, AnEmptyVariableCountsAsUnset) {
  SetEnvironment("PERCEPTROND_METRICS_ADDRESS", "");
  EXPECT_EQ(Good({}).metrics_address, "127.0.0.1:7601");
}

TEST_F(OptionsTest, AVariableThatIsNoSettingIsNamedAndNoError) {
  SetEnvironment("PERCEPTROND_MEMORY_BUDGE", "4GiB");
  SetEnvironment("PERCEPTROND_ADDRES", "127.0.0.1:1");
  SetEnvironment("PERCEPTROND_PORT", "7600");
  const ParseResult parsed = ParseOptions({"--journal=memory"});
  EXPECT_FALSE(parsed.exit_code.has_value()) << parsed.err;
  EXPECT_THAT(parsed.unknown_variables,
              ElementsAre("PERCEPTROND_ADDRES", "PERCEPTROND_MEMORY_BUDGE", "PERCEPTROND_PORT"));
  const ParseResult printed = ParseOptions({"--print-config"});
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_EQ(printed.out, ConfigText(Options()));
  EXPECT_THAT(printed.err, AllOf(HasSubstr("PERCEPTROND_ADDRES is not a setting"),
                                 HasSubstr("PERCEPTROND_MEMORY_BUDGE is not a setting")));
}

TEST_F(OptionsTest, VariablesOfKubernetesOfPerceptronctlAndEmptyOnesAreNotNamed) {
  SetEnvironment("PERCEPTROND_SERVER", "db1:7600");
  SetEnvironment("PERCEPTROND_CONFIG", File("a.toml", "log-level = debug\n"));
  SetEnvironment("PERCEPTROND_LOG_LEVEL", "error");
  SetEnvironment("PERCEPTROND_SOMETHING", "");
  // As a pod gets them beside a Service "perceptrond" and one "perceptrond-metrics".
  SetEnvironment("PERCEPTROND_SERVICE_HOST", "10.0.0.1");
  SetEnvironment("PERCEPTROND_SERVICE_PORT", "7600");
  SetEnvironment("PERCEPTROND_SERVICE_PORT_GRPC", "7600");
  SetEnvironment("PERCEPTROND_PORT", "tcp://10.0.0.1:7600");
  SetEnvironment("PERCEPTROND_PORT_7600_TCP", "tcp://10.0.0.1:7600");
  SetEnvironment("PERCEPTROND_PORT_7600_TCP_PROTO", "tcp");
  SetEnvironment("PERCEPTROND_PORT_7600_TCP_PORT", "7600");
  SetEnvironment("PERCEPTROND_PORT_7600_TCP_ADDR", "10.0.0.1");
  SetEnvironment("PERCEPTROND_METRICS_SERVICE_HOST", "10.0.0.2");
  SetEnvironment("PERCEPTROND_METRICS_PORT_7601_TCP_ADDR", "10.0.0.2");
  EXPECT_THAT(ParseOptions({}).unknown_variables, ::testing::IsEmpty());
  EXPECT_EQ(ParseOptions({"--print-config"}).err, "");
}

TEST_F(OptionsTest, ConfigFilesAreCheckedWhole) {
  EXPECT_THAT(Bad({"--config", "/nonexistent.toml"}),
              AllOf(HasSubstr("--config"), HasSubstr("/nonexistent.toml")));
  EXPECT_THAT(Bad({"--config", "/dev/zero"}), HasSubstr("more than 1048576 bytes"));
  for (const auto& [content, error] :
       {std::pair{"adress = \"x:1\"\n", "unknown key adress"},
        {"[tls]\ncert = \"x\"\n", "unknown key tls"},
        {"config = \"x\"\n", "unknown key config"},
        {"print-config = true\n", "unknown key print-config"},
        {"log-level = info\nlog-format = text\nlog-level = debug\n", "key log-level occurs twice"},
        {"data-dir = \"/disk#1\"\n", "key data-dir: unbalanced quotes, or a # in the value"}})
    EXPECT_THAT(Bad({"--config", File("a", content)}), HasSubstr(error));
}

TEST_F(OptionsTest, ControlCharactersAreRefusedInEveryValueFromEverySource) {
  EXPECT_THAT(Bad({"--data-dir", "/disk\r/a #b"}),
              AllOf(HasSubstr("--data-dir"), HasSubstr("\"/disk\\r/a #b\""),
                    HasSubstr("control character")));
  EXPECT_THAT(Bad({"--address", "unix:/run/a\n"}), HasSubstr("control character"));
  EXPECT_THAT(Bad({"--config", File("a", "data-dir = \"/disk\x07\"\n")}),
              HasSubstr("control character"));
  SetEnvironment("PERCEPTROND_DATA_DIR", "/disk\t1");
  EXPECT_THAT(Bad({}), HasSubstr("control character"));
}

TEST_F(OptionsTest, PrintedConfigYieldsTheSameOptions) {
  const std::string pem = File("a.pem", "x");
  const std::vector<std::string> args = {"--address=127.0.0.1:1,unix:/a b",
                                         "--data-dir=it's here",
                                         "--durability=none",
                                         "--memory-budget=1500KiB",
                                         "--metrics-address=off",
                                         "--drain-timeout=1m30s",
                                         "--log-format=json",
                                         "--tls-cert",
                                         pem,
                                         "--tls-key",
                                         pem};
  std::vector<std::string> printing = args;
  printing.push_back("--print-config");
  const ParseResult printed = ParseOptions(printing);
  EXPECT_EQ(printed.exit_code, 0);
  EXPECT_EQ(printed.err, "");
  EXPECT_THAT(printed.out, HasSubstr("address = [\"127.0.0.1:1\", \"unix:/a b\"]\n"));
  EXPECT_THAT(printed.out, HasSubstr("memory-budget = \"1500KiB\"\n"));
  const Options again = Good({"--config", File("printed.toml", printed.out)});
  EXPECT_EQ(ConfigText(again), printed.out);
  EXPECT_EQ(ConfigText(again), ConfigText(Good(args)));
}

}  // namespace
}  // namespace perceptrond
