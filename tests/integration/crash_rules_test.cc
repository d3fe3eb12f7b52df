// The server is killed with SIGKILL while a rule learns from two streams, one of two labels and one
// of several classes where the rule has them; snapshots are taken as often as can be. Started
// again, it has the weights, and the answers, of a model that learned the same rows without a kill.
#include <condition_variable>
#include <mutex>
#include <random>
#include <thread>

#include "client/client.h"
#include "client/learn_stream.h"
#include "core/learner/catalogue.h"
#include "tests/integration/fixture.h"
#include "tests/support/learners.h"
#include "tests/support/tight.h"

namespace perceptrond::testing {
namespace {

constexpr uint32_t kFeatures = 12;
constexpr int kClasses = 3;
constexpr int64_t kRows = 4000;
constexpr int kKills = 3;

// No weights separate them, so that updates go on. The same rows each time.
std::vector<client::Row> MakeRows(bool multiclass) {
  std::mt19937 random(multiclass ? 2 : 1);
  std::vector<client::Row> rows(kRows);
  for (client::Row& row : rows) {
    for (uint32_t i = 0; i < kFeatures; ++i) {
      if (random() % 3 == 0) continue;
      row.indices.push_back(i);
      row.values.push_back(static_cast<float>(random() % 2001) / 1000 - 1);
    }
    row.label = multiclass ? static_cast<int>(random() % kClasses) : random() % 2 == 0 ? 1 : -1;
  }
  return rows;
}

// Rows that were acknowledged.
class Acknowledgements {
 public:
  void Add(size_t rows) {
    const std::lock_guard<std::mutex> lock(mutex_);
    total_ += static_cast<int64_t>(rows);
    more_.notify_all();
  }
  void Await(int64_t total) {
    std::unique_lock<std::mutex> lock(mutex_);
    more_.wait(lock, [&] { return total_ >= total; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable more_;
  int64_t total_ = 0;
};

// What can be seen of a model's state, bit for bit.
struct Seen {
  int64_t revision = 0;
  uint64_t examples = 0;
  std::string weights;
  std::string answers;
};

class CrashRulesTest : public ServerTest, public ::testing::WithParamInterface<std::string> {
 protected:
  CrashRulesTest() : ServerTest({"--snapshot-bytes", "4KiB"}) {}

  // Whether the rule has such a form.
  bool TryCreate(const std::string& id, bool multiclass) {
    v1::CreateModelRequest request;
    request.set_model_id(id);
    v1::Model& model = *request.mutable_model();
    model.mutable_feature_space()->mutable_dense()->set_dimension(kFeatures);
    testing::SetLearner(*model.mutable_learner(), GetParam());
    // So that batches end and stored examples are replaced.
    Tighten(*model.mutable_learner());
    if (multiclass) model.mutable_learner()->mutable_classes()->set_max_classes(kClasses);
    grpc::ClientContext context;
    v1::Model created;
    const grpc::Status status = models_->CreateModel(&context, request, &created);
    if (!multiclass) {
      EXPECT_TRUE(status.ok()) << status.error_message();
    } else if (!status.ok()) {
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    }
    return status.ok();
  }

  // The others are compared by their answers alone.
  static bool HasWeights() { return FindLearner(GetParam())->form == Form::kLinear; }

  // Streams all rows as one producer, over as many connections as it takes.
  void Learn(const std::string& id, bool multiclass, Acknowledgements* acknowledged) {
    client::LearnOptions options;
    options.producer_id = "p";
    options.rows_per_message = 23;
    options.window_messages = 8;
    options.retry.initial_backoff = absl::Milliseconds(5);
    options.retry.max_backoff = absl::Milliseconds(50);
    options.on_result = [acknowledged](const client::LearnAnswer& answer) {
      if (acknowledged != nullptr) acknowledged->Add(answer.tags.size());
    };
    auto stream = client::LearnStream::Open(client::Client::Connect(server_.address()).connection(),
                                            id, options);
    ASSERT_TRUE(stream.ok()) << stream.status();
    for (const client::Row& row : MakeRows(multiclass)) {
      const absl::Status pushed = (*stream)->Push(row);
      ASSERT_TRUE(pushed.ok()) << pushed;
    }
    const auto totals = (*stream)->Finish();
    ASSERT_TRUE(totals.ok()) << totals.status();
  }

  Seen Observe(const std::string& id, bool multiclass) {
    const v1::Model model = Get(id, HasWeights() ? v1::MODEL_VIEW_WEIGHTS : v1::MODEL_VIEW_BASIC);
    Seen seen;
    seen.revision = model.revision();
    seen.examples = model.report().examples();
    seen.weights = model.weights().SerializeAsString();
    v1::PredictRequest request;
    request.set_model("models/" + id);
    request.set_include_class_scores(multiclass);
    for (const client::Row& row : MakeRows(multiclass)) {
      v1::SparseFeatures& features = *request.add_examples()->mutable_sparse();
      features.mutable_indices()->Add(row.indices.begin(), row.indices.end());
      features.mutable_values()->Add(row.values.begin(), row.values.end());
    }
    v1::PredictResponse response;
    const grpc::Status status = Predict(request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    // The names of the models differ.
    response.clear_model();
    seen.answers = response.SerializeAsString();
    return seen;
  }
};

TEST_P(CrashRulesTest, ServerKilledUnderLoadHasTheWeightsOfARunWithoutAKill) {
  std::vector<bool> forms;
  for (const bool multiclass : {false, true}) {
    if (TryCreate(multiclass ? "killed-classes" : "killed", multiclass))
      forms.push_back(multiclass);
  }
  Acknowledgements acknowledged;
  std::vector<std::thread> producers;
  for (const bool multiclass : forms) {
    producers.emplace_back([&, multiclass] {
      Learn(multiclass ? "killed-classes" : "killed", multiclass, &acknowledged);
    });
  }
  // The last quarter of the rows is still to be acknowledged at the last kill.
  for (int kill = 1; kill <= kKills; ++kill) {
    acknowledged.Await(kill * kRows / (kKills + 1));
    server_.Kill();
    server_.Restart();
  }
  for (std::thread& producer : producers) producer.join();
  // What is compared was read from the journal.
  server_.Kill();
  Restart();
  for (const bool multiclass : forms) {
    ASSERT_TRUE(TryCreate("whole", multiclass));
    Learn("whole", multiclass, nullptr);
    const Seen killed = Observe(multiclass ? "killed-classes" : "killed", multiclass);
    const Seen whole = Observe("whole", multiclass);
    EXPECT_EQ(killed.examples, static_cast<uint64_t>(kRows));
    EXPECT_GT(killed.revision, 100);
    EXPECT_EQ(killed.revision, whole.revision);
    EXPECT_TRUE(killed.weights == whole.weights) << (multiclass ? "classes" : "labels");
    EXPECT_TRUE(killed.answers == whole.answers) << (multiclass ? "classes" : "labels");
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name("models/whole");
    google::protobuf::Empty empty;
    EXPECT_TRUE(models_->DeleteModel(&context, request, &empty).ok());
  }
}

std::vector<std::string> EveryRule() {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : Catalogue()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Rules, CrashRulesTest, ::testing::ValuesIn(EveryRule()),
                         [](const auto& run) { return TestName(run.param); });

}  // namespace
}  // namespace perceptrond::testing
