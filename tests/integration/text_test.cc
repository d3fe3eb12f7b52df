// Texts as examples over a real connection: both forms, and the inference protocol.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

const char* const kMail[] = {"WIN a free prize now!", "see you at home", "Free entry, call now",
                             "call me at home", "Stra\u00dfe \u0421\u041f\u0410\u041c"};

class TextTest : public InferenceTest {
 protected:
  static std::string Texts() { return "texts: ['" + absl::StrJoin(kMail, "', '") + "']"; }
  std::vector<float> Scores(const std::string& id) {
    const auto response = AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict", "model: 'models/" + id + "' columns { " + Texts() + " }");
    return {response.scores().begin(), response.scores().end()};
  }
};

TEST_F(TextTest, NestedTextsColumnsOfTextsAndTensorsAreTheSame) {
  std::string nested;
  for (size_t i = 0; i < std::size(kMail); ++i) {
    absl::StrAppend(&nested, " examples { text: '", kMail[i], "' label: ", i % 2 == 0 ? 1 : -1,
                    " }");
  }
  const std::string columns = " columns { " + Texts() + " labels: [1, -1, 1, -1, 1] }";
  for (const char* id : {"nested", "columns"}) {
    Create(id,
           "feature_space { text { value: VALUE_LOG_COUNT min_characters: 3 max_characters: 5 "
           "inverse_document_frequency: true } }");
  }
  // More texts than 64: then they have frequencies.
  for (int i = 0; i < 14; ++i) {
    const auto learn = [&](const std::string& id, const std::string& rows) {
      return AnswerOf<v1::LearnResponse>("LearningService/Learn",
                                         "model: 'models/" + id + "'" + rows)
          .SerializeAsString();
    };
    EXPECT_EQ(learn("nested", nested), learn("columns", columns));
  }
  const std::vector<float> scores = Scores("nested");
  EXPECT_EQ(Scores("columns"), scores);

  oip::ModelInferRequest request;
  request.set_model_name("nested");
  AddStrings(request, "text", {std::size(kMail), 1}, {std::begin(kMail), std::end(kMail)});
  EXPECT_THAT(Output(Answer(request), "score").contents().fp32_contents(),
              ::testing::ElementsAreArray(scores));
  request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(2, "\xff");
  EXPECT_EQ(Infer(request), "INVALID_ARGUMENT BAD_TEXT inputs[0]");
  EXPECT_THAT(Describe(Metadata("nested").inputs()), ::testing::ElementsAre("text BYTES [-1]"));
  EXPECT_EQ(Metadata("nested").properties().at("feature_space"), "text");
}

}  // namespace
}  // namespace perceptrond::testing
