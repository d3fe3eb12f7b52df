// Any bytes as messages of a LearnStream and a PredictStream: refused or learned, never a crash;
// and whatever was learned, the books agree with each other and the journal gives the same model
// again. The first byte chooses the model's feature space.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "core/journal/memory_journal.h"
#include "core/model/store.h"
#include "server/learn_session.h"
#include "server/predict_session.h"

namespace {

namespace v1 = ::perceptron::v1;
using perceptrond::Store;

void Check(bool holds) {
  if (!holds) std::abort();
}

v1::Model Settings(uint8_t choice) {
  v1::Model settings;
  settings.set_name("models/m");
  settings.add_label_names("no");
  settings.add_label_names("yes");
  v1::FeatureSpace& space = *settings.mutable_feature_space();
  if (choice % 3 == 0) space.mutable_dense()->set_dimension(4);
  if (choice % 3 == 1) space.mutable_hashed()->set_bits(3);
  if (choice % 3 == 2) space.mutable_named()->set_max_features(4);
  return settings;
}

// Every weight finite, every count in its place; and a load from the journal ends at the same bits.
void CheckModel(Store& store, perceptrond::MemoryJournal& journal) {
  const auto model = store.Acquire("models/m");
  Check(model.ok());
  const perceptrond::Model::View view = (*model)->MakeView();
  for (const float weight : view.weights.values) Check(std::isfinite(weight));
  Check(std::isfinite(view.weights.offset));
  Check(view.report.counters.updates == view.weights.revision);
  Check(view.report.counters.mistakes <= view.report.counters.examples);
  const auto header = journal.Find("models/m");
  Check(header.ok());
  const auto again = perceptrond::Model::Load(*header, journal, {});
  Check(again.ok());
  const perceptrond::Model::View reloaded = (*again)->MakeView();
  Check(reloaded.weights.values == view.weights.values);
  Check(reloaded.weights.names == view.weights.names);
  Check(reloaded.weights.offset == view.weights.offset);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  auto owned = std::make_unique<perceptrond::MemoryJournal>();
  perceptrond::MemoryJournal& journal = *owned;
  Store store(std::move(owned), Store::Options());
  Check(store.Create(Settings(data[0]), "", false).ok());

  v1::PredictRequest predict;
  if (predict.ParseFromArray(data + 1, static_cast<int>(size) - 1)) {
    predict.set_model("models/m");
    perceptrond::PredictSession session(store, {});
    v1::PredictResponse response;
    if (session.Accept(predict, size).ok()) Check(session.Take(response));
  }
  v1::LearnStreamRequest request;
  if (!request.ParseFromArray(data + 1, static_cast<int>(size) - 1)) return 0;
  request.set_model("models/m");
  const auto session =
      std::make_shared<perceptrond::LearnSession>(store, perceptrond::StreamLimits());
  session->OnReady([] {});
  // Twice: the second is a replay where the message is numbered.
  if (session->Accept(request, size).ok()) (void)session->Accept(request, size);
  const auto model = store.Acquire("models/m");
  Check(model.ok() && store.committer().Commit(*model).ok());
  CheckModel(store, journal);
  return 0;
}
