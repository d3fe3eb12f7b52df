// The trace that perceptronctl and the C++ client are a part of, as the server's log states it.
#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/integration/ctl_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

// Every call counts as slow, so that the log states it.
class CtlTraceTest : public ::testing::Test {
 protected:
  CommandResult Ctl(const std::string& environment, const std::string& arguments) {
    return RunCommand(absl::StrCat(environment, " ", PERCEPTRONCTL_BINARY, " --server ",
                                   server_.address(), " ", arguments, " 2>&1"));
  }
  std::string LineOf(const std::string& method) {
    return server_.AwaitLog(absl::StrCat("slow call method=/perceptron.v1.", method, " "));
  }

  TempDir dir_;
  ServerProcess server_{dir_.path() + "/data", {"--slow-call", "1us"}};
};

TEST_F(CtlTraceTest, TheEnvironmentNamesTheTraceOfEachCallAndStream) {
  const std::string variable = "TRACEPARENT=00-" + kTrace + "-00f067aa0ba902b7-01";
  ASSERT_EQ(Ctl(variable, "create m --dimension 2").exit_code, 0);
  const std::string file = dir_.path() + "/and.svm";
  std::ofstream(file) << "-1 1:1\n+1 1:1 2:1\n";
  ASSERT_EQ(Ctl(variable, "learn m " + file + " --index-base 1").exit_code, 0);
  for (const char* method : {"ModelService/CreateModel", "LearningService/LearnStream"})
    EXPECT_THAT(LineOf(method), HasSubstr(" trace_id=" + kTrace + " span_id=00f067aa0ba902b7 "));
}

TEST_F(CtlTraceTest, AnInvalidTraceFailsNothing) {
  for (const char* value : {"'two words'", "00-x", "\"$(printf 'a\\nb')\""})
    EXPECT_EQ(Ctl(absl::StrCat("TRACEPARENT=", value), "list").exit_code, 0) << value;
  EXPECT_THAT(LineOf("ModelService/ListModels"), ::testing::Not(HasSubstr("trace_id")));
}

TEST_F(CtlTraceTest, AProgramNamesTheTraceOfEachOfItsCalls) {
  client::ClientOptions options;
  int calls = 0;
  options.metadata.traceparent = [&calls] {
    return absl::StrCat("00-", kTrace, "-000000000000000", ++calls, "-00");
  };
  const client::Client client = client::Client::Connect(server_.address(), options);
  ASSERT_TRUE(client.ListModels().ok());
  EXPECT_TRUE(absl::IsNotFound(client.GetModel("m").status()));
  EXPECT_THAT(LineOf("ModelService/ListModels"), HasSubstr(" span_id=0000000000000001 "));
  EXPECT_THAT(LineOf("ModelService/GetModel"), HasSubstr(" span_id=0000000000000002 "));
}

}  // namespace
}  // namespace perceptrond::testing
