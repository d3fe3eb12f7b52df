// Texts as examples over a real connection: both forms, errors, explanations, the inference protocol,
// and what a restart leaves.
#include <functional>

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
  using InferenceTest::InferenceTest;

  v1::Model CreateText(const std::string& id,
                       const std::function<void(v1::FeatureSpace::Text&)>& set = {}) {
    v1::Model settings;
    v1::FeatureSpace::Text& text = *settings.mutable_feature_space()->mutable_text();
    if (set != nullptr) set(text);
    return Create(id, settings);
  }
  static v1::LearnRequest Nested(const std::string& id) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const LabelledText& mail : kMail) {
      v1::Example& example = *request.add_examples();
      example.set_text(mail.text);
      example.set_label(mail.label);
    }
    return request;
  }
  static v1::LearnRequest InColumns(const std::string& id) {
    v1::LearnRequest request;
    request.set_model("models/" + id);
    for (const LabelledText& mail : kMail) {
      request.mutable_columns()->add_texts(mail.text);
      request.mutable_columns()->add_labels(mail.label);
    }
    return request;
  }
  std::vector<float> Scores(const std::string& id) {
    v1::PredictRequest request;
    request.set_model("models/" + id);
    for (const LabelledText& mail : kMail) request.mutable_columns()->add_texts(mail.text);
    v1::PredictResponse response;
    EXPECT_TRUE(Predict(request, &response).ok());
    return {response.scores().begin(), response.scores().end()};
  }
};

TEST_F(TextTest, ModelsStateTheirDefaultsAndTheVersionOfIcu) {
  const v1::FeatureSpace::Text text = CreateText("mail").feature_space().text();
  EXPECT_EQ(text.bits(), 20U);
  EXPECT_EQ(text.value(), v1::FeatureSpace::Text::VALUE_PRESENCE);
  EXPECT_EQ(text.max_words(), 2U);
  EXPECT_EQ(text.max_characters(), 0U);
  EXPECT_FALSE(text.keep_norm());
  EXPECT_EQ(text.icu_version(), IcuVersion());
}

TEST_F(TextTest, SettingsOutOfRangeAreRefusedByTheirNames) {
  const auto refused = [this](const std::string& field,
                              const std::function<void(v1::FeatureSpace::Text&)>& set) {
    v1::CreateModelRequest request;
    request.set_model_id("m");
    set(*request.mutable_model()->mutable_feature_space()->mutable_text());
    grpc::ClientContext context;
    v1::Model model;
    const grpc::Status status = models_->CreateModel(&context, request, &model);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(BadField(status), "model.feature_space.text." + field);
  };
  refused("bits", [](auto& text) { text.set_bits(29); });
  refused("bits", [](auto& text) {
    text.set_bits(25);
    text.set_inverse_document_frequency(true);
  });
  refused("max_words", [](auto& text) { text.set_max_words(6); });
  refused("max_words", [](auto& text) { text.set_max_words(0); });
  refused("min_characters", [](auto& text) { text.set_max_characters(3); });
  refused("max_characters", [](auto& text) { text.set_min_characters(3); });
  refused("max_characters", [](auto& text) {
    text.set_min_characters(3);
    text.set_max_characters(11);
  });
  refused("value", [](auto& text) { text.set_value(v1::FeatureSpace::Text::Value(9)); });
}

TEST_F(TextTest, NestedTextsAndColumnsOfTextsAreTheSame) {
  CreateText("nested");
  CreateText("columns");
  v1::LearnResult nested;
  v1::LearnResult columns;
  ASSERT_TRUE(Learn(Nested("nested"), &nested).ok());
  ASSERT_TRUE(Learn(InColumns("columns"), &columns).ok());
  EXPECT_GT(nested.updates(), 0U);
  EXPECT_EQ(nested.SerializeAsString(), columns.SerializeAsString());
  EXPECT_EQ(Scores("nested"), Scores("columns"));
}

TEST_F(TextTest, TextsAreTheirWordsOfAHashedSpace) {
  CreateText("text", [](auto& text) {
    text.set_max_words(1);
    text.set_keep_norm(true);
  });
  v1::Model hashed;
  hashed.mutable_feature_space()->mutable_hashed()->set_bits(20);
  Create("hashed", hashed);
  v1::LearnRequest words;
  words.set_model("models/hashed");
  for (const auto& [names, label] :
       {std::pair(std::vector<std::string>{"win", "a", "free", "prize", "now"}, 1),
        std::pair(std::vector<std::string>{"see", "you", "at", "home"}, -1)}) {
    v1::Example& example = *words.add_examples();
    for (const std::string& name : names) example.mutable_named()->add_names(name);
    example.set_label(label);
  }
  v1::LearnRequest texts = Nested("text");
  texts.mutable_examples()->DeleteSubrange(2, 3);
  ASSERT_TRUE(Learn(texts).ok());
  ASSERT_TRUE(Learn(words).ok());
  EXPECT_EQ(Get("text").weights().SerializeAsString(), Get("hashed").weights().SerializeAsString());
}

TEST_F(TextTest, ABadTextIsAValidationErrorOfItsRow) {
  CreateText("mail");
  v1::LearnStreamRequest request;
  *request.mutable_examples() = Nested("mail").examples();
  request.mutable_examples(1)->set_text("\xff");
  request.mutable_examples(3)->set_text(std::string((1 << 20) + 1, 'a'));
  request.mutable_examples(4)->mutable_named()->add_names("free");
  // As a client would send it whose language does not check UTF-8.
  v1::LearnStreamRequest first;
  first.set_model("models/mail");
  std::vector<std::string> answers;
  ASSERT_TRUE(CallRaw("/perceptron.v1.LearningService/LearnStream",
                      {first.SerializeAsString(), request.SerializeAsString()}, &answers)
                  .ok());
  v1::LearnStreamResponse last;
  ASSERT_TRUE(last.ParseFromString(answers.back()));
  const v1::LearnResult& result = *last.results().rbegin();
  EXPECT_EQ(result.examples(), 2U);
  ASSERT_EQ(result.row_errors_size(), 3);
  EXPECT_EQ(result.row_errors(0).row(), 1U);
  EXPECT_EQ(Reason(result.row_errors(0).status()), "BAD_TEXT");
  EXPECT_EQ(BadField(result.row_errors(0).status()), "examples[1].text");
  EXPECT_EQ(BadField(result.row_errors(1).status()), "examples[3].text");
  EXPECT_EQ(Reason(result.row_errors(2).status()), "WRONG_FORM");
  EXPECT_EQ(BadField(result.row_errors(2).status()), "examples[4].named");
}

TEST_F(TextTest, AColumnsBadTextIsNamed) {
  CreateText("mail");
  v1::PredictRequest request;
  request.set_model("models/mail");
  request.mutable_columns()->add_texts("fine");
  request.mutable_columns()->add_texts(std::string((1 << 20) + 1, 'a'));
  v1::PredictResponse response;
  const grpc::Status status = Predict(request, &response);
  EXPECT_EQ(Reason(status), "BAD_TEXT");
  EXPECT_EQ(BadField(status), "columns.texts[1]");
}

TEST_F(TextTest, TextsAndFeaturesAreNotMixed) {
  CreateText("mail");
  CreateDense("dense", 3);
  const auto predict = [this](const std::string& model, const auto& set) {
    v1::PredictRequest request;
    request.set_model("models/" + model);
    set(request);
    v1::PredictResponse response;
    const grpc::Status status = Predict(request, &response);
    return Reason(status) + " " + BadField(status);
  };
  EXPECT_EQ(predict("dense", [](auto& request) { request.add_examples()->set_text("a"); }),
            "WRONG_FORM examples[0].text");
  EXPECT_EQ(predict("dense", [](auto& request) { request.mutable_columns()->add_texts("a"); }),
            "MALFORMED_COLUMNS columns.texts");
  EXPECT_EQ(predict("mail",
                    [](auto& request) {
                      request.mutable_columns()->add_texts("a");
                      request.mutable_columns()->add_row_ends(0);
                    }),
            "MALFORMED_COLUMNS columns.texts");
  EXPECT_EQ(predict("mail",
                    [](auto& request) {
                      request.mutable_columns()->add_indices(3);
                      request.mutable_columns()->add_row_ends(1);
                    }),
            "MALFORMED_COLUMNS columns.feature_names");
  // Without features an example is the bias alone.
  EXPECT_EQ(predict("mail", [](auto& request) { request.add_examples(); }), " ");
}

TEST_F(TextTest, ExplanationsNameTheNGrams) {
  CreateText("mail", [](auto& text) { text.set_max_words(2); });
  ASSERT_TRUE(Learn(Nested("mail")).ok());
  v1::ExplainRequest request;
  request.set_model("models/mail");
  request.mutable_columns()->add_texts("FREE prize!");
  v1::ExplainResponse response;
  grpc::ClientContext context;
  const grpc::Status status = predictions_->Explain(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const v1::Explanation& explanation = response.explanations(0);
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

TEST_F(TextTest, ARestartLeavesTheSameBits) {
  CreateText("mail", [](auto& text) {
    text.set_value(v1::FeatureSpace::Text::VALUE_LOG_COUNT);
    text.set_min_characters(3);
    text.set_max_characters(5);
  });
  ASSERT_TRUE(Learn(Nested("mail")).ok());
  const std::vector<float> scores = Scores("mail");
  const std::string weights = Get("mail").weights().SerializeAsString();
  server_.Kill();
  Restart();
  inference_ = oip::GRPCInferenceService::NewStub(channel_);
  EXPECT_EQ(Get("mail").weights().SerializeAsString(), weights);
  EXPECT_EQ(Scores("mail"), scores);
}

TEST_F(TextTest, InverseDocumentFrequenciesSurviveAKill) {
  CreateText("mail", [](auto& text) { text.set_inverse_document_frequency(true); });
  CreateText("plain");
  for (const std::string model : {"mail", "plain"}) {
    for (int i = 0; i < 14; ++i) ASSERT_TRUE(Learn(InColumns(model)).ok());
  }
  const std::vector<float> scores = Scores("mail");
  EXPECT_NE(scores, Scores("plain"));
  const v1::Model before = Get("mail");
  EXPECT_TRUE(before.feature_space().text().inverse_document_frequency());
  EXPECT_EQ(before.report().examples(), 70U);
  server_.Kill();
  Restart();
  EXPECT_EQ(Get("mail").revision(), before.revision());
  EXPECT_EQ(Scores("mail"), scores);
  // The contributions are those of the scaled values.
  v1::ExplainRequest request;
  request.set_model("models/mail");
  request.add_examples()->set_text(kMail[0].text);
  request.set_max_features(1000);
  grpc::ClientContext context;
  v1::ExplainResponse response;
  ASSERT_TRUE(predictions_->Explain(&context, request, &response).ok());
  double sum = response.explanations(0).bias();
  for (const auto& one : response.explanations(0).contributions()) sum += one.contribution();
  EXPECT_NEAR(sum, scores[0], 1e-5);
}

TEST_F(TextTest, TheInferenceProtocolTakesATensorOfTexts) {
  CreateText("mail");
  ASSERT_TRUE(Learn(Nested("mail")).ok());
  const std::vector<float> scores = Scores("mail");
  for (const bool column : {false, true}) {
    oip::ModelInferRequest request;
    request.set_model_name("mail");
    oip::ModelInferRequest::InferInputTensor& text = *request.add_inputs();
    text.set_name("text");
    text.set_datatype("BYTES");
    text.add_shape(std::size(kMail));
    if (column) text.add_shape(1);
    for (const LabelledText& mail : kMail) text.mutable_contents()->add_bytes_contents(mail.text);
    const oip::ModelInferResponse response = Answer(request);
    const auto output = Output(response, "score");
    const auto& floats = output.contents().fp32_contents();
    EXPECT_EQ(std::vector<float>(floats.begin(), floats.end()), scores);
    request.mutable_inputs(0)->mutable_contents()->set_bytes_contents(2, "\xff");
    EXPECT_EQ(Refusal(request), "3 BAD_TEXT inputs[0]");
  }
  EXPECT_THAT(Describe(Metadata("mail").inputs()), ElementsAre("text BYTES [-1]"));
  EXPECT_EQ(Metadata("mail").properties().at("feature_space"), "text");
}

TEST_F(TextTest, TheInferenceProtocolRefusesTextsBesideFeaturesAndOfOtherModels) {
  CreateText("mail");
  CreateDense("dense", 1);
  oip::ModelInferRequest request = Ones("dense", 1);
  oip::ModelInferRequest::InferInputTensor& text = *request.add_inputs();
  text.set_name("text");
  text.set_datatype("BYTES");
  text.add_shape(1);
  text.mutable_contents()->add_bytes_contents("a");
  EXPECT_EQ(Refusal(request), "3 BOTH_FORMS inputs[1]");
  request.mutable_inputs()->DeleteSubrange(0, 1);
  EXPECT_EQ(Refusal(request), "3 MALFORMED_COLUMNS inputs[0]");
  request.mutable_inputs(0)->clear_shape();
  EXPECT_NE(Refusal(request), "0  ");
  EXPECT_EQ(Refusal(Ones("mail", 1)), "3 MALFORMED_COLUMNS inputs[0]");
}

TEST_F(TextTest, ACompositionOfTextModelsTakesTexts) {
  CreateText("a");
  CreateText("b");
  CreateText("other", [](auto& text) { text.set_max_words(1); });
  ASSERT_TRUE(Learn(Nested("a")).ok());
  const auto compose = [this](const std::string& id, const std::string& second) {
    v1::CreateModelRequest request;
    request.set_model_id(id);
    auto& inputs = *request.mutable_model()->mutable_feature_space()->mutable_composition();
    for (const std::string& model : {std::string("a"), second}) {
      inputs.add_inputs()->set_model("models/" + model);
      inputs.mutable_inputs()->rbegin()->set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
    }
    grpc::ClientContext context;
    v1::Model model;
    return models_->CreateModel(&context, request, &model);
  };
  ASSERT_TRUE(compose("both", "b").ok());
  EXPECT_FALSE(compose("mixed", "other").ok());
  v1::LearnResult result;
  ASSERT_TRUE(Learn(Nested("both"), &result).ok());
  EXPECT_EQ(result.examples(), std::size(kMail));
  EXPECT_EQ(Scores("both").size(), std::size(kMail));
}

}  // namespace
}  // namespace perceptrond::testing
