// Snapshots, rollbacks and another name over a real connection, with streams and a kill. core/store and server/fleet have
// the rest.
#include <string>

#include "absl/strings/str_cat.h"
#include "perceptron/v1/history_service.pb.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class HistoryTest : public ServerTest {
 protected:
  HistoryTest() { CreateDense("a", 2); }
  static std::string Rows(int begin, int end) {
    std::string rows;
    for (int i = begin; i < end; ++i)
      absl::StrAppend(&rows, " examples { dense { values: [", i % 5 - 2, ", ", i % 7 - 3,
                      "] } label: ", i % 3 == 0 ? -1 : 1, " }");
    return rows;
  }
  std::string Keep(const std::string& snapshot) {
    return Call("HistoryService/CreateSnapshot",
                "model: 'models/a' snapshot_id: '" + snapshot + "'");
  }
};

TEST_F(HistoryTest, StreamsGoOnAfterARollbackUnderANewNameAndAKillAndNothingIsLearnedTwice) {
  grpc::ClientContext context;
  const auto predicting = predictions_->PredictStream(&context);
  auto request = FromText<v1::PredictRequest>("model: 'models/a' examples {}");
  v1::PredictResponse response;
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  RawLearnStream stream(*learning_, "a", "p");
  stream.Open();
  stream.Ask(Rows(0, 50));
  EXPECT_EQ(Keep("k"), "OK");
  const std::string at_snapshot = Get("a").weights().SerializeAsString();
  const v1::LearnResult last = stream.Ask(Rows(50, 100));
  EXPECT_EQ(Call("HistoryService/RollBackModel", "model: 'models/a' snapshot_id: 'k'"), "OK");
  EXPECT_EQ(Call("HistoryService/RenameModel", "name: 'models/a' new_name: 'models/b'"), "OK");
  EXPECT_EQ(Reason(stream.Finish()), "MODEL_RELOADED");
  request.set_model("models/b");
  ASSERT_TRUE(predicting->Write(request) && predicting->Read(&response));
  EXPECT_EQ(response.revision(), Get("b").revision());
  server_.Kill();
  Restart();
  EXPECT_EQ(Call("ModelService/GetModel", "name: 'models/a'"), "NOT_FOUND MODEL_NOT_FOUND");
  const v1::Model after = Get("b");
  EXPECT_EQ(after.weights().SerializeAsString(), at_snapshot);
  EXPECT_GT(after.revision(), last.revision());
  RawLearnStream resumed(*learning_, "b", "p");
  resumed.With(absl::StrCat("producer { resume { model_uid: '", after.uid(),
                            "' acknowledged_offset: ", last.acknowledged_offset(),
                            " acknowledged_revision: ", last.revision(), " } }"));
  EXPECT_EQ(resumed.Open().next_offset(), 100);
  EXPECT_EQ(resumed.Ask(Rows(90, 110) + " first_offset: 90").duplicates(), 10);
  EXPECT_EQ(Get("b").report().examples(), 110);
  EXPECT_TRUE(resumed.Finish().ok());
}

}  // namespace
}  // namespace perceptrond::testing
