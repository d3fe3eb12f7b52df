// The log of slow calls of the real server: a line for each unary call and each message of a stream,
// whose parts are the time that it took.
#include <csignal>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

double Number(const std::string& line, const std::string& field) {
  const size_t at = line.find(" " + field + "=");
  if (at == std::string::npos) return -1;
  return std::strtod(line.c_str() + at + field.size() + 2, nullptr);
}

// A file of settings, which is there before the server.
struct SettingsFile {
  SettingsFile() { Write("30s"); }
  void Write(const std::string& threshold) const {
    std::ofstream(path) << "slow-call = \"" << threshold << "\"\n";
  }
  const TempDir dir;
  const std::string path = dir.path() + "/settings";
};

class SlowCallTest : protected SettingsFile, public ServerTest {
 protected:
  SlowCallTest() : ServerTest({"--config", SettingsFile::path}) {}

  // The first line with the text. Its parts add up to its total, but for the rounding to microseconds.
  std::string AwaitLine(const std::string& text) {
    const std::string line = server_.AwaitLog(text);
    double sum = 0;
    for (const char* part : {"receive_ms", "queue_ms", "parse_ms", "load_ms", "lock_ms", "work_ms",
                             "commit_ms", "write_ms"}) {
      EXPECT_GE(Number(line, part), 0) << part << ": " << line;
      sum += Number(line, part);
    }
    EXPECT_NEAR(sum, Number(line, "total_ms"), 0.01 + 0.01 * sum) << line;
    return line;
  }
};

TEST_F(SlowCallTest, CallsAndMessagesHaveALineOnceTheyTakeLongerThanTheSettingThatIsReadAgain) {
  CreateDense("m", 2);
  // Every call is slow from here on.
  Write("1us");
  server_.Signal(SIGHUP);
  ASSERT_NE(server_.AwaitLog("read the settings again"), "");
  grpc::ClientContext context;
  context.AddMetadata("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  v1::LearnRequest learn;
  learn.set_model("models/m");
  *learn.add_examples() = SparseExample(1, {{0, 1.0F}});
  v1::LearnResponse response;
  ASSERT_TRUE(learning_->Learn(&context, learn, &response).ok());
  const std::string unary = AwaitLine("slow call method=/perceptron.v1.LearningService/Learn ");
  EXPECT_THAT(unary, AllOf(HasSubstr(" model=models/m peer=ipv4:127.0.0.1:"),
                           HasSubstr(" trace_id=4bf92f3577b34da6a3ce929d0e0e4736 "
                                     "span_id=00f067aa0ba902b7 "),
                           HasSubstr(" rows=1 status=OK "), Not(HasSubstr("message="))));
  EXPECT_GT(Number(unary, "commit_ms"), 0) << unary;
  RawLearnStream stream(*learning_, "m");
  stream.Open();
  v1::LearnStreamRequest request;
  for (const int label : {1, -1}) *request.add_examples() = SparseExample(label, {{1, 1.0F}});
  stream.Ask(request);
  ASSERT_TRUE(stream.Finish().ok());
  EXPECT_THAT(
      AwaitLine(" message=1 "),
      AllOf(HasSubstr("LearningService/LearnStream model=models/m "), HasSubstr(" rows=2 ")));
  EXPECT_THAT(
      server_.Log(),
      ::testing::Each(Not(HasSubstr("slow call method=/perceptron.v1.ModelService/CreateModel"))));
}

}  // namespace
}  // namespace perceptrond::testing
