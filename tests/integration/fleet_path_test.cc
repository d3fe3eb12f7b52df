// One path through a real fleet: a model comes from a data directory, is learned at two servers of which the writer is
// killed, and goes back, and no row is lost or learned twice. What fleets do otherwise, core/fleet and server/fleet test.
#include "absl/strings/match.h"
#include "tests/integration/fleet_process.h"

namespace perceptrond::testing {
namespace {

constexpr int kRows = 2000;

class FleetPathTest : public FleetProcesses {
 protected:
  FleetPathTest() {
    // Each row is a mistake, whatever came before it.
    for (int i = 0; i < kRows; ++i) rows_.push_back(i % 2 == 0 ? "1 1:1 2:3\n" : "-1 1:1 2:3\n");
  }
  // perceptronctl, which resumes at any of these servers, with rows from the first on.
  FILE* BeginToLearn(const std::string& servers) const {
    return popen(absl::StrCat("XDG_STATE_HOME=", dir_.path(), " ", PerceptronctlBinary(),
                              " --server ", servers,
                              " learn m - --format svmlight --index-base 1 --batch 10 "
                              "--producer p --start-offset 0 --timeout 3600 >",
                              dir_.path(), "/learned 2>&1")
                     .c_str(),
                 "w");
  }
  void Send(FILE* to, int begin, int end) const {
    for (int i = begin; i < end; ++i) std::fputs(rows_[i].c_str(), to);
    std::fflush(to);
  }
  void ExpectEnd(FILE* learning) const {
    EXPECT_EQ(pclose(learning), 0) << ReadAll(dir_.path() + "/learned");
  }
  // True once it answers, or the writer by it, and has more updates than that.
  static bool HasMoreThan(Member& member, int rows) {
    v1::Model model;
    return member.Call("ModelService/GetModel", "name: 'models/m'", &model) == "OK" &&
           model.revision() > rows;
  }
  // Asks until it is answered: on a busy machine a member may write for a moment no more, or not know yet who does.
  static void Ask(Member& member, const std::string& method, const std::string& request,
                  google::protobuf::Message* answer = nullptr) {
    std::string outcome;
    WaitUntil([&] {
      outcome = member.Call(method, request, answer);
      return !absl::StartsWith(outcome, "UNAVAILABLE") && !absl::StartsWith(outcome, "ABORTED");
    });
    EXPECT_EQ(outcome, "OK") << method;
  }
  // Each row was one update.
  static void ExpectLearned(Member& member, int rows) {
    v1::Model model;
    Ask(member, "ModelService/GetModel", "name: 'models/m'", &model);
    EXPECT_EQ(model.revision(), rows);
    EXPECT_EQ(model.report().examples(), static_cast<uint64_t>(rows));
  }
  // The score that a server's own copy gives once it has all rows.
  static float ScoreAtTheEnd(Member& member) {
    v1::PredictResponse response;
    Ask(member, "PredictionService/Predict",
        absl::StrCat("model: 'models/m' min_revision: ", kRows,
                     " examples { dense { values: [1, 2] } }"),
        &response);
    return response.scores(0);
  }

  std::vector<std::string> rows_;
};

TEST_F(FleetPathTest, AModelMovesIntoAFleetOutlivesItsWriterAndMovesBackWithEachRowOnce) {
  const std::string data = dir_.path() + "/data";
  {
    Member alone(data, {});
    alone.CreateDense("m", 2);
    FILE* const learning = BeginToLearn(alone.process.address());
    Send(learning, 0, 100);
    ExpectEnd(learning);
    // It is in use.
    RunOnFleet(1, "migrate " + data + " " + url());
    EXPECT_EQ(alone.process.Terminate(), 0);
  }
  RunOnFleet(0, "migrate " + data + " " + url());
  Start();
  Start();
  Member& writer = AwaitWriter();
  Member& other = OtherThan(writer);
  // The first hundred come once more.
  FILE* const learning =
      BeginToLearn(absl::StrCat(other.process.address(), ",", writer.process.address()));
  Send(learning, 0, kRows / 2);
  WaitUntil([&] { return HasMoreThan(other, kRows / 4); });
  writer.process.Kill();
  Send(learning, kRows / 2, kRows);
  ExpectEnd(learning);
  ExpectLearned(other, kRows);
  writer.process.Restart();
  EXPECT_EQ(ScoreAtTheEnd(writer), ScoreAtTheEnd(other));
  Ask(writer, "AliasService/UpdateAlias",
      "alias { name: 'aliases/live' model: 'models/m' } allow_missing: true");
  // The other server reads the alias from the journal a moment later.
  WaitUntil([&] { return other.Call("ModelService/GetModel", "name: 'aliases/live'") == "OK"; });
  const std::string back = dir_.path() + "/back";
  EXPECT_THAT(RunOnFleet(1, "migrate " + url() + " " + back),
              ::testing::HasSubstr("stop them first"));
  for (const auto& member : members_) EXPECT_EQ(member->process.Terminate(), 0);
  RunOnFleet(0, "migrate " + url() + " " + back);
  RunToEnd(0, "verify " + back);
  RunOnFleet(0, "verify " + url());
  EXPECT_THAT(RunServer("verify --fleet none " + url()).out, ::testing::HasSubstr("no journal"));
  // The drill of docs/backup.md.
  const std::string copy = "'" + database_.uri("copy") + "'";
  const std::string dump = dir_.path() + "/dump";
  for (const std::string& command :
       {"pg_dump --schema f --file " + dump + " " + url(),
        "psql -q -c 'CREATE DATABASE copy' " + url(), "psql -q -f " + dump + " " + copy})
    EXPECT_EQ(std::system(("/usr/lib/postgresql/15/bin/" + command).c_str()), 0) << command;
  RunOnFleet(0, "verify " + copy);
  Member alone(back, {});
  ExpectLearned(alone, kRows);
  RawLearnStream stream(alone.learning(), "m", "p");
  EXPECT_EQ(stream.Open().next_offset(), kRows);
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
