// The table of names of a stream. That all forms of rows mean the same is in tests/fuzz/forms_fuzz.cc.
#include <map>

#include "tests/integration/fixture.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

using name_columns::AppendName;

void AddRow(const std::map<uint32_t, float>& row, int label, v1::ExampleColumns& columns) {
  for (const auto& [index, value] : row) {
    columns.add_indices(index);
    columns.add_values(value);
  }
  columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  columns.add_labels(label);
}

class FormsTest : public ServerTest {
 protected:
  void CreateNamed(const std::string& id) { Create(id, "feature_space { named {} }"); }
};

TEST_F(FormsTest, ARowWithANameThatTheTableHasNoMoreIsRefusedAndTheOthersAreLearned) {
  CreateNamed("m");
  RawLearnStream stream(*learning_, "m");
  stream.first().set_name_table_size(5);
  // Rounded down to a power of two.
  EXPECT_EQ(stream.Open().name_table_size(), 4);
  v1::LearnStreamRequest request;
  v1::ExampleColumns& columns = *request.mutable_columns();
  for (const char* name : {"a", "b", "c", "d"}) AppendName(name, *columns.mutable_stream_names());
  AddRow({{0, 1}, {3, 1}}, 1, columns);
  EXPECT_EQ(stream.Ask(request).examples(), 1);
  columns.Clear();
  AppendName("e", *columns.mutable_stream_names());
  AddRow({{0, 1}}, 1, columns);
  AddRow({{1, 1}, {4, 1}}, -1, columns);
  AddRow({{5, 1}}, -1, columns);
  const v1::LearnResult result = stream.Ask(request);
  EXPECT_EQ(result.examples(), 1);
  ASSERT_EQ(result.row_errors_size(), 2);
  EXPECT_EQ(Reason(result.row_errors(0).status()), "INDEX_OUT_OF_RANGE");
  EXPECT_EQ(BadField(result.row_errors(0).status()), "columns.indices[0]");
  EXPECT_EQ(BadField(result.row_errors(1).status()), "columns.indices[3]");
}

TEST_F(FormsTest, TheNamesOfARefusedMessageAreInTheTable) {
  CreateNamed("m");
  RawLearnStream stream(*learning_, "m");
  stream.first().set_name_table_size(16);
  stream.Open();
  v1::LearnStreamRequest refused;
  AppendName("a", *refused.mutable_columns()->mutable_stream_names());
  *refused.add_examples() = SparseExample(1, {{0, 1}});
  EXPECT_EQ(Reason(stream.Ask(refused).error()), "BOTH_FORMS");
  v1::LearnStreamRequest next;
  AppendName("b", *next.mutable_columns()->mutable_stream_names());
  AddRow({{0, 1}, {1, 1}}, 1, *next.mutable_columns());
  EXPECT_EQ(stream.Ask(next).examples(), 1);
  EXPECT_THAT(Get("m").weights().vectors(0).names(), ::testing::UnorderedElementsAre("a", "b"));
}

TEST_F(FormsTest, MalformedNamesForItsTableEndAStream) {
  CreateNamed("m");
  RawLearnStream stream(*learning_, "m");
  stream.first().set_name_table_size(16);
  stream.Open();
  v1::LearnStreamRequest request;
  request.mutable_columns()->mutable_stream_names()->set_text("ab");
  request.mutable_columns()->mutable_stream_names()->add_lengths(1);
  stream.Send(request);
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(Reason(status), "MALFORMED_COLUMNS");
  EXPECT_EQ(BadField(status), "columns.stream_names.lengths");
}

// Of a stream that predicts with several models, each of which numbers names otherwise.
TEST_F(FormsTest, APredictionStreamsTableServesEveryModel) {
  for (const auto& [id, vector] :
       std::map<std::string, std::string>{{"one", "names: ['a', 'b'] values: [1, 10]"},
                                          {"two", "names: ['b', 'a'] values: [3, 5]"}})
    Create(id, "feature_space { named {} } learner { starting_weights { vectors { " + vector +
                   " } } }");
  Create("hashed", "feature_space { hashed { bits: 4 } }");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  v1::PredictRequest request;
  request.set_name_table_size(4);
  AppendName("a", *request.mutable_columns()->mutable_stream_names());
  AppendName("b", *request.mutable_columns()->mutable_stream_names());
  AddRow({{0, 2}, {1, 1}}, 1, *request.mutable_columns());
  v1::PredictResponse response;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [id, score] : std::map<std::string, float>{
             {"models/one", 12}, {"models/two", 13}, {"models/hashed", 0}}) {
      request.set_model(id);
      ASSERT_TRUE(stream->Write(request));
      ASSERT_TRUE(stream->Read(&response));
      ASSERT_EQ(response.scores_size(), 1) << response.error().message();
      EXPECT_EQ(response.scores(0), score) << id;
      EXPECT_EQ(response.name_table_size(), round == 0 && id == "models/hashed" ? 4 : 0);
      request.mutable_columns()->mutable_stream_names()->Clear();
    }
  }
}

}  // namespace
}  // namespace perceptrond::testing
