// The forms in which rows may be sent mean the same: nested, in columns by a message's names or by
// a stream's table, and compact.
#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "tests/integration/fixture.h"
#include "tests/support/names.h"

namespace perceptrond::testing {
namespace {

using name_columns::AppendName;

// Whole numbers: sums are exact, in any order.
struct FormRow {
  std::map<std::string, float> features;
  int label = 1;
};

std::vector<FormRow> RandomFormRows(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<FormRow> rows;
  for (int i = 0; i < count; ++i) {
    FormRow row;
    for (uint32_t j = random() % 8; j > 0; --j)
      row.features["n" + std::to_string(random() % 40)] = static_cast<float>(1 + random() % 3);
    row.label = random() % 2 == 0 ? 1 : -1;
    rows.push_back(row);
  }
  return rows;
}

// What a client keeps of a stream's table.
class ClientTable {
 public:
  explicit ClientTable(size_t size) : size_(size) {}
  // Begins a message that appends at most `room` names.
  void Begin(size_t room) { end_ = count_ + room; }
  uint32_t Number(const std::string& name, v1::NameColumn& appended) {
    const auto known = numbers_.find(name);
    if (known != numbers_.end() && known->second + size_ >= end_) return known->second;
    AppendName(name, appended);
    return numbers_[name] = static_cast<uint32_t>(count_++);
  }

 private:
  const size_t size_;
  size_t count_ = 0;
  // The highest number that the table may have after the message, and 1.
  size_t end_ = 0;
  std::map<std::string, uint32_t> numbers_;
};

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
  void CreateNamed(const std::string& id) {
    v1::Model settings;
    settings.mutable_feature_space()->mutable_named();
    Create(id, settings);
  }
  void CreateHashed(const std::string& id) {
    v1::Model settings;
    // So few slots that names share them.
    settings.mutable_feature_space()->mutable_hashed()->set_bits(4);
    Create(id, settings);
  }
  // Weights by name, or by slot.
  std::map<std::string, float> Weights(const std::string& id) {
    const v1::Model model = Get(id);
    const v1::WeightVector& vector = model.weights().vectors(0);
    std::map<std::string, float> weights = {{"bias", vector.bias()}};
    for (int i = 0; i < vector.values_size(); ++i) {
      const std::string key =
          vector.names().empty() ? "slot " + std::to_string(vector.indices(i)) : vector.names(i);
      if (vector.values(i) != 0) weights[key] = vector.values(i);
    }
    return weights;
  }
};

TEST_F(FormsTest, RowsByNameGiveOneModelInEveryForm) {
  const std::vector<FormRow> rows = RandomFormRows(600, 3);
  for (const bool hashed : {false, true}) {
    std::vector<std::map<std::string, float>> weights;
    std::vector<int64_t> revisions;
    for (const char* form : {"nested", "names", "table"}) {
      const std::string id = std::string(form) + (hashed ? "-hashed" : "-named");
      hashed ? CreateHashed(id) : CreateNamed(id);
      RawLearnStream stream(*learning_, id);
      // Of 40 names it forgets most between two messages.
      constexpr size_t kTable = 32;
      stream.first().set_name_table_size(kTable);
      EXPECT_EQ(stream.Open().name_table_size(), kTable);
      ClientTable table(kTable);
      for (size_t begin = 0; begin < rows.size(); begin += 4) {
        v1::LearnStreamRequest request;
        v1::ExampleColumns& columns = *request.mutable_columns();
        std::map<std::string, uint32_t> positions;
        table.Begin(28);
        for (size_t i = begin; i < begin + 4; ++i) {
          if (std::string(form) == "nested") {
            v1::Example& example = *request.add_examples();
            for (const auto& [name, value] : rows[i].features) {
              example.mutable_named()->add_names(name);
              example.mutable_named()->add_values(value);
            }
            example.set_label(rows[i].label);
            continue;
          }
          std::map<uint32_t, float> indexed;
          for (const auto& [name, value] : rows[i].features) {
            if (std::string(form) == "table") {
              indexed[table.Number(name, *columns.mutable_stream_names())] = value;
              continue;
            }
            const auto [position, is_new] = positions.emplace(name, positions.size());
            if (is_new) AppendName(name, *columns.mutable_feature_names());
            indexed[position->second] = value;
          }
          AddRow(indexed, rows[i].label, columns);
        }
        if (std::string(form) == "nested") request.clear_columns();
        if (std::string(form) == "names") columns.mutable_feature_names();
        if (std::string(form) == "table") columns.mutable_stream_names();
        const v1::LearnResult result = stream.Ask(request);
        ASSERT_EQ(result.row_errors_size(), 0) << result.row_errors(0).status().message();
        ASSERT_EQ(result.error().code(), 0) << result.error().message();
      }
      EXPECT_TRUE(stream.Finish().ok());
      weights.push_back(Weights(id));
      revisions.push_back(Get(id).revision());
    }
    EXPECT_GT(revisions[0], 100);
    EXPECT_EQ(revisions[1], revisions[0]);
    EXPECT_EQ(revisions[2], revisions[0]);
    EXPECT_EQ(weights[1], weights[0]);
    EXPECT_EQ(weights[2], weights[0]);
  }
}

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

TEST_F(FormsTest, ANameThatAMessageHasTwiceHasItsLastPositionAlone) {
  CreateNamed("named");
  CreateHashed("hashed");
  for (const char* id : {"named", "hashed"}) {
    SCOPED_TRACE(id);
    v1::LearnStreamRequest request;
    v1::ExampleColumns& columns = *request.mutable_columns();
    for (const char* name : {"a", "b", "a"}) AppendName(name, *columns.mutable_feature_names());
    AddRow({{0, 1}, {2, 1}}, 1, columns);
    AddRow({{1, 1}, {2, 1}}, 1, columns);
    AddRow({{0, 1}}, 1, columns);
    v1::LearnRequest all;
    all.set_model(std::string("models/") + id);
    *all.mutable_columns() = columns;
    EXPECT_EQ(Reason(Learn(all)), "INDEX_OUT_OF_RANGE");
    RawLearnStream stream(*learning_, id);
    stream.Open();
    const v1::LearnResult result = stream.Ask(request);
    ASSERT_EQ(result.row_errors_size(), 2);
    EXPECT_EQ(result.row_errors(0).row(), 0);
    EXPECT_EQ(Reason(result.row_errors(0).status()), "INDEX_OUT_OF_RANGE");
    EXPECT_EQ(result.row_errors(1).row(), 2);
    EXPECT_EQ(result.examples(), 1);
  }
  EXPECT_EQ(Get("named").weights().vectors(0).names_size(), 2);
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

TEST_F(FormsTest, NamesForATableThatNobodyAskedForAreRefused) {
  CreateNamed("m");
  v1::LearnStreamRequest request;
  AppendName("a", *request.mutable_columns()->mutable_stream_names());
  AddRow({{0, 1}}, 1, *request.mutable_columns());
  RawLearnStream stream(*learning_, "m");
  stream.Open();
  EXPECT_EQ(BadField(stream.Ask(request).error()), "columns.stream_names");
  v1::PredictRequest predict;
  predict.set_model("models/m");
  *predict.mutable_columns() = request.columns();
  v1::PredictResponse response;
  EXPECT_EQ(BadField(Predict(predict, &response)), "columns.stream_names");
  predict.set_name_table_size(4);
  EXPECT_EQ(BadField(Predict(predict, &response)), "name_table_size");
  // Another size than the stream's.
  request.set_name_table_size(8);
  EXPECT_EQ(BadField(stream.Ask(request).error()), "name_table_size");
}

// Of a stream that predicts with several models, each of which numbers names otherwise.
TEST_F(FormsTest, APredictionStreamsTableServesEveryModel) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_named();
  v1::WeightVector& start = *settings.mutable_learner()->mutable_starting_weights()->add_vectors();
  for (const char* name : {"a", "b"}) start.add_names(name);
  start.add_values(1);
  start.add_values(10);
  Create("one", settings);
  for (const char* name : {"b", "a"}) start.set_names(name[0] == 'a' ? 1 : 0, name);
  start.set_values(0, 3);
  start.set_values(1, 5);
  Create("two", settings);
  CreateHashed("hashed");
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

TEST_F(FormsTest, DifferencesOfIndicesAndHalfPrecisionValuesMeanWhatTheyStandFor) {
  v1::Model settings;
  settings.mutable_feature_space()->mutable_hashed()->set_bits(20);
  Create("plain", settings);
  Create("compact", settings);
  std::mt19937 random(17);
  RawLearnStream plain(*learning_, "plain");
  RawLearnStream compact(*learning_, "compact");
  plain.Open();
  compact.Open();
  for (int message = 0; message < 30; ++message) {
    v1::LearnStreamRequest request;
    v1::LearnStreamRequest short_request;
    v1::ExampleColumns& columns = *short_request.mutable_columns();
    for (int i = 0; i < 20; ++i) {
      std::map<uint32_t, float> row;
      for (uint32_t j = random() % 30; j > 0; --j)
        row[random() % (1U << 20)] = 0.5F * static_cast<float>(random() % 9) - 2;
      AddRow(row, random() % 2 == 0 ? 1 : -1, *request.mutable_columns());
      uint32_t next = 0;
      for (const auto& [index, value] : row) {
        columns.add_index_deltas(index - next);
        next = index + 1;
        // k / 2 with |k| <= 4 as binary16.
        const std::map<float, uint16_t> halves = {
            {0, 0}, {0.5F, 0x3800}, {1, 0x3c00}, {1.5F, 0x3e00}, {2, 0x4000}};
        const auto half =
            static_cast<uint16_t>(halves.at(std::abs(value)) | (std::signbit(value) ? 0x8000 : 0));
        columns.mutable_half_values()->push_back(static_cast<char>(half & 0xff));
        columns.mutable_half_values()->push_back(static_cast<char>(half >> 8));
      }
    }
    *columns.mutable_row_ends() = request.columns().row_ends();
    *columns.mutable_labels() = request.columns().labels();
    const v1::LearnResult expected = plain.Ask(request);
    const v1::LearnResult result = compact.Ask(short_request);
    ASSERT_EQ(result.error().code(), 0) << result.error().message();
    ASSERT_EQ(result.revision(), expected.revision());
    ASSERT_TRUE(std::equal(result.scores().begin(), result.scores().end(),
                           expected.scores().begin(), expected.scores().end()));
  }
  const auto refused = [&](const std::string& field,
                           const std::function<void(v1::ExampleColumns&)>& set) {
    v1::LearnStreamRequest request;
    AddRow({{1, 1}, {7, 1}}, 1, *request.mutable_columns());
    set(*request.mutable_columns());
    EXPECT_EQ(BadField(compact.Ask(request).error()), field);
  };
  refused("columns.index_deltas", [](auto& columns) { columns.add_index_deltas(1); });
  refused("columns.half_values", [](auto& columns) { columns.set_half_values("ab"); });
  refused("columns.half_values", [](auto& columns) {
    columns.clear_values();
    columns.set_half_values("abc");
  });
  v1::LearnStreamRequest overflow;
  overflow.mutable_columns()->add_index_deltas(1U << 31);
  overflow.mutable_columns()->add_index_deltas(1U << 31);
  overflow.mutable_columns()->add_row_ends(2);
  overflow.mutable_columns()->add_labels(1);
  const v1::LearnResult result = compact.Ask(overflow);
  ASSERT_EQ(result.row_errors_size(), 1);
  EXPECT_EQ(BadField(result.row_errors(0).status()), "columns.index_deltas[1]");
}

}  // namespace
}  // namespace perceptrond::testing
