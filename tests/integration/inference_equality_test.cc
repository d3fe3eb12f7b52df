// Over models of every kind: whatever form its tensors have, ModelInfer answers what Predict
// answers to the same rows, to the bit.
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

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

// NaN too is compared by its bits.
template <typename Field>
std::vector<uint32_t> Bits(const Field& floats) {
  std::vector<uint32_t> bits;
  for (const float value : floats) bits.push_back(std::bit_cast<uint32_t>(value));
  return bits;
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
  void ExpectEqual(const v1::Model& model, const std::vector<Form>& forms) {
    const std::vector<Row> rows = RandomRows(3, kRows);
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

TEST_F(InferenceEqualityTest, OfEveryLearnerInADenseSpace) {
  for (const CatalogueEntry& entry : Catalogue()) {
    SCOPED_TRACE(entry.name);
    v1::Model settings;
    testing::SetLearner(*settings.mutable_learner(), entry.name);
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
    // Else its weights would stay zero, and its distances unknown, until a pass ends.
    if (testing::HasSetting(entry.name, "mini_batch"))
      testing::SetCount(*settings.mutable_learner(), "mini_batch", 10);
    const v1::Model model = MakeTaught("m-" + entry.name, settings, Form::kDense);
    EXPECT_GT(model.revision(), 0);
    ExpectEqual(model, {Form::kDense, Form::kSparse});
  }
}

TEST_F(InferenceEqualityTest, OfSpacesMapsAndClasses) {
  const std::string arow = " learner { arow {} } label_names: ['no', 'yes']";
  const std::string classes = "feature_space { named {} } learner { classes { max_classes: 4 ";
  const struct {
    std::string settings;
    std::vector<Form> forms;
  } cases[] = {
      {"feature_space { hashed { bits: 3 } map { polynomial { degree: 2 } } }" + arow,
       {Form::kNamed, Form::kSparse}},
      {"feature_space { named {} map { products { pairs { first: 'u' second: 'v' } } } }" + arow,
       {Form::kNamed}},
      {"feature_space { named {} map { fourier { dimension: 20 gamma: 0.5 } } }" + arow,
       {Form::kNamed}},
      {classes + "} }", {Form::kNamed}},
      {classes + "} averaged {} } label_names: ['north', 'east', 'south', 'west']", {Form::kNamed}},
      {classes + "new_classes: NEW_CLASSES_NUMBERED } logistic_regression {} }", {Form::kNamed}},
      {classes + "new_classes: NEW_CLASSES_NAMED } }", {Form::kNamed}},
      {"feature_space { composition { inputs { model: 'models/m0' output: OUTPUT_SCORE } "
       "inputs { model: 'models/m1' output: OUTPUT_SCORE } } }",
       {Form::kNamed}},
  };
  for (const char* part : {"m0", "m1"})
    MakeTaught(part, FromText<v1::Model>("feature_space { named {} }"), Form::kNamed);
  int number = 2;
  for (const auto& one : cases) {
    SCOPED_TRACE(one.settings);
    const std::string id = "m" + std::to_string(number++);
    const v1::Model model = MakeTaught(id, FromText<v1::Model>(one.settings), Form::kNamed);
    ExpectEqual(model, one.forms);
    if (!model.learner().has_classes()) continue;
    const oip::ModelInferResponse answer =
        Answer(Tensors(id, RandomRows(3, 2), Form::kNamed, true));
    EXPECT_THAT(Output(answer, "class_names").contents().bytes_contents(),
                ElementsAreArray(model.label_names()));
    EXPECT_EQ(Output(answer, "class_scores").shape(1), 4);
  }
  const oip::ModelMetadataResponse composition = Metadata("m" + std::to_string(number - 1));
  EXPECT_THAT(Describe(composition.inputs()), ::testing::ElementsAre("names BYTES [-1,-1]"));
  EXPECT_EQ(composition.properties().at("feature_space"), "composition");
}

}  // namespace
}  // namespace perceptrond::testing
