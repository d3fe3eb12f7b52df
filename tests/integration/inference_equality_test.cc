// Whatever form its tensors have, ModelInfer answers what Predict answers to the same rows, to the bit: tensors become the
// columns that Predict reads, of which tests/fuzz/forms_fuzz.cc has every learner. Here are all forms and all outputs.
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/inference_fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::ElementsAreArray;

// Three rows, of which the second is empty.
struct Form {
  // As Predict takes them, in text format.
  std::string columns;
  oip::ModelInferRequest tensors = {};
};

Form Dense() {
  Form form{"dense_width: 3 values: [1, 0, 2, 0, 0, 0, -1, 0.5, 0]"};
  AddFloats(form.tensors, "features", {3, 3}, {1, 0, 2, 0, 0, 0, -1, 0.5F, 0});
  return form;
}
Form Sparse() {
  Form form{"row_ends: [2, 2, 4] indices: [0, 2, 0, 1] values: [1, 2, -1, 0.5]"};
  AddFloats(form.tensors, "values", {4}, {1, 2, -1, 0.5F});
  AddIndices(form.tensors, "row_ends", {2, 2, 4});
  AddIndices(form.tensors, "indices", {0, 2, 0, 1});
  return form;
}
// Names are sent in any order.
constexpr char kNames[] =
    "feature_names { text: 'au^xv^x\u00e9' lengths: [1, 3, 3, 2] } row_ends: [3, 3, 5] "
    "indices: [0, 1, 3, 1, 2] values: [1, -2, 0.5, 3, 1]";
Form Names() {
  Form form{kNames};
  AddStrings(form.tensors, "names", {5}, {"\u00e9", "u^x", "a", "v^x", "u^x"});
  AddFloats(form.tensors, "values", {5}, {0.5F, -2, 1, 1, 3});
  AddIndices(form.tensors, "row_ends", {3, 3, 5});
  return form;
}
Form PaddedNames() {
  Form form{kNames};
  AddStrings(form.tensors, "names", {3, 3}, {"\u00e9", "u^x", "a", "", "", "", "v^x", "", "u^x"});
  AddFloats(form.tensors, "values", {3, 3}, {0.5F, -2, 1, NAN, NAN, NAN, 1, NAN, 3});
  return form;
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
  void ExpectLabels(const v1::Model& model, const v1::PredictResponse& expected,
                    const oip::ModelInferResponse& answer) {
    const auto label = Output(answer, "label");
    if (model.label_names().empty()) {
      EXPECT_THAT(label.contents().int_contents(), ElementsAreArray(expected.predicted_labels()));
      return;
    }
    std::vector<std::string> names;
    for (const int32_t number : expected.predicted_labels())
      names.push_back(model.label_names(model.learner().has_classes() ? number : number > 0));
    EXPECT_THAT(label.contents().bytes_contents(), ElementsAreArray(names));
  }
  void ExpectEqual(const std::string& id, Form form) {
    const v1::Model model = Get(id, v1::MODEL_VIEW_BASIC);
    const auto expected = AnswerOf<v1::PredictResponse>(
        "PredictionService/Predict", absl::StrCat("model: 'models/", id, "' columns { ",
                                                  form.columns, " } include_class_scores: true"));
    form.tensors.set_model_name(id);
    const oip::ModelInferResponse answer = Answer(form.tensors);
    ExpectLabels(model, expected, answer);
    const auto expect_floats = [&](const char* name, const auto& floats) {
      EXPECT_EQ(Bits(Output(answer, name).contents().fp32_contents()), Bits(floats)) << name;
    };
    expect_floats("score", expected.scores());
    expect_floats("distance", expected.distances());
    expect_floats("probability", expected.probabilities());
    expect_floats("class_scores", expected.class_scores());
    expect_floats("class_probabilities", expected.class_probabilities());
    EXPECT_THAT(Output(answer, "component_revisions").contents().int64_contents(),
                ElementsAreArray(expected.component_revisions()));
    EXPECT_EQ(answer.model_version(), absl::StrCat(expected.revision()));
    if (model.learner().has_classes()) {
      EXPECT_EQ(Output(answer, "class_scores").shape(1), 3);
      EXPECT_THAT(Output(answer, "class_names").contents().bytes_contents(),
                  ElementsAreArray(model.label_names()));
    }
    // The metadata says what there is, and nothing else; it does not know classes that may come up.
    std::vector<std::string> described = Describe(Metadata(id).outputs());
    for (std::string& tensor : described) {
      const size_t rows_at = tensor.find("[-1");
      if (rows_at != std::string::npos) tensor.replace(rows_at + 1, 2, "3");
    }
    if (model.learner().classes().new_classes() <= v1::Classes::NEW_CLASSES_NONE) {
      EXPECT_EQ(Describe(answer.outputs()), described);
    }
    // Raw in, raw out, the same bits.
    EXPECT_EQ(Answer(Raw(form.tensors)).SerializeAsString(), Raw(answer).SerializeAsString());
  }
};

TEST_F(InferenceEqualityTest, OfFormsSpacesLearnersAndClasses) {
  const std::string named = "feature_space { named {} ";
  const std::string classes = named + "} learner { classes { max_classes: 3 ";
  const std::string two = " labels: [1, -1, 1]";
  const std::string three = " labels: [2, 0, 1]";
  const std::string three_by_name = three + " label_names: ['tea', 'rum', 'ale']";
  const struct {
    std::string settings;
    std::string labels;
    std::vector<Form> forms;
  } cases[] = {
      {"feature_space { dense { dimension: 3 } }", two, {Dense(), Sparse()}},
      {"feature_space { dense { dimension: 3 } } learner { logistic_regression {} }",
       two,
       {Dense()}},
      {"feature_space { hashed { bits: 3 } map { polynomial { degree: 2 } } } "
       "learner { voted {} } label_names: ['no', 'yes']",
       two,
       {Names(), PaddedNames(), Sparse()}},
      {named + "map { products { pairs { first: 'u' second: 'v' } } } }", two, {Names()}},
      {named + "map { fourier { dimension: 20 gamma: 0.5 } } }", two, {PaddedNames()}},
      {classes + "} }", three, {Names()}},
      {classes + "} averaged {} } label_names: ['north', 'east', 'south']", three, {Names()}},
      {classes + "new_classes: NEW_CLASSES_NUMBERED } logistic_regression {} }", three, {Names()}},
      {classes + "new_classes: NEW_CLASSES_NAMED } }", three_by_name, {PaddedNames()}},
      {"feature_space { composition { inputs { model: 'models/m3' } "
       "inputs { model: 'models/m3' output: OUTPUT_SCORE } } }",
       two,
       {Names(), PaddedNames()}},
  };
  int number = 0;
  std::string id;
  for (const auto& one : cases) {
    SCOPED_TRACE(one.settings);
    id = absl::StrCat("m", number++);
    Create(id, one.settings);
    for (int i = 0; i < 3; ++i)
      LearnSome(id, "columns { " + one.forms[0].columns + one.labels + " }");
    for (const Form& form : one.forms) ExpectEqual(id, form);
  }
  EXPECT_THAT(Describe(Metadata(id).inputs()), ::testing::ElementsAre("names BYTES [-1,-1]"));
  EXPECT_EQ(Metadata(id).properties().at("feature_space"), "composition");
}

}  // namespace
}  // namespace perceptrond::testing
