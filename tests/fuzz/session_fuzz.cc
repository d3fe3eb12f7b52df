// Any bytes as messages of a LearnStream and a PredictStream: refused or learned, never a crash;
// and whatever was learned, the counters agree with each other and the journal gives the same model
// again. The first byte chooses the model's feature space and settings; the rest is one message,
// or (0x80) several, each after a byte that says how long it is.
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/model/snapshot.h"
#include "core/model/views.h"
#include "core/store/store.h"
#include "server/sessions/learn_session.h"
#include "server/sessions/predict_session.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/learners.h"

namespace {

namespace v1 = ::perceptron::v1;
using perceptrond::LearnSession;
using perceptrond::Model;
using perceptrond::Store;
using perceptrond::testing::Check;

v1::Model Settings(uint8_t choice) {
  v1::Model settings;
  settings.set_name("models/m");
  settings.add_label_names("no");
  settings.add_label_names("yes");
  v1::FeatureSpace& space = *settings.mutable_feature_space();
  if (choice % 3 == 0) space.mutable_dense()->set_dimension(4);
  if (choice % 3 == 1) space.mutable_hashed()->set_bits(3);
  if (choice % 3 == 1 && (choice & 0x04) != 0) {
    space.mutable_text()->set_bits(3);
    space.mutable_text()->set_min_characters(1);
    space.mutable_text()->set_max_characters(2);
  }
  if (choice % 3 == 2) space.mutable_named()->set_max_features(4);
  if ((choice & 0x08) != 0) {
    v1::Classes& classes = *settings.mutable_learner()->mutable_classes();
    classes.set_max_classes(3);
    classes.set_new_classes(v1::Classes::NEW_CLASSES_NAMED);
  }
  if ((choice & 0x10) != 0)
    perceptrond::testing::SetNumber(*settings.mutable_learner(), "step_size", 1e30);
  if ((choice & 0x20) != 0) settings.mutable_learner()->set_bias_input(0);
  if ((choice & 0x40) != 0) settings.mutable_learner()->set_tie_rule(v1::TIE_RULE_POSITIVE);
  return settings;
}

std::vector<std::string_view> Messages(uint8_t choice, std::string_view bytes) {
  if ((choice & 0x80) == 0) return {bytes};
  std::vector<std::string_view> messages;
  while (!bytes.empty()) {
    const size_t length = static_cast<uint8_t>(bytes[0]);
    messages.push_back(bytes.substr(1, length));
    bytes.remove_prefix(1 + messages.back().size());
  }
  return messages;
}

template <typename Request>
bool Parse(std::string_view bytes, Request& request) {
  const grpc::Slice slice(bytes.data(), bytes.size());
  grpc::ByteBuffer buffer(&slice, 1);
  return perceptrond::ParseMessage(buffer, bytes.size(), request).ok();
}

void Predict(Store& store, const std::vector<std::string_view>& messages) {
  perceptrond::PredictSession session(store, {});
  for (const std::string_view bytes : messages) {
    perceptrond::PredictSession::Request request;
    if (!Parse(bytes, request)) return;
    request.message.set_model("models/m");
    if (!session.Accept(request, bytes.size()).ok()) return;
    v1::PredictResponse response;
    Check(session.Poll(&response).has_response);
    Check(response.scores_size() == response.predicted_labels_size());
    Check(response.distances().empty() || response.distances_size() == response.scores_size());
    for (const v1::RowError& error : response.row_errors())
      Check(error.row() < static_cast<uint32_t>(response.predicted_labels_size()));
  }
}

// The session's answers, message by message: rows and revisions in their order, and nothing counted twice.
struct Answers {
  void Take(LearnSession& session) {
    v1::LearnStreamResponse response;
    while (session.Poll(&response).has_response) {
      for (const v1::LearnResult& result : response.results()) Take(result);
    }
  }
  void Take(const v1::LearnResult& result) {
    Check(result.message_number() == messages++);
    Check(result.revision() >= revision);
    Check(result.updates() == static_cast<uint64_t>(result.updated_rows_size()));
    Check(result.updated_rows_size() == result.update_revisions_size());
    Check(result.updates() <= result.examples() && result.mistakes() <= result.examples());
    Check(result.scores_size() + result.margins_size() == result.predicted_labels_size());
    for (int i = 0; i < result.updated_rows_size(); ++i) {
      Check(i == 0 || result.updated_rows(i - 1) < result.updated_rows(i));
      Check(result.update_revisions(i) == ++revision);
    }
    Check(result.revision() == revision);
    Check(result.acknowledged_offset() >= -1);
    examples += result.examples();
  }

  int64_t messages = 0;
  int64_t revision = 0;
  uint64_t examples = 0;
};

Answers Learn(Store& store, const std::vector<std::string_view>& messages) {
  const auto session = std::make_shared<LearnSession>(store, perceptrond::StreamLimits());
  session->OnReady([] {});
  const auto model = store.Acquire("models/m");
  Check(model.ok());
  int64_t accepted = 0;
  for (const std::string_view bytes : messages) {
    LearnSession::Request request;
    if (!Parse(bytes, request)) break;
    request.message.set_model("models/m");
    // Nobody guesses it.
    if (request.message.producer().has_resume())
      request.message.mutable_producer()->mutable_resume()->set_model_uid((*model)->uid());
    if (!session->Accept(request, bytes.size()).ok()) break;
    // Again: a replay where the message is numbered.
    Check(session->Accept(request, bytes.size()).ok());
    accepted += 2;
  }
  Check(store.committer().Commit(*model).ok());
  Check(session->Poll(nullptr).failure.ok());
  Answers answers;
  answers.Take(*session);
  Check(answers.messages == accepted && session->Poll(nullptr).idle);
  return answers;
}

// Every weight finite, every count in its place; and a load from the journal ends at the same bits.
void CheckModel(Store& store, perceptrond::MemoryJournal& journal, const Answers& answers) {
  const auto model = store.Acquire("models/m");
  Check(model.ok());
  const perceptrond::WeightList list = perceptrond::ListWeights(**model)[0];
  for (const float weight : list.values) Check(std::isfinite(weight));
  Check(std::isfinite(list.bias));
  const perceptrond::ConvergenceReport counters = perceptrond::MakeReport(**model);
  Check(list.revision == static_cast<uint64_t>(answers.revision));
  Check(counters.updates() == list.revision);
  Check(counters.mistakes() <= counters.examples() && counters.updates() <= counters.examples());
  Check(counters.streak() <= counters.examples());
  Check(counters.examples() >= answers.examples);
  const auto header = journal.Find("models/m");
  Check(header.ok());
  const auto again = Model::Load(*header, journal, {});
  Check(again.ok());
  Check(MakeSnapshot(**again).SerializeAsString() == MakeSnapshot(**model).SerializeAsString());
  const perceptrond::ConvergenceReport reloaded = MakeReport(**again);
  Check(reloaded.examples() == counters.examples() && reloaded.mistakes() == counters.mistakes());
  Check(reloaded.duplicates() == counters.duplicates());
  using Counts = std::map<std::string, uint64_t>;
  Check(Counts(reloaded.row_errors().begin(), reloaded.row_errors().end()) ==
        Counts(counters.row_errors().begin(), counters.row_errors().end()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto owned = std::make_unique<perceptrond::MemoryJournal>();
  perceptrond::MemoryJournal& journal = *owned;
  Store store(std::move(owned), Store::Options());
  Check(store.Create(Settings(data[0]), "", false).ok());
  const std::vector<std::string_view> messages =
      Messages(data[0], {reinterpret_cast<const char*>(data + 1), size - 1});
  Predict(store, messages);
  CheckModel(store, journal, Learn(store, messages));
  Predict(store, messages);
  return 0;
}
