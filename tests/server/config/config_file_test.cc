// Precedence of flags, environment and config file, and what a config file may hold.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/config/options.h"
#include "tests/server/config/options_fixture.h"

namespace perceptrond {
namespace {

using ::perceptrond::testing::OptionsTest;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

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
  EXPECT_THAT(Bad({"--config", File("a", "adress = \"x:1\"\n")}), HasSubstr("unknown key adress"));
  EXPECT_THAT(Bad({"--config", File("b", "[tls]\ncert = \"x\"\n")}), HasSubstr("unknown key tls"));
  EXPECT_THAT(Bad({"--config", File("c", "config = \"x\"\n")}), HasSubstr("unknown key config"));
  EXPECT_THAT(Bad({"--config", File("d", "print-config = true\n")}),
              HasSubstr("unknown key print-config"));
  EXPECT_THAT(
      Bad({"--config", File("e", "log-level = info\nlog-format = text\nlog-level = debug\n")}),
      HasSubstr("key log-level occurs twice"));
  EXPECT_THAT(Bad({"--config", File("f", "data-dir = \"/disk#1\"\n")}),
              HasSubstr("key data-dir: unbalanced quotes, or a # in the value"));
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
