// Over models of every kind: whatever form its tensors have, ModelInfer answers what Predict
// answers to the same rows, to the bit.
#include <map>
#include <random>

#include "core/learner/catalogue.h"
#include "tests/integration/inference_fixture.h"
#include "tests/support/learners.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAreArray;

constexpr int kFeatures = 6;
constexpr int kRows = 40;
const char* const kNames[kFeatures] = {"zeta", "u^alpha", "é", "v^b", "u^c", "a"};

// A random row: which of the features it has, and their values.
using Row = std::map<int, float>;

std::vector<Row> RandomRows(uint32_t seed, int count) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<Row> rows(static_cast<size_t>(count));
  for (Row& row : rows) {
    for (int i = 0; i < kFeatures; ++i) {
      if (random() % 3 != 0) row[i] = normal(random);
    }
  }
  rows[1].clear();
  return rows;
}

enum class Form { kDense, kSparse, kNamed };

// The rows as Predict takes them.
v1::ExampleColumns Columns(const std::vector<Row>& rows, Form form) {
  v1::ExampleColumns columns;
  if (form == Form::kDense) columns.set_dense_width(kFeatures);
  std::map<std::string, uint32_t> vocabulary;
  for (const char* name : kNames) vocabulary[name];
  for (auto& [name, index] : vocabulary) {
    index = static_cast<uint32_t>(columns.feature_names().lengths_size());
    if (form == Form::kNamed) name_columns::AppendName(name, *columns.mutable_feature_names());
  }
  for (const Row& row : rows) {
    std::map<uint32_t, float> features;
    for (const auto& [i, value] : row)
      features[form == Form::kNamed ? vocabulary[kNames[i]] : static_cast<uint32_t>(i)] = value;
    for (uint32_t i = 0; i < kFeatures; ++i) {
      const bool has = features.contains(i);
      if (!has && form != Form::kDense) continue;
      columns.add_values(has ? features[i] : 0);
      if (form != Form::kDense) columns.add_indices(i);
    }
    if (form != Form::kDense) columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
  }
  return columns;
}

// The rows as tensors, names in any order. `padded`: names as [n, k].
oip::ModelInferRequest Tensors(const std::string& id, const std::vector<Row>& rows, Form form,
                               bool padded) {
  oip::ModelInferRequest request;
  request.set_model_name(id);
  const auto n = static_cast<int64_t>(rows.size());
  const v1::ExampleColumns columns = Columns(rows, form);
  const std::vector<float> all(columns.values().begin(), columns.values().end());
  if (form == Form::kDense) {
    AddFloats(request, "features", {n, kFeatures}, all);
    return request;
  }
  const std::vector<uint32_t> row_ends(columns.row_ends().begin(), columns.row_ends().end());
  if (form == Form::kSparse) {
    AddFloats(request, "values", {static_cast<int64_t>(all.size())}, all);
    AddIndices(request, "row_ends", row_ends);
    AddIndices(request, "indices", {columns.indices().begin(), columns.indices().end()});
    return request;
  }
  std::vector<std::string> names;
  std::vector<float> values;
  for (const Row& row : rows) {
    for (int i = 0; i < kFeatures; ++i) {
      if (!padded && !row.contains(i)) continue;
      names.emplace_back(row.contains(i) ? kNames[i] : "");
      values.push_back(row.contains(i) ? row.at(i) : NAN);
    }
  }
  const std::vector<int64_t> shape = padded
                                         ? std::vector<int64_t>{n, kFeatures}
                                         : std::vector<int64_t>{static_cast<int64_t>(names.size())};
  AddStrings(request, "names", shape, names);
  AddFloats(request, "values", shape, values);
  if (!padded) AddIndices(request, "row_ends", row_ends);
  return request;
}

class InferenceEqualityTest : public InferenceTest {
 protected:
  // Creates the model and teaches it random labels, which no rule gets done with.
  v1::Model MakeTaught(const std::string& id, const v1::Model& settings, Form form) {
    const v1::Model model = Create(id, settings);
    const int classes = static_cast<int>(model.learner().classes().max_classes());
    v1::LearnRequest learn;
    learn.set_model("models/" + id);
    *learn.mutable_columns() = Columns(RandomRows(1, 200), form);
    std::mt19937 random(2);
    for (int i = 0; i < 200; ++i) {
      const int label = classes > 0 ? static_cast<int>(random() % static_cast<unsigned>(classes))
                                    : (random() % 2 != 0 ? 1 : -1);
      learn.mutable_columns()->add_labels(label);
    }
    if (model.learner().classes().new_classes() == v1::Classes::NEW_CLASSES_NAMED) {
      for (int i = 0; i < classes; ++i)
        learn.mutable_columns()->add_label_names("class " + std::to_string(i));
    }
    const grpc::Status status = Learn(learn);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return Get(id, v1::MODEL_VIEW_BASIC);
  }

  void ExpectLabels(const v1::Model& model, const v1::PredictResponse& expected,
                    const oip::ModelInferResponse& answer) {
    const auto label = Output(answer, "label");
    if (model.label_names().empty()) {
      EXPECT_THAT(label.contents().int_contents(), ElementsAreArray(expected.predicted_labels()));
      return;
    }
    std::vector<std::string> names;
    for (const int32_t number : expected.predicted_labels()) {
      const bool several = model.learner().has_classes();
      names.push_back(model.label_names(several ? number : (number > 0 ? 1 : 0)));
    }
    EXPECT_THAT(label.contents().bytes_contents(), ElementsAreArray(names));
  }
  void ExpectFloats(const std::string& name, const google::protobuf::RepeatedField<float>& expected,
                    const oip::ModelInferResponse& answer) {
    EXPECT_EQ(Bits(Output(answer, name).contents().fp32_contents()), Bits(expected)) << name;
  }
  // What Predict says of the rows in one form is what ModelInfer says of them in every other.
  void ExpectEqual(const v1::Model& model, const std::vector<Row>& rows,
                   const std::vector<Form>& forms) {
    const std::string id = model.name().substr(model.name().find('/') + 1);
    const int64_t n = static_cast<int64_t>(rows.size());
    for (const Form form : forms) {
      v1::PredictRequest predict;
      predict.set_model(model.name());
      *predict.mutable_columns() = Columns(rows, form);
      predict.set_include_class_scores(true);
      v1::PredictResponse expected;
      ASSERT_TRUE(Predict(predict, &expected).ok());
      for (const bool padded : {false, true}) {
        const oip::ModelInferRequest request = Tensors(id, rows, form, padded);
        const oip::ModelInferResponse answer = Answer(request);
        ExpectLabels(model, expected, answer);
        ExpectFloats("score", expected.scores(), answer);
        ExpectFloats("distance", expected.distances(), answer);
        ExpectFloats("probability", expected.probabilities(), answer);
        ExpectFloats("class_scores", expected.class_scores(), answer);
        ExpectFloats("class_probabilities", expected.class_probabilities(), answer);
        EXPECT_THAT(Output(answer, "component_revisions").contents().int64_contents(),
                    ElementsAreArray(expected.component_revisions()));
        EXPECT_EQ(answer.model_version(), std::to_string(expected.revision()));
        // The metadata says what there is, and nothing else.
        std::vector<std::string> described = Describe(Metadata(id).outputs());
        for (std::string& tensor : described) {
          const size_t rows_at = tensor.find("[-1");
          if (rows_at != std::string::npos) tensor.replace(rows_at + 1, 2, std::to_string(n));
        }
        if (!ClassesMayComeUp(model)) {
          EXPECT_EQ(Describe(answer.outputs()), described);
        }
        // Raw in, raw out, the same bits.
        EXPECT_EQ(Answer(Raw(request)).SerializeAsString(), Raw(answer).SerializeAsString());
      }
    }
  }
  static bool ClassesMayComeUp(const v1::Model& model) {
    return model.learner().classes().new_classes() > v1::Classes::NEW_CLASSES_NONE;
  }
};

v1::Model Settings(const std::string& kind, uint32_t classes = 0) {
  v1::Model settings;
  testing::SetLearner(*settings.mutable_learner(), kind);
  if (classes > 0) settings.mutable_learner()->mutable_classes()->set_max_classes(classes);
  return settings;
}

TEST_F(InferenceEqualityTest, OfEveryLearnerInADenseSpace) {
  for (const CatalogueEntry& entry : Catalogue()) {
    SCOPED_TRACE(entry.name);
    v1::Model settings = Settings(entry.name);
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
    // Else its weights would stay zero, and its distances unknown, until a pass ends.
    if (testing::HasSetting(entry.name, "mini_batch"))
      testing::SetCount(*settings.mutable_learner(), "mini_batch", 10);
    const v1::Model model = MakeTaught("m-" + entry.name, settings, Form::kDense);
    EXPECT_GT(model.revision(), 0);
    ExpectEqual(model, RandomRows(3, kRows), {Form::kDense, Form::kSparse});
  }
}

TEST_F(InferenceEqualityTest, OfHashedAndNamedSpacesWithEveryFeatureMap) {
  for (const bool hashed : {true, false}) {
    for (int map = 0; map < 4; ++map) {
      SCOPED_TRACE(std::to_string(hashed) + " " + std::to_string(map));
      v1::Model settings = Settings("arow");
      settings.add_label_names("no");
      settings.add_label_names("yes");
      v1::FeatureSpace& space = *settings.mutable_feature_space();
      if (hashed) space.mutable_hashed()->set_bits(3);
      if (!hashed) space.mutable_named();
      if (map == 1) space.mutable_map()->mutable_polynomial()->set_degree(2);
      if (map == 2) {
        auto& pair = *space.mutable_map()->mutable_products()->add_pairs();
        pair.set_first("u");
        pair.set_second("v");
      }
      if (map == 3) {
        space.mutable_map()->mutable_fourier()->set_dimension(20);
        space.mutable_map()->mutable_fourier()->set_gamma(0.5);
      }
      const std::string id = (hashed ? "h" : "n") + std::to_string(map);
      const v1::Model model = MakeTaught(id, settings, Form::kNamed);
      std::vector<Form> forms = {Form::kNamed};
      if (hashed && map != 2) forms.push_back(Form::kSparse);
      ExpectEqual(model, RandomRows(3, kRows), forms);
    }
  }
}

TEST_F(InferenceEqualityTest, OfSeveralClasses) {
  int i = 0;
  for (const std::string kind : {"perceptron", "averaged-perceptron", "logistic-regression"}) {
    for (const auto new_classes : {v1::Classes::NEW_CLASSES_NONE, v1::Classes::NEW_CLASSES_NUMBERED,
                                   v1::Classes::NEW_CLASSES_NAMED}) {
      for (const bool names : {false, true}) {
        if (names && new_classes != v1::Classes::NEW_CLASSES_NONE) continue;
        SCOPED_TRACE(i);
        v1::Model settings = Settings(kind, 4);
        settings.mutable_feature_space()->mutable_named();
        settings.mutable_learner()->mutable_classes()->set_new_classes(new_classes);
        if (names) {
          for (const char* name : {"north", "east", "south", "west"})
            settings.add_label_names(name);
        }
        const v1::Model model = MakeTaught("c" + std::to_string(i++), settings, Form::kNamed);
        ExpectEqual(model, RandomRows(3, kRows), {Form::kNamed});
        const oip::ModelInferResponse answer =
            Answer(Tensors("c" + std::to_string(i - 1), RandomRows(3, 2), Form::kNamed, true));
        EXPECT_THAT(Output(answer, "class_names").contents().bytes_contents(),
                    ElementsAreArray(model.label_names()));
        EXPECT_EQ(Output(answer, "class_scores").shape(1), 4);
      }
    }
  }
}

TEST_F(InferenceEqualityTest, OfCompositions) {
  for (const Form form : {Form::kDense, Form::kNamed}) {
    const std::string prefix = form == Form::kDense ? "d" : "n";
    v1::Model settings = Settings("passive-aggressive-i");
    if (form == Form::kDense) {
      settings.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
    } else {
      settings.mutable_feature_space()->mutable_named();
    }
    v1::Model whole = Settings("perceptron");
    for (const char* part : {"x", "y", "z"}) {
      MakeTaught(prefix + part, settings, form);
      auto& input = *whole.mutable_feature_space()->mutable_composition()->add_inputs();
      input.set_model("models/" + prefix + part);
      input.set_output(v1::FeatureSpace::Composition::OUTPUT_SCORE);
    }
    const v1::Model model = MakeTaught(prefix + "whole", whole, form);
    ExpectEqual(model, RandomRows(3, kRows), {form});
    const oip::ModelMetadataResponse metadata = Metadata(prefix + "whole");
    EXPECT_THAT(Describe(metadata.inputs()),
                ::testing::ElementsAre(form == Form::kDense ? "features FP32 [-1,6]"
                                                            : "names BYTES [-1,-1]"));
    EXPECT_EQ(metadata.properties().at("feature_space"), "composition");
  }
}

}  // namespace
}  // namespace perceptrond::testing
