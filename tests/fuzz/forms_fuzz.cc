// Sends the same examples in every form that the API has: packed columns, columns with differences
// of indices and half-precision values, names of a message or of the stream's table, nested
// messages, dense rows. All forms give equal answers, errors and models, bit for bit. The input
// chooses the space and its map, the learner and its settings, and the rows, some of which are
// invalid.
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/snapshot.h"
#include "core/model/views.h"
#include "core/store/store.h"
#include "google/rpc/error_details.pb.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"
#include "tests/fuzz/forms.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/tight.h"

namespace {

using perceptrond::LearnSession;
using perceptrond::PredictSession;
using perceptrond::Store;
using perceptrond::testing::CheckEqual;
using perceptrond::testing::Encoder;
using perceptrond::testing::Form;
using perceptrond::testing::FormRow;
using perceptrond::testing::FuzzInput;
namespace testing = perceptrond::testing;
namespace v1 = ::perceptron::v1;

constexpr size_t kMostMessages = 8;
constexpr size_t kMostRows = 12;

v1::Model Settings(FuzzInput& input) {
  const auto all = perceptrond::Catalogue();
  const perceptrond::CatalogueEntry& entry = all[input.Below(all.size())];
  v1::Model settings;
  v1::Learner& learner = *settings.mutable_learner();
  testing::SetLearner(learner, entry.name);
  testing::Tighten(learner);
  constexpr double kNumbers[] = {1, 0.5, 3, 0};
  learner.set_bias_input(input.OneOf(kNumbers));
  if (input.Flag()) learner.set_tie_rule(v1::TIE_RULE_POSITIVE);
  testing::SetNumber(learner, "step_size", 0.25 + input.OneOf(kNumbers));
  const size_t classes = entry.has_classes() ? input.Below(4) : 0;
  if (classes > 0) learner.mutable_classes()->set_max_classes(3);
  if (classes > 1)
    learner.mutable_classes()->set_new_classes(classes == 2 ? v1::Classes::NEW_CLASSES_NUMBERED
                                                            : v1::Classes::NEW_CLASSES_NAMED);
  v1::FeatureSpace& space = *settings.mutable_feature_space();
  const size_t kind = input.Below(3);
  if (kind == 0) space.mutable_dense()->set_dimension(testing::kFormDimension);
  if (kind == 1) space.mutable_hashed()->set_bits(3);
  if (kind == 2) space.mutable_named()->set_max_features(6 + 20 * input.Below(2));
  const size_t map = input.Below(4);
  if (map == 2) space.mutable_map()->mutable_polynomial()->set_degree(2);
  if (map == 3) {
    space.mutable_map()->mutable_fourier()->set_dimension(5);
    space.mutable_map()->mutable_fourier()->set_gamma(0.5);
  }
  return settings;
}

// The code and reason of an error. The path differs from form to form.
std::string Reason(const google::rpc::Status& status) {
  google::rpc::ErrorInfo info;
  std::string reason;
  for (const auto& detail : status.details()) {
    if (detail.UnpackTo(&info)) reason = info.reason();
  }
  return std::to_string(status.code()) + " " + reason;
}
template <typename Answer>
std::string Text(Answer answer) {
  std::string text;
  for (const v1::RowError& error : answer.row_errors())
    text += std::to_string(error.row()) + ": " + Reason(error.status()) + "\n";
  if (answer.has_error()) text += "refused: " + Reason(answer.error()) + "\n";
  answer.clear_row_errors();
  answer.clear_error();
  // As bytes, since a NaN does not equal itself.
  return text + answer.SerializeAsString();
}

// One for all inputs, which takes less time than its threads; each input's models are deleted.
Store& TheStore() {
  static Store store(std::make_unique<perceptrond::MemoryJournal>(), Store::Options());
  return store;
}

// One model that is taught and asked in one form, as long as this lives.
class Taught {
 public:
  Taught(Form form, const testing::FormChoice& choice, v1::Model settings)
      : form_(form),
        name_("models/m" + std::to_string(static_cast<int>(form))),
        learn_encoder_(choice),
        predict_encoder_(choice),
        learning_(std::make_shared<LearnSession>(TheStore(), perceptrond::StreamLimits())),
        predicting_(TheStore(), perceptrond::StreamLimits()) {
    settings.set_name(name_);
    CheckEqual("creating", TheStore().Create(settings, "", false).status().ToString(), "OK");
    learning_->OnReady([] {});
  }
  ~Taught() { CheckEqual("deleting", TheStore().Delete(name_, "", false).ToString(), "OK"); }

  std::string Learn(const std::vector<FormRow>& rows, int64_t completed_pass) {
    v1::LearnStreamRequest request;
    request.set_completed_pass(completed_pass);
    learn_encoder_.Encode(form_, rows, request);
    LearnSession::Request parsed;
    const size_t bytes = Parse(request, parsed);
    CheckEqual("accepting", learning_->Accept(parsed, bytes).ToString(), "OK");
    const auto model = TheStore().Acquire(name_);
    CheckEqual("committing", TheStore().committer().Commit(*model).ToString(), "OK");
    v1::LearnStreamResponse response;
    std::string text;
    while (learning_->Poll(&response).has_response) {
      for (const v1::LearnResult& result : response.results()) text += Text(result);
    }
    return text;
  }
  v1::PredictResponse Predict(const std::vector<FormRow>& rows, bool class_scores) {
    v1::PredictRequest request;
    request.set_include_class_scores(class_scores);
    predict_encoder_.Encode(form_, rows, request);
    PredictSession::Request parsed;
    const size_t bytes = Parse(request, parsed);
    CheckEqual("asking", predicting_.Accept(parsed, bytes).ToString(), "OK");
    v1::PredictResponse response;
    predicting_.Poll(&response);
    // It depends on the form.
    response.clear_name_table_size();
    if (!response.model().empty()) CheckEqual("the model that answered", response.model(), name_);
    response.clear_model();
    return response;
  }
  // Weights, names, classes and counters.
  std::string State() {
    const auto model = TheStore().Acquire(name_);
    auto snapshot = MakeSnapshot(**model);
    snapshot.clear_learning_curve();
    snapshot.clear_time();
    // Rows are stored as they were sent.
    for (auto& row : *snapshot.mutable_stored_rows()->mutable_rows()) {
      for (uint32_t i = 0; row.dense() && row.indices_size() < row.values_size(); ++i)
        row.add_indices(i);
      row.clear_dense();
    }
    perceptrond::ConvergenceReport report = MakeReport(**model);
    std::string text;
    for (const auto& [reason, count] :
         std::map<std::string, uint64_t>(report.row_errors().begin(), report.row_errors().end()))
      text += reason + " " + std::to_string(count) + "\n";
    report.clear_row_errors();
    return text + report.ShortDebugString() + snapshot.ShortDebugString() +
           report.SerializeAsString() + snapshot.SerializeAsString();
  }
  Form form() const { return form_; }

 private:
  // Parses as a server's transport does.
  template <typename Message, typename Parsed>
  size_t Parse(Message& request, Parsed& parsed) const {
    request.set_model(name_);
    const std::string bytes = request.SerializeAsString();
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer buffer(&slice, 1);
    CheckEqual("parsing", perceptrond::ParseMessage(buffer, bytes.size(), parsed).ToString(), "OK");
    return bytes.size();
  }

  const Form form_;
  const std::string name_;
  Encoder learn_encoder_;
  Encoder predict_encoder_;
  const std::shared_ptr<LearnSession> learning_;
  PredictSession predicting_;
};

std::vector<FormRow> ReadRows(FuzzInput& input, const testing::FormChoice& choice) {
  std::vector<FormRow> rows(input.Below(kMostRows + 1));
  for (FormRow& row : rows) row = testing::ReadRow(input, choice);
  return rows;
}

void Run(FuzzInput& input) {
  const v1::Model settings = Settings(input);
  const testing::FormChoice choice = testing::ChooseForms(settings, input);
  std::vector<std::unique_ptr<Taught>> all;
  for (const Form form : choice.forms)
    all.push_back(std::make_unique<Taught>(form, choice, settings));
  const bool class_scores = settings.learner().has_classes();
  int64_t pass = 0;
  for (size_t i = 0; i < kMostMessages && !input.empty(); ++i) {
    const std::vector<FormRow> rows = ReadRows(input, choice);
    const int64_t completed = input.Below(8) == 0 ? ++pass : 0;
    const std::string learned = all[0]->Learn(rows, completed);
    const std::string predicted = Text(all[0]->Predict(rows, class_scores));
    for (size_t k = 1; k < all.size(); ++k) {
      const std::string form = testing::FormName(all[k]->form());
      CheckEqual("results of " + form, all[k]->Learn(rows, completed), learned);
      CheckEqual("predictions of " + form, Text(all[k]->Predict(rows, class_scores)), predicted);
    }
  }
  for (const auto& taught : all)
    CheckEqual("models of " + testing::FormName(taught->form()), taught->State(), all[0]->State());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  Run(input);
  return 0;
}
