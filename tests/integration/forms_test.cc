// The table of names of a stream. tests/fuzz/forms_fuzz.cc has the meaning of all forms of rows.
#include <map>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

class FormsTest : public ServerTest {
 protected:
  FormsTest() { Create("m", "feature_space { named {} }"); }
};

// The names a, b, ... from the first to the last.
std::string Names(char first, char last) {
  std::string text;
  std::string lengths;
  for (char name = first; name <= last; ++name) {
    text += name;
    absl::StrAppend(&lengths, name == first ? "1" : ", 1");
  }
  return "stream_names { text: '" + text + "' lengths: [" + lengths + "] } ";
}

TEST_F(FormsTest, ARowWithANameThatTheTableHasNoMoreIsRefusedAndTheOthersAreLearned) {
  RawLearnStream stream(*learning_, "m");
  // Rounded down to a power of two.
  EXPECT_EQ(stream.With("name_table_size: 5").Open().name_table_size(), 4);
  EXPECT_EQ(stream.Ask("columns { " + Names('a', 'd') + "indices: [0, 3] row_ends: 2 labels: 1 }")
                .examples(),
            1);
  const v1::LearnResult result =
      stream.Ask("columns { " + Names('e', 'e') +
                 "indices: [0, 1, 4, 5] row_ends: [1, 3, 4] labels: [1, -1, -1] }");
  EXPECT_EQ(result.examples(), 1);
  EXPECT_EQ(Outcome(result),
            "0: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.indices[0]; "
            "2: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.indices[3]");
}

TEST_F(FormsTest, TheNamesOfARefusedMessageAreInTheTableAndMalformedOnesEndAStream) {
  RawLearnStream stream(*learning_, "m");
  stream.With("name_table_size: 16").Open();
  EXPECT_EQ(Outcome(stream.Ask("columns { " + Names('a', 'a') + "} examples { label: 1 }")),
            "INVALID_ARGUMENT BOTH_FORMS columns");
  EXPECT_EQ(stream.Ask("columns { " + Names('b', 'b') + "indices: [0, 1] row_ends: 2 labels: 1 }")
                .examples(),
            1);
  EXPECT_THAT(Get("m").weights().vectors(0).names(), ::testing::UnorderedElementsAre("a", "b"));
  stream.Send(
      FromText<v1::LearnStreamRequest>("columns { stream_names { text: 'ab' lengths: 1 } }"));
  EXPECT_EQ(Outcome(stream.Finish()),
            "INVALID_ARGUMENT MALFORMED_COLUMNS columns.stream_names.lengths");
}

// Each model of a stream numbers names otherwise.
TEST_F(FormsTest, APredictionStreamsTableServesEveryModel) {
  for (const auto& [id, vector] :
       std::map<std::string, std::string>{{"one", "names: ['a', 'b'] values: [1, 10]"},
                                          {"two", "names: ['b', 'a'] values: [3, 5]"}})
    Create(id, "feature_space { named {} } learner { starting_weights { vectors { " + vector +
                   " } } }");
  Create("hashed", "feature_space { hashed { bits: 4 } }");
  grpc::ClientContext context;
  const auto stream = predictions_->PredictStream(&context);
  auto request = FromText<v1::PredictRequest>("name_table_size: 4 columns { " + Names('a', 'b') +
                                              "indices: [0, 1] values: [2, 1] row_ends: 2 }");
  v1::PredictResponse response;
  for (int round = 0; round < 3; ++round) {
    for (const auto& [id, score] : std::map<std::string, float>{
             {"models/one", 12}, {"models/two", 13}, {"models/hashed", 0}}) {
      request.set_model(id);
      ASSERT_TRUE(stream->Write(request) && stream->Read(&response));
      EXPECT_THAT(response.scores(), ::testing::ElementsAre(score)) << id;
      EXPECT_EQ(response.name_table_size(), round == 0 && id == "models/hashed" ? 4 : 0);
      request.mutable_columns()->mutable_stream_names()->Clear();
      // The same two values, of two bytes each.
      request.mutable_columns()->clear_values();
      request.mutable_columns()->set_half_values(std::string("\0\x40\0\x3c", 4));
    }
  }
}

}  // namespace
}  // namespace perceptrond::testing
