// Texts as examples over a real connection: both forms, explanations, the inference protocol,
// compositions, and what a kill leaves.
#include <cmath>

#include "core/features/words.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

struct LabelledText {
  const char* text;
  int label;
};
const LabelledText kMail[] = {{"WIN a free prize now!", 1},
                              {"see you at home", -1},
                              {"Free entry, call now", 1},
                              {"call me at home", -1},
                              {"Stra\u00dfe \u0421\u041f\u0410\u041c", 1}};

class TextTest : public InferenceTest {
 protected:
  v1::LearnResult LearnMail(const std::string& id, bool in_columns = false) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const LabelledText& mail : kMail) {
      if (in_columns) {
        request.mutable_columns()->add_texts(mail.text);
        request.mutable_columns()->add_labels(mail.label);
        continue;
      }
      v1::Example& example = *request.add_examples();
      example.set_text(mail.text);
      example.set_label(mail.label);
    }
    v1::LearnResult result;
    EXPECT_EQ(Outcome(Learn(request, &result)), "OK");
    return result;
  }
  std::vector<float> Scores(const std::string& id) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    for (const LabelledText& mail : kMail) request.mutable_columns()->add_texts(mail.text);
    v1::PredictResponse response;
    EXPECT_EQ(Outcome(Predict(request, &response)), "OK");
    return {response.scores().begin(), response.scores().end()};
  }
};

TEST_F(TextTest, ModelsStateTheirDefaultsAndTheVersionOfIcu) {
  const auto text = Create("mail", "feature_space { text {} }").feature_space().text();
  EXPECT_EQ(text.bits(), 20U);
  EXPECT_EQ(text.value(), v1::FeatureSpace::Text::VALUE_PRESENCE);
  EXPECT_EQ(text.max_words(), 2U);
  EXPECT_EQ(text.max_characters(), 0U);
  EXPECT_FALSE(text.keep_norm());
  EXPECT_EQ(text.icu_version(), IcuVersion());
}

TEST_F(TextTest, NestedTextsAndColumnsOfTextsAreTheSameAlsoAfterAKill) {
  for (const char* id : {"nested", "columns"}) {
    Create(id,
           "feature_space { text { value: VALUE_LOG_COUNT min_characters: 3 max_characters: 5 "
           "inverse_document_frequency: true } }");
  }
  const v1::LearnResult nested = LearnMail("nested");
  EXPECT_GT(nested.updates(), 0U);
  EXPECT_EQ(LearnMail("columns", true).SerializeAsString(), nested.SerializeAsString());
  // More texts than 64: then they have frequencies.
  for (int i = 0; i < 13; ++i) {
    LearnMail("nested");
    LearnMail("columns", true);
  }
  const std::vector<float> scores = Scores("nested");
  EXPECT_EQ(Scores("columns"), scores);
  const std::string weights = Get("nested").weights().SerializeAsString();
  server_.Kill();
  Restart();
  EXPECT_EQ(Get("nested").weights().SerializeAsString(), weights);
  EXPECT_EQ(Scores("nested"), scores);
}

TEST_F(TextTest, ExplanationsNameTheNGrams) {
  Create("mail", "feature_space { text { max_words: 2 } }");
  LearnMail("mail");
  const v1::Explanation explanation =
      AnswerOf<v1::ExplainResponse>("PredictionService/Explain",
                                    "model: 'models/mail' columns { texts: 'FREE prize!' }")
          .explanations(0);
  std::vector<std::string> names;
  double sum = explanation.bias();
  for (const v1::FeatureContribution& one : explanation.contributions()) {
    names.push_back(one.name());
    EXPECT_NEAR(one.value(), 1 / std::sqrt(3.0), 1e-6);
    sum += one.contribution();
  }
  EXPECT_THAT(names, UnorderedElementsAre("free", "prize", "free prize"));
  EXPECT_NEAR(sum, explanation.score(), 1e-6);
}

TEST_F(TextTest, TheInferenceProtocolTakesATensorOfTexts) {
  Create("mail", "feature_space { text {} }");
  LearnMail("mail");
  const std::vector<float> scores = Scores("mail");
  for (const bool column : {false, true}) {
    oip::ModelInferRequest request;
    request.set_model_name("mail");
    std::vector<std::string> texts;
    for (const LabelledText& mail : kMail) texts.emplace_back(mail.text);
    std::vector<int64_t> shape = {std::size(kMail)};
    if (column) shape.push_back(1);
    AddStrings(request, "text", shape, texts);
    const auto output = Output(Answer(request), "score");
    const auto& floats = output.contents().fp32_contents();
    EXPECT_EQ(std::vector<float>(floats.begin(), floats.end()), scores);
    request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(2, "\xff");
    EXPECT_EQ(Refusal(request), "INVALID_ARGUMENT BAD_TEXT inputs[0]");
  }
  EXPECT_THAT(Describe(Metadata("mail").inputs()), ElementsAre("text BYTES [-1]"));
  EXPECT_EQ(Metadata("mail").properties().at("feature_space"), "text");
}

TEST_F(TextTest, ACompositionOfTextModelsTakesTexts) {
  for (const char* id : {"a", "b"}) Create(id, "feature_space { text {} }");
  Create("other", "feature_space { text { max_words: 1 } }");
  LearnMail("a");
  const std::string inputs =
      "model { feature_space { composition { inputs { model: 'models/a' output: OUTPUT_SCORE } "
      "inputs { output: OUTPUT_SCORE model: ";
  EXPECT_EQ(Call("ModelService/CreateModel", "model_id: 'both' " + inputs + "'models/b' } } } }"),
            "OK");
  EXPECT_NE(
      Call("ModelService/CreateModel", "model_id: 'mixed' " + inputs + "'models/other' } } } }"),
      "OK");
  EXPECT_EQ(LearnMail("both").examples(), std::size(kMail));
  EXPECT_EQ(Scores("both").size(), std::size(kMail));
}

}  // namespace
}  // namespace perceptrond::testing
