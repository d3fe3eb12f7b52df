// Errors as a client receives them over gRPC: code, reason and field, for every method, every form
// of examples and every setting; and when to try again.
#include <rocksdb/db.h>

#include <memory>

#include "absl/strings/str_cat.h"
#include "core/journal/rocksdb/rocksdb_journal.h"
#include "core/journal/table_keys.h"
#include "tests/integration/fixture.h"
#include "tests/integration/methods.h"
#include "tests/support/journals.h"

namespace perceptrond::testing {
namespace {

class ErrorDetailsTest : public ServerTest {
 protected:
  ErrorDetailsTest() : ServerTest({"--max-example-features", "3"}) {
    Create("line", "feature_space { dense { dimension: 1 } }");
    Create("wide", "feature_space { dense { dimension: 9 } }");
    Create("words", "feature_space { named {} }");
    Create("slots", "feature_space { hashed { bits: 1 } }");
    Create("mail", "feature_space { text {} }");
    Create("drinks",
           "feature_space { named {} } learner { classes { max_classes: 3 } } "
           "label_names: ['tea', 'rum', 'ale']");
    Create("numbered",
           "feature_space { dense { dimension: 1 } } learner { classes { max_classes: 3 "
           "new_classes: NEW_CLASSES_NUMBERED } }");
    Create("plain-weights",
           "feature_space { dense { dimension: 2 } } learner { passive_aggressive {} }");
    Create("keeps", "feature_space { named {} } stored_predictions {}");
    Create("frozen", "feature_space { dense { dimension: 1 } }");
    EXPECT_EQ(Call("ModelService/FreezeModel", "name: 'models/frozen'"), "OK");
  }
};

class EveryMethodTest : public ServerTest {
 protected:
  EveryMethodTest() : ServerTest({"--max-message-bytes=64KiB"}) {}
};

TEST_F(EveryMethodTest, NamesAModelThatIsNotThereAndRefusesBytesThatAreNoRequestOrTooMany) {
  for (const ApiMethod& method : kApiMethods) {
    SCOPED_TRACE(method.path);
    EXPECT_EQ(Call(method.path, method.Request("models/none")), method.absent);
    if (method.NamesModel()) {
      // A stream of predictions goes on.
      v1::PredictResponse in_band;
      const bool stream = method.path == std::string("PredictionService/PredictStream");
      const std::string outcome =
          Call(method.path, method.Request("models/no spaces"), stream ? &in_band : nullptr);
      EXPECT_EQ((stream ? Outcome(in_band) : outcome).find("INVALID_ARGUMENT INVALID_FIELD "), 0U)
          << outcome;
    }
    const bool named = std::string(method.path).find('.') != std::string::npos;
    const std::string path = absl::StrCat(named ? "/" : "/perceptron.v1.", method.path);
    const grpc::Status malformed = CallRaw(path, {"\xff\xff\xff"});
    EXPECT_EQ(malformed.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(Reason(malformed), "MALFORMED_MESSAGE");
    const grpc::Status large = CallRaw(path, {std::string((64 << 10) + 1, 'x')});
    EXPECT_EQ(large.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
    EXPECT_EQ(Reason(large), "MESSAGE_TOO_LARGE");
  }
}

struct RefusedRequest {
  const char* method;
  const char* request;
  const char* outcome;
};

constexpr RefusedRequest kRefusedRequests[] = {
    {"ModelService/CreateModel", "model_id: 'line' model { feature_space { text {} } }",
     "ALREADY_EXISTS MODEL_EXISTS"},
    {"ModelService/CreateModel", "model_id: 'no spaces' model { feature_space { text {} } }",
     "INVALID_ARGUMENT INVALID_FIELD model_id"},
    {"ModelService/GetModel", "name: 'models/line' view: 77",
     "INVALID_ARGUMENT INVALID_FIELD view"},
    {"ModelService/GetModel", "name: 'line'", "INVALID_ARGUMENT INVALID_FIELD name"},
    {"ModelService/WatchModel", "name: 'models/line' min_interval { nanos: 49999999 }",
     "INVALID_ARGUMENT INVALID_FIELD min_interval"},
    {"ModelService/ListModels", "page_token: 'forged'",
     "INVALID_ARGUMENT INVALID_FIELD page_token"},
    {"ModelService/UpdateModel", "model { name: 'models/line' } update_mask { paths: 'learner' }",
     "INVALID_ARGUMENT IMMUTABLE_FIELD update_mask"},
    {"ModelService/UpdateModel", "model { name: 'models/line' } update_mask { paths: 'colour' }",
     "INVALID_ARGUMENT INVALID_FIELD update_mask"},
    {"ModelService/UpdateModel", "model { name: 'models/line' etag: 'old' }",
     "ABORTED ETAG_MISMATCH"},
    {"ModelService/DeleteModel", "name: 'models/line' etag: 'old'", "ABORTED ETAG_MISMATCH"},
    {"LearningService/Learn", "examples { label: 1 }", "INVALID_ARGUMENT INVALID_FIELD model"},
    // Without an offset a second batch would be taken for the first one sent again.
    {"LearningService/Learn", "model: 'models/line' producer_id: 'p' examples { label: 1 }",
     "INVALID_ARGUMENT INVALID_FIELD first_offset"},
    {"LearningService/Learn", "model: 'models/line' first_offset: 0 examples { label: 1 }",
     "INVALID_ARGUMENT INVALID_FIELD first_offset"},
    {"LearningService/Learn",
     "model: 'models/line' producer_id: 'p' first_offset: 5 examples { label: 1 }",
     "OUT_OF_RANGE OFFSET_GAP"},
    {"LearningService/Learn", "model: 'models/frozen' examples { label: 1 }",
     "FAILED_PRECONDITION MODEL_FROZEN"},
    {"LearningService/LearnStream", "", "INVALID_ARGUMENT MISSING_MODEL model"},
    {"LearningService/LearnStream", "model: 'models/line' order: 99",
     "INVALID_ARGUMENT INVALID_FIELD order"},
    {"LearningService/LearnStream", "model: 'models/line' result_detail: 99",
     "INVALID_ARGUMENT INVALID_FIELD result_detail"},
    {"LearningService/LearnStream",
     "model: 'models/line' producer { id: 'q' resume { model_uid: 'another' } }",
     "FAILED_PRECONDITION MODEL_REPLACED"},
    {"PredictionService/Predict", "model: 'models/line' min_revision: 1",
     "ABORTED REVISION_TOO_OLD"},
    {"PredictionService/Predict", "model: 'aliases//'", "INVALID_ARGUMENT INVALID_FIELD model"},
    {"PredictionService/Predict", "model: 'models/line' name_table_size: 4",
     "INVALID_ARGUMENT INVALID_FIELD name_table_size"},
    {"PredictionService/Predict", "model: 'models/line' include_prediction_ids: true",
     "INVALID_ARGUMENT INVALID_FIELD include_prediction_ids"},
    {"PredictionService/Predict",
     "model: 'models/keeps' include_prediction_ids: true columns { prediction_ids: 'a' }",
     "INVALID_ARGUMENT INVALID_FIELD columns.prediction_ids"},
    {"PredictionService/Explain", "model: 'models/line' max_features: -1 examples {}",
     "INVALID_ARGUMENT INVALID_FIELD max_features"},
    {"PredictionService/Explain", "model: 'models/line' max_features: 10001 examples {}",
     "INVALID_ARGUMENT INVALID_FIELD max_features"},
    {"PredictionService/Explain", "model: 'models/line' min_revision: 1 examples {}",
     "ABORTED REVISION_TOO_OLD"},
    {"PredictionService/Explain", "examples {}", "INVALID_ARGUMENT INVALID_FIELD model"},
    {"PredictionService/Explain", "model: 'models/numbered' examples {}",
     "FAILED_PRECONDITION NO_CLASS"},
    {"AnalysisService/Analyze", "model: 'models/line'", "FAILED_PRECONDITION NOTHING_STORED"},
    {"AnalysisService/Analyze", "model: 'models/line' relative_gap: 2",
     "INVALID_ARGUMENT INVALID_FIELD relative_gap"},
    {"AnalysisService/Analyze", "model: 'models/line' expected_revision: 3",
     "INVALID_ARGUMENT INVALID_FIELD expected_revision"},
    {"AnalysisService/Analyze", "model: 'models/line' replace_weights: true expected_revision: -1",
     "INVALID_ARGUMENT INVALID_FIELD expected_revision"},
    {"AnalysisService/Analyze", "model: 'models/line' max_rounds: 1000001",
     "INVALID_ARGUMENT INVALID_FIELD max_rounds"},
    {"AnalysisService/Analyze", "model: 'models/line' time_limit { seconds: -1 }",
     "INVALID_ARGUMENT INVALID_FIELD time_limit"},
    {"AnalysisService/Analyze", "model: 'models/line' time_limit { seconds: 3600 }",
     "RESOURCE_EXHAUSTED ANALYSIS_TIME"},
    {"AnalysisService/ListStoredExamples", "model: 'models/line' page_token: 'dTE'",
     "INVALID_ARGUMENT INVALID_FIELD page_token"},
    {"AliasService/UpdateAlias", "alias { name: 'aliases/y' model: 'models/line' }",
     "NOT_FOUND ALIAS_NOT_FOUND"},
    {"AliasService/UpdateAlias",
     "alias { name: 'aliases/y' model: 'models/none' } allow_missing: true",
     "NOT_FOUND MODEL_NOT_FOUND"},
    {"HistoryService/CopyModel", "name: 'models/line' new_name: 'models/no spaces'",
     "INVALID_ARGUMENT INVALID_FIELD new_name"},
    {"HistoryService/CopyModel", "name: 'models/line' new_name: 'models/wide'",
     "ALREADY_EXISTS MODEL_EXISTS"},
    {"HistoryService/RenameModel", "name: 'models/line' new_name: 'models/wide'",
     "ALREADY_EXISTS MODEL_EXISTS"},
    {"HistoryService/CreateSnapshot", "model: 'models/line' snapshot_id: 'no/slash'",
     "INVALID_ARGUMENT INVALID_FIELD snapshot_id"},
    {"HistoryService/RollBackModel", "model: 'models/line' revision: -1",
     "INVALID_ARGUMENT INVALID_FIELD revision"},
    {"HistoryService/RollBackModel", "model: 'models/line' revision: 7",
     "NOT_FOUND REVISION_NOT_KEPT"},
    {"HistoryService/RollBackModel", "model: 'models/line' snapshot_id: 'k' revision: 0",
     "INVALID_ARGUMENT INVALID_FIELD snapshot_id"},
    {"HistoryService/RollBackModel", "model: 'models/line' snapshot_id: 'k'",
     "NOT_FOUND SNAPSHOT_NOT_FOUND"},
};

TEST_F(ErrorDetailsTest, EveryRefusedRequestHasItsCodeItsReasonAndItsField) {
  for (const RefusedRequest& one : kRefusedRequests)
    EXPECT_EQ(Call(one.method, one.request), one.outcome) << one.method << " " << one.request;
  // Beyond it the sum over all producers might not fit in a counter.
  EXPECT_EQ(Call("LearningService/LearnStream",
                 absl::StrCat("model: 'models/line' producer { id: 'q' resume { model_uid: '",
                              Get("line").uid(), "' acknowledged_offset: 281474976710657 } }")),
            "INVALID_ARGUMENT INVALID_FIELD producer.resume.acknowledged_offset");
}

// core/settings/settings_test.cc has those of learners.
TEST_F(ErrorDetailsTest, SettingsOutOfRangeNameTheirField) {
  const struct {
    const char* settings;
    const char* outcome;
  } cases[] = {
      {"", "INVALID_FIELD model.feature_space"},
      // Beyond the range of float.
      {"learner { perceptron { step_size: 1e-39 } }",
       "INVALID_FIELD model.learner.perceptron.step_size"},
      {"learner { perceptron { step_size: 1e39 } }",
       "INVALID_FIELD model.learner.perceptron.step_size"},
      {"learner { tie_rule: TIE_RULE_CORRECT }", "ZERO_START model.learner.tie_rule"},
      {"expire_after { seconds: 0 }", "INVALID_FIELD model.expire_after"},
      {"expire_after { seconds: -5 }", "INVALID_FIELD model.expire_after"},
      {"expire_after { seconds: 4000000000 }", "INVALID_FIELD model.expire_after"},
      {"feature_space { text { bits: 29 } }", "INVALID_FIELD model.feature_space.text.bits"},
      {"feature_space { text { bits: 25 inverse_document_frequency: true } }",
       "INVALID_FIELD model.feature_space.text.bits"},
      {"feature_space { text { max_words: 6 } }",
       "INVALID_FIELD model.feature_space.text.max_words"},
      {"feature_space { text { max_words: 0 } }",
       "INVALID_FIELD model.feature_space.text.max_words"},
      {"feature_space { text { max_characters: 3 } }",
       "INVALID_FIELD model.feature_space.text.min_characters"},
      {"feature_space { text { min_characters: 3 } }",
       "INVALID_FIELD model.feature_space.text.max_characters"},
      {"feature_space { text { min_characters: 3 max_characters: 11 } }",
       "INVALID_FIELD model.feature_space.text.max_characters"},
      {"feature_space { text { value: 9 } }", "INVALID_FIELD model.feature_space.text.value"},
  };
  for (const auto& one : cases) {
    auto settings = FromText<v1::Model>(one.settings);
    if (!settings.has_feature_space() && one.settings[0] != '\0')
      settings.mutable_feature_space()->mutable_dense()->set_dimension(3);
    EXPECT_EQ(Call("ModelService/CreateModel",
                   absl::StrCat("model_id: 'm' model {", settings.ShortDebugString(), "}")),
              absl::StrCat("INVALID_ARGUMENT ", one.outcome))
        << one.settings;
  }
  // The least step that a float holds with all its bits.
  Create("least", "feature_space { text {} } learner { perceptron { step_size: 1.1754944e-38 } }");
}

// Examples, in the fields that LearnRequest and LearnStreamRequest share. Learned in this order.
struct RefusedExamples {
  const char* model;
  const char* message;
  const char* outcome;
};

constexpr RefusedExamples kRefusedExamples[] = {
    {"line",
     "examples { sparse { indices: 0 values: nan } label: 1 } "
     "examples { sparse { indices: 1 values: 1 } label: 1 } "
     "examples { sparse { indices: 0 values: 1 } label: 2 } "
     "examples { sparse { indices: 0 values: 1 } } "
     "examples { dense { values: [1, 1] } label: 1 } "
     "examples { sparse { indices: 0 values: inf } label: 1 } "
     "examples { named { names: 'a' } label: 1 } "
     "examples { text: 'a' label: 1 } "
     "examples { sparse { indices: 0 values: [1, 2] } label: 1 } "
     "examples { sparse { indices: 0 } label_name: 'spam' }",
     "0: INVALID_ARGUMENT NON_FINITE_VALUE examples[0].sparse.values[0]; "
     "1: INVALID_ARGUMENT INDEX_OUT_OF_RANGE examples[1].sparse.indices[0]; "
     "2: INVALID_ARGUMENT UNKNOWN_LABEL examples[2].label; "
     "3: INVALID_ARGUMENT MISSING_LABEL examples[3].label; "
     "4: INVALID_ARGUMENT WRONG_DIMENSION examples[4].dense.values; "
     "5: INVALID_ARGUMENT NON_FINITE_VALUE examples[5].sparse.values[0]; "
     "6: INVALID_ARGUMENT WRONG_FORM examples[6].named; "
     "7: INVALID_ARGUMENT WRONG_FORM examples[7].text; "
     "8: INVALID_ARGUMENT LENGTH_MISMATCH examples[8].sparse.values; "
     "9: INVALID_ARGUMENT UNKNOWN_LABEL examples[9].label_name"},
    {"line",
     "examples { label: 1 weight: 0 } examples { label: 1 weight: -1 } "
     "examples { label: 1 weight: inf } examples { label: 1 weight: nan }",
     "0: INVALID_ARGUMENT BAD_WEIGHT examples[0].weight; "
     "1: INVALID_ARGUMENT BAD_WEIGHT examples[1].weight; "
     "2: INVALID_ARGUMENT BAD_WEIGHT examples[2].weight; "
     "3: INVALID_ARGUMENT BAD_WEIGHT examples[3].weight"},
    {"wide", "examples { sparse { indices: [0, 1, 2, 3] values: [1, 1, 1, 1] } label: 1 }",
     "0: RESOURCE_EXHAUSTED TOO_MANY_FEATURES examples[0].sparse"},
    // Rows of columns are named by their positions in them.
    {"wide",
     "columns { row_ends: [2, 4, 6, 6] indices: [1, 2, 3, 3, 4, 8] "
     "values: [1, nan, 1, 1, 1, 1] labels: [1, 1, 1, 0] }",
     "0: INVALID_ARGUMENT NON_FINITE_VALUE columns.values[1]; "
     "1: INVALID_ARGUMENT UNSORTED_INDICES columns.indices[3]; "
     "3: INVALID_ARGUMENT UNKNOWN_LABEL columns.labels[3]"},
    {"wide", "columns { index_deltas: [2147483648, 2147483648] row_ends: 2 labels: 1 }",
     "0: INVALID_ARGUMENT UNSORTED_INDICES columns.index_deltas[1]"},
    // Messages that contradict themselves are refused whole.
    {"line", "columns { dense_width: 1 values: 1 labels: 1 } examples { label: 1 }",
     "INVALID_ARGUMENT BOTH_FORMS columns"},
    {"line", "columns { dense_width: 1 values: 1 labels: [1, 1] }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.labels"},
    {"line", "columns { row_ends: 3 indices: 0 labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.row_ends"},
    {"words", "columns { feature_names { text: 'ab' lengths: 1 } }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.feature_names.lengths"},
    {"wide", "columns { row_ends: 2 indices: [1, 7] index_deltas: 1 values: [1, 1] labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.index_deltas"},
    {"wide", "columns { row_ends: 1 indices: 1 values: 1 half_values: 'ab' labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.half_values"},
    {"wide", "columns { row_ends: 1 indices: 1 half_values: 'abc' labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.half_values"},
    {"words", "columns { stream_names { text: 'a' lengths: 1 } row_ends: 1 indices: 0 labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.stream_names"},
    {"plain-weights", "examples { label: 1 } examples { label: 1 weight: 2 }",
     "INVALID_ARGUMENT WEIGHTS_NOT_TAKEN examples.weight"},
    {"plain-weights", "columns { dense_width: 2 values: [1, 0] labels: 1 weights: 2 }",
     "INVALID_ARGUMENT WEIGHTS_NOT_TAKEN columns.weights"},
    // Names: of features, and of labels.
    {"words",
     "examples { named { names: ['b', 'a'] values: [1, nan] } label: 1 } "
     "examples { named { names: 'a' values: [1, 2] } label: 1 } "
     "examples { named { names: ['a', ''] } label: 1 }",
     "0: INVALID_ARGUMENT NON_FINITE_VALUE examples[0].named.values[1]; "
     "1: INVALID_ARGUMENT LENGTH_MISMATCH examples[1].named.values; "
     "2: INVALID_ARGUMENT BAD_NAME examples[2].named.names[1]"},
    {"slots",
     "examples { named { names: ['a', 'a'] } label: 1 } examples { sparse { indices: 0 } label: 1 "
     "}",
     "0: INVALID_ARGUMENT REPEATED_NAME examples[0].named.names; "
     "1: INVALID_ARGUMENT WRONG_FORM examples[1].sparse"},
    {"words", "columns { feature_names {} stream_names {} }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.feature_names"},
    // A name that a message has twice has its last position alone.
    {"words",
     "columns { feature_names { text: 'aba' lengths: [1, 1, 1] } row_ends: [2, 4, 5] "
     "indices: [0, 2, 1, 2, 0] labels: [1, 1, 1] }",
     "0: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.row_ends[0]; "
     "2: INVALID_ARGUMENT INDEX_OUT_OF_RANGE columns.row_ends[2]"},
    {"drinks",
     "examples { named { names: 'a' } label_name: 'rum' } "
     "examples { named { names: 'a' } label_name: 'wine' } "
     "examples { named { names: 'a' } label: 0 }",
     "1: INVALID_ARGUMENT UNKNOWN_LABEL examples[1].label_name; "
     "2: INVALID_ARGUMENT WRONG_FORM examples[2].label"},
    {"drinks", "examples { label: 2 } examples { label: 3 }",
     "1: INVALID_ARGUMENT UNKNOWN_LABEL examples[1].label"},
    // Texts.
    {"mail", "examples { text: 'a' label: 1 } examples { named { names: 'a' } label: 1 }",
     "1: INVALID_ARGUMENT WRONG_FORM examples[1].named"},
    {"line", "columns { texts: 'a' labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.texts"},
    {"mail", "columns { texts: 'a' row_ends: 0 labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.texts"},
    {"mail", "columns { indices: 3 row_ends: 1 labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.feature_names"},
    // Ids of predictions.
    {"keeps", "examples { prediction_id: '0.0.0.0' label: 1 }",
     "0: INVALID_ARGUMENT UNKNOWN_PREDICTION examples[0].prediction_id"},
    {"keeps", "columns { prediction_ids: '0.0.0.0' labels: 1 }",
     "0: INVALID_ARGUMENT UNKNOWN_PREDICTION columns.prediction_ids[0]"},
    {"keeps", "columns { prediction_ids: 'a' row_ends: 0 labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.prediction_ids"},
    {"keeps", "columns { prediction_ids: ['a', 'b'] labels: 1 }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.labels"},
    {"keeps", "columns { prediction_ids: 'a' labels: 1 weights: [1, 1] }",
     "INVALID_ARGUMENT MALFORMED_COLUMNS columns.weights"},
};

// A stream goes on after each, and a call learns all of its examples or none.
TEST_F(ErrorDetailsTest, RefusedExamplesAreNamedInBandOnAStreamAndByTheStatusOfACall) {
  for (const RefusedExamples& one : kRefusedExamples) {
    SCOPED_TRACE(absl::StrCat(one.model, ": ", one.message));
    const uint64_t before = Get(one.model).report().examples();
    const std::string model = absl::StrCat("model: 'models/", one.model, "' ");
    const std::string outcome = one.outcome;
    const std::string first_row = outcome.substr(0, outcome.find(';'));
    EXPECT_EQ(Call("LearningService/Learn", model + one.message),
              first_row.substr(first_row.find(": ") == 1 ? 3 : 0));
    EXPECT_EQ(Get(one.model).report().examples(), before);
    RawLearnStream stream(*learning_, one.model, "p");
    const int64_t begin = stream.Open().next_offset();
    const auto message = FromText<v1::LearnStreamRequest>(one.message);
    const v1::LearnResult result = stream.Ask(message);
    EXPECT_EQ(Outcome(result), one.outcome);
    const auto errors = static_cast<uint64_t>(result.row_errors_size());
    EXPECT_EQ(Get(one.model).report().examples(), before + result.examples());
    EXPECT_EQ(result.acknowledged_offset() + 1 - begin,
              static_cast<int64_t>(result.examples() + errors));
    EXPECT_EQ(Outcome(stream.Ask(std::string())), "OK");
    EXPECT_TRUE(stream.Finish().ok());
  }
  EXPECT_EQ(Get("line").report().row_errors().at("NON_FINITE_VALUE"), 2);
}

TEST_F(ErrorDetailsTest, RefusedExamplesOfPredictionsAreNamedToo) {
  EXPECT_EQ(Call("LearningService/Learn",
                 "model: 'models/words' examples { named { names: ['ape', 'mule'] } label: 1 }"),
            "OK");
  const struct {
    const char* request;
    const char* outcome;
  } cases[] = {
      {"model: 'models/line' examples { dense { values: [1, 1] } }",
       "INVALID_ARGUMENT WRONG_DIMENSION examples[0].dense.values"},
      {"model: 'models/wide' examples {} examples { sparse { indices: [0, 1, 2, 3] "
       "values: [1, 1, 1, 1] } }",
       "RESOURCE_EXHAUSTED TOO_MANY_FEATURES examples[1].sparse"},
      {"model: 'models/line' columns { dense_width: 1 values: [1, nan] }",
       "INVALID_ARGUMENT NON_FINITE_VALUE columns.values[1]"},
      {"model: 'models/slots' examples { sparse { indices: 2 } } "
       "unknown_features: UNKNOWN_FEATURES_REFUSE",
       "INVALID_ARGUMENT INDEX_OUT_OF_RANGE examples[0].sparse.indices[0]"},
      {"model: 'models/slots' examples { named { names: 'zebra' } } "
       "unknown_features: UNKNOWN_FEATURES_REFUSE",
       "OK"},
      {"model: 'models/words' examples { named { names: 'ape' } } "
       "examples { named { names: ['mule', 'zebra'] } } unknown_features: UNKNOWN_FEATURES_REFUSE",
       "INVALID_ARGUMENT UNKNOWN_FEATURE examples[1].named.names[1]"},
      {"model: 'models/words' columns { feature_names { text: 'apezebramule' lengths: [3, 5, 4] } "
       "row_ends: [1, 3] indices: [0, 1, 2] } unknown_features: UNKNOWN_FEATURES_REFUSE",
       "INVALID_ARGUMENT UNKNOWN_FEATURE columns.indices[1]"},
      {"model: 'models/words' columns { stream_names { text: 'a' lengths: 1 } row_ends: 1 "
       "indices: 0 }",
       "INVALID_ARGUMENT MALFORMED_COLUMNS columns.stream_names"},
  };
  for (const auto& one : cases) {
    EXPECT_EQ(Call("PredictionService/Predict", one.request), one.outcome) << one.request;
    // Explain takes the same examples.
    auto predict = FromText<v1::PredictRequest>(one.request);
    if (predict.unknown_features() == 0) {
      EXPECT_EQ(Call("PredictionService/Explain", one.request), one.outcome) << one.request;
    }
    // On a stream in band.
    v1::PredictResponse response;
    EXPECT_EQ(Call("PredictionService/PredictStream", one.request, &response), "OK");
    const std::string in_band = Outcome(response);
    EXPECT_EQ(in_band.substr(in_band.find(": ") == 1 ? 3 : 0), one.outcome);
  }
}

TEST_F(ErrorDetailsTest, MoreThanAMessageMayHoldIsRefusedInEveryForm) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  constexpr int kOneTooMany = (1 << 16) + 1;
  v1::LearnStreamRequest columns;
  columns.mutable_columns()->mutable_row_ends()->Resize(kOneTooMany, 0);
  columns.mutable_columns()->mutable_labels()->Resize(kOneTooMany, 1);
  EXPECT_EQ(Reason(stream.Ask(columns).error()), "TOO_MANY_EXAMPLES");
  v1::LearnStreamRequest examples;
  for (int i = 0; i < kOneTooMany; ++i) examples.add_examples()->set_label(1);
  EXPECT_EQ(Reason(stream.Ask(examples).error()), "TOO_MANY_EXAMPLES");
  // Every refused row is named; the first thousand say where.
  columns.mutable_columns()->mutable_row_ends()->Resize(3000, 0);
  columns.mutable_columns()->mutable_labels()->Clear();
  columns.mutable_columns()->mutable_labels()->Resize(3000, 7);
  columns.mutable_columns()->mutable_row_ends()->Truncate(3000);
  const v1::LearnResult result = stream.Ask(columns);
  ASSERT_EQ(result.row_errors_size(), 3000);
  EXPECT_EQ(BadField(result.row_errors(999).status()), "columns.labels[999]");
  EXPECT_EQ(result.row_errors(2999).row(), 2999);
  EXPECT_EQ(result.row_errors(2999).status().message(), "UNKNOWN_LABEL");
  EXPECT_EQ(result.row_errors(2999).status().details_size(), 0);
  EXPECT_TRUE(stream.Finish().ok());

  v1::ExplainRequest explain;
  explain.set_model("models/line");
  for (int i = 0; i < 101; ++i) explain.add_examples();
  v1::ExplainResponse explained;
  grpc::ClientContext context;
  EXPECT_EQ(Reason(predictions_->Explain(&context, explain, &explained)), "TOO_MANY_EXAMPLES");
  v1::PredictRequest predict;
  predict.set_model("models/mail");
  for (const size_t size : {1U, (1U << 20) + 1})
    predict.mutable_columns()->add_texts(std::string(size, 'a'));
  v1::PredictResponse response;
  EXPECT_EQ(Outcome(Predict(predict, &response)), "INVALID_ARGUMENT BAD_TEXT columns.texts[1]");
}

// As a client sends it whose language does not check UTF-8.
TEST_F(ErrorDetailsTest, ATextThatIsNotUtf8IsAnErrorOfItsRow) {
  auto request = FromText<v1::LearnStreamRequest>(
      "model: 'models/mail' examples { text: 'a' label: 1 } examples { text: 'b' label: 1 }");
  request.mutable_examples(1)->set_text("\xff");
  std::vector<std::string> answers;
  ASSERT_TRUE(
      CallRaw("/perceptron.v1.LearningService/LearnStream", {request.SerializeAsString()}, &answers)
          .ok());
  v1::LearnStreamResponse last;
  ASSERT_TRUE(last.ParseFromString(answers.back()));
  EXPECT_EQ(Outcome(last.results(0)), "1: INVALID_ARGUMENT BAD_TEXT examples[1].text");
  EXPECT_EQ(last.results(0).examples(), 1);
}

TEST_F(ErrorDetailsTest, ALaterMessageMayRepeatTheStreamsFieldsButNotChangeThem) {
  RawLearnStream stream(*learning_, "line", "p");
  stream.Open();
  const struct {
    const char* message;
    const char* outcome;
  } cases[] = {
      {"model: 'models/other'", "INVALID_ARGUMENT INVALID_FIELD model"},
      {"producer { id: 'q' }", "INVALID_ARGUMENT INVALID_FIELD producer.id"},
      {"producer { id: 'p' resume { acknowledged_offset: 7 } }",
       "INVALID_ARGUMENT INVALID_FIELD producer.resume"},
      {"result_detail: RESULT_DETAIL_UPDATES", "INVALID_ARGUMENT INVALID_FIELD result_detail"},
      {"include_report: true", "INVALID_ARGUMENT INVALID_FIELD include_report"},
      {"name_table_size: 8", "INVALID_ARGUMENT INVALID_FIELD name_table_size"},
      {"completed_pass: -1", "INVALID_ARGUMENT INVALID_FIELD completed_pass"},
      {"completed_pass: 3", "OUT_OF_RANGE PASS_GAP"},
      {"first_offset: 5", "OUT_OF_RANGE OFFSET_GAP"},
      {"model: 'models/line' producer { id: 'p' } result_detail: RESULT_DETAIL_FULL", "OK"},
  };
  for (const auto& one : cases) {
    const v1::LearnResult result = stream.Ask(absl::StrCat(one.message, " examples { label: 1 }"));
    EXPECT_EQ(Outcome(result), one.outcome) << one.message;
    EXPECT_EQ(result.acknowledged_offset(), one.outcome == std::string("OK") ? 0 : -1);
    if (Reason(result.error()) == "OFFSET_GAP") {
      EXPECT_EQ(Metadata(result.error(), "expected_offset"), "0");
    }
  }
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(ErrorDetailsTest, WhatComesBeforeTheEndOfAStreamIsAnswered) {
  const auto good = FromText<v1::LearnStreamRequest>(
      "model: 'models/line' columns { dense_width: 1 values: [1, 2] labels: [1, 1] }");
  const std::string bytes = good.SerializeAsString();
  uint64_t learned = 0;
  for (const std::string& bad :
       {bytes.substr(0, bytes.size() - 1), std::string((16 << 20) + 1, 'x')}) {
    std::vector<std::string> answers;
    const grpc::Status status =
        CallRaw("/perceptron.v1.LearningService/LearnStream", {bytes, bad}, &answers);
    EXPECT_EQ(Reason(status), learned == 0 ? "MALFORMED_MESSAGE" : "MESSAGE_TOO_LARGE");
    for (const std::string& answer : answers) {
      v1::LearnStreamResponse response;
      ASSERT_TRUE(response.ParseFromString(answer));
      for (const v1::LearnResult& result : response.results()) learned += result.examples();
    }
    EXPECT_EQ(Get("line").report().examples(), learned);
  }
  EXPECT_EQ(learned, 4);
}

TEST_F(ErrorDetailsTest, ErrorsThatPassSayWhenToTryAgain) {
  Create("full", "feature_space { named { max_features: 1 } } label_names: ['ham', 'spam']");
  v1::LearnResponse full;
  ASSERT_EQ(Call("LearningService/Learn",
                 "model: 'models/full' examples { named { names: ['win', 'free'] } label_name: "
                 "'spam' }",
                 &full),
            "OK");
  EXPECT_EQ(Outcome(full.result()), "0: RESOURCE_EXHAUSTED FEATURE_CAP");
  EXPECT_EQ(RetryDelay(full.result().row_errors(0).status()), absl::Hours(24));
  v1::LearnResponse classes;
  for (int label = 0; label < 4; ++label) {
    ASSERT_EQ(
        Call("LearningService/Learn",
             absl::StrCat("model: 'models/numbered' examples { label: ", label, " }"), &classes),
        label < 3 ? "OK" : "INVALID_ARGUMENT UNKNOWN_LABEL examples[0].label");
  }
  Create("topics",
         "feature_space { named {} } learner { classes { max_classes: 2 new_classes: "
         "NEW_CLASSES_NAMED } }");
  for (const char* topic : {"tea", "rum", "gin"}) {
    ASSERT_EQ(Call("LearningService/Learn",
                   absl::StrCat("model: 'models/topics' examples { label_name: '", topic, "' }"),
                   &classes),
              "OK");
  }
  EXPECT_EQ(Outcome(classes.result()), "0: RESOURCE_EXHAUSTED CLASS_CAP");
  v1::PredictResponse response;
  EXPECT_EQ(RetryDelay(Predict(FromText<v1::PredictRequest>("model: 'models/line' min_revision: 1"),
                               &response)),
            absl::Seconds(1));
}

// Refused alone, when its turn comes: only what the rows before it taught makes it too large.
TEST_F(ErrorDetailsTest, ARowWhoseUpdateOverflowsIsRefusedAlone) {
  v1::LearnResponse response;
  EXPECT_EQ(Call("LearningService/Learn",
                 "model: 'models/wide' examples { sparse { indices: [0, 1] values: [1, 1] } label: "
                 "1 } examples { sparse { indices: 0 values: 3e38 } label: -1 } "
                 "examples { sparse { indices: [0, 1] values: [-1e38, -3e38] } label: -1 } "
                 "examples { sparse { indices: [0, 1] values: [2e38, 1e38] } label: 1 }",
                 &response),
            "OK");
  EXPECT_EQ(response.result().updates(), 3);
  ASSERT_EQ(response.result().row_errors_size(), 1);
  EXPECT_EQ(response.result().row_errors(0).row(), 3);
  EXPECT_EQ(Reason(response.result().row_errors(0).status()), "WEIGHT_OVERFLOW");
}

TEST_F(ErrorDetailsTest, AModelWhoseJournalIsDamagedIsDataLossAndOthersServe) {
  const std::string row = "examples { label: 1 }";
  for (const char* id : {"line", "wide"})
    EXPECT_EQ(Call("LearningService/Learn", absl::StrCat("model: 'models/", id, "' ", row)), "OK");
  ASSERT_EQ(server_.Terminate(), 0);
  {
    RocksDbJournal::Options options;
    options.directory = dir_.path() + "/data";
    const auto journal = RocksDbJournal::Open(options);
    ASSERT_TRUE(journal.ok()) << journal.status();
    const auto header = (*journal)->Find("models/line");
    ASSERT_TRUE(header.ok()) << header.status();
    // Revisions 2 to 99 are nowhere.
    ASSERT_TRUE(CommitOne(**journal, MakeEntry(header->id(), {MakeRecord(100, 1)})).ok());
  }
  Restart();
  for (const char* method : {"LearningService/Learn", "LearningService/LearnStream",
                             "PredictionService/Predict", "PredictionService/Explain"})
    EXPECT_EQ(Call(method, "model: 'models/line' " + row), "DATA_LOSS JOURNAL_CORRUPT") << method;
  v1::PredictResponse response;
  EXPECT_EQ(RetryDelay(Predict(FromText<v1::PredictRequest>("model: 'models/line'"), &response)),
            std::nullopt)
      << "waiting does not repair a journal";
  EXPECT_EQ(Call("LearningService/Learn", "model: 'models/wide' " + row), "OK");
}

TEST_F(ErrorDetailsTest, AListNamesADamagedModelAndHasTheOthers) {
  ASSERT_EQ(server_.Terminate(), 0);
  const std::string directory = dir_.path() + "/data";
  uint64_t id = 0;
  {
    RocksDbJournal::Options options;
    options.directory = directory;
    id = RocksDbJournal::Open(options).value()->Find("models/line")->id();
  }
  {
    rocksdb::DB* raw = nullptr;
    ASSERT_TRUE(rocksdb::DB::Open(rocksdb::Options(), directory, &raw).ok());
    const std::unique_ptr<rocksdb::DB> db(raw);
    ASSERT_TRUE(db->Put(rocksdb::WriteOptions(), table_keys::Of(id, table_keys::Kind::kCounters),
                        "no counters")
                    .ok());
    ASSERT_TRUE(db->Close().ok());
  }
  Restart();
  const auto listed = AnswerOf<v1::ListModelsResponse>("ModelService/ListModels", "");
  EXPECT_EQ(listed.models_size(), 9);
  EXPECT_THAT(listed.unreachable(), ::testing::ElementsAre("models/line"));
  const std::string page =
      RunCommand("curl -s http://127.0.0.1:" + std::to_string(server_.metrics_port()) +
                 "/api/models")
          .out;
  EXPECT_THAT(page, ::testing::HasSubstr("\"unreachable\":[\"models/line\"]"));
}

}  // namespace
}  // namespace perceptrond::testing
