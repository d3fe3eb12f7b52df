// One path through a real fleet: a model comes from a data directory, is learned at two servers of which the writer is
// killed, and goes back, and no row is lost or learned twice. What fleets do otherwise, core/fleet and server/fleet test.
#include <cstdio>

#include "perceptron/v1/alias_service.grpc.pb.h"
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
                              "--producer p --start-offset 0 >",
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
  // Whether it answers, or the writer by it, and has more updates than that.
  static bool HasMoreThan(Member& member, int rows) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/m");
    v1::Model model;
    return member.models->GetModel(&context, request, &model).ok() && model.revision() > rows;
  }
  static std::string ModelOfAlias(Member& member) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("aliases/live");
    v1::Model model;
    return member.models->GetModel(&context, request, &model).ok() ? model.name() : "";
  }
  // Each row was one update.
  static void ExpectLearned(Member& member, int rows) {
    const v1::Model model = member.Get("m");
    EXPECT_EQ(model.revision(), rows);
    EXPECT_EQ(model.report().examples(), static_cast<uint64_t>(rows));
  }
  // The score that a server's own copy gives once it has all rows.
  static float ScoreAtTheEnd(Member& member) {
    v1::PredictRequest request;
    request.set_model("models/m");
    request.set_min_revision(kRows);
    *request.add_examples() = SparseExample(0, {{0, 1.0F}, {1, 2.0F}});
    grpc::ClientContext context;
    v1::PredictResponse response;
    const grpc::Status status = member.predictions->Predict(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.scores_size() == 1 ? response.scores(0) : NAN;
  }

  std::vector<std::string> rows_;
};

TEST_F(FleetPathTest, AModelMovesIntoAFleetOutlivesItsWriterAndMovesBackWithEachRowOnce) {
  const std::string data = dir_.path() + "/data";
  {
    Member alone(data, {});
    v1::CreateModelRequest create;
    create.set_model_id("m");
    create.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
    grpc::ClientContext context;
    v1::Model created;
    ASSERT_TRUE(alone.models->CreateModel(&context, create, &created).ok());
    FILE* const learning = BeginToLearn(alone.process.address());
    Send(learning, 0, 100);
    ExpectEnd(learning);
    EXPECT_EQ(RunOnFleet("migrate " + data + " " + url()).exit_code, 1) << "it is in use";
    EXPECT_EQ(alone.process.Terminate(), 0);
  }
  const CommandResult there = RunOnFleet("migrate " + data + " " + url());
  ASSERT_EQ(there.exit_code, 0) << there.out;
  Start();
  Start();
  Member& writer = AwaitWriter();
  Member& other = OtherThan(writer);
  // The first hundred come once more.
  FILE* const learning =
      BeginToLearn(absl::StrCat(other.process.address(), ",", writer.process.address()));
  Send(learning, 0, kRows / 2);
  EXPECT_TRUE(Eventually([&] { return HasMoreThan(other, kRows / 4); }));
  writer.process.Kill();
  Send(learning, kRows / 2, kRows);
  ExpectEnd(learning);
  ExpectLearned(other, kRows);
  writer.process.Restart();
  EXPECT_EQ(ScoreAtTheEnd(writer), ScoreAtTheEnd(other));
  v1::UpdateAliasRequest alias;
  alias.mutable_alias()->set_name("aliases/live");
  alias.mutable_alias()->set_model("models/m");
  alias.set_allow_missing(true);
  grpc::ClientContext context;
  v1::Alias made;
  EXPECT_TRUE(v1::AliasService::NewStub(writer.channel)->UpdateAlias(&context, alias, &made).ok());
  EXPECT_TRUE(Eventually([&] { return ModelOfAlias(other) == "models/m"; }));
  const std::string back = dir_.path() + "/back";
  for (const auto& member : members_) EXPECT_EQ(member->process.Terminate(), 0);
  const CommandResult here = RunOnFleet("migrate " + url() + " " + back);
  ASSERT_EQ(here.exit_code, 0) << here.out;
  EXPECT_EQ(RunServer("verify " + back).exit_code, 0);
  Member alone(back, {});
  ExpectLearned(alone, kRows);
  RawLearnStream stream(*alone.learning, "m", "p");
  EXPECT_EQ(stream.Open().next_offset(), kRows);
  EXPECT_TRUE(stream.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
