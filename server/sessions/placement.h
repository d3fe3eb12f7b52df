// How long the work of a request may take, by its rows and its model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/model/cost.h"
#include "core/store/store.h"
#include "perceptron/v1/example.pb.h"
#include "server/rpc/unary.h"
#include "server/sessions/nested_examples.h"

namespace perceptrond {

// What reading a byte of a text takes, in features that are sent.
inline constexpr uint64_t kTextByteWork = 10;

// The features that a row is taken to have which names a prediction.
inline constexpr uint64_t kPredictionFeatures = 100;

// kLarge for rows whose estimated cost is above kLargeCost, and for any rows if the model is null,
// since it must be loaded first, or if something large holds it. Any thread; takes no model's lock.
Placement PlacementOfRows(const Store& store, const Model* model, const BatchShape& shape);

// The rows of a request.
class RequestShape {
 public:
  RequestShape(const NestedExamples& examples, const ::perceptron::v1::ExampleColumns& columns);
  const BatchShape& shape() const { return shape_; }

 private:
  std::vector<uint32_t> row_ends_;
  BatchShape shape_;
};

// Of a request with examples for the model; the model may be null.
template <typename Message>
Placement PlacementOfExamples(const Store& store, const Model* model,
                              const RequestWithExamples<Message>& request) {
  const RequestShape rows(request.examples, request.message.columns());
  return PlacementOfRows(store, model, rows.shape());
}
// The same, by the model that the request names.
template <typename Message>
Placement PlacementOfExamples(Store& store, const RequestWithExamples<Message>& request) {
  return PlacementOfExamples(store, store.GetIfLoaded(request.model()).get(), request);
}

// The same for predictions, which a copy may answer while the model cannot be loaded.
template <typename Message>
Placement PlacementOfPrediction(Store& store, const RequestWithExamples<Message>& request) {
  return PlacementOfExamples(store, ModelHandle::FindInMemory(store, request.model()).get(),
                             request);
}

// Whether learning an example of the model may wait for another server of a fleet, which keeps the
// features of its prediction.
inline bool MayAskServers(Store& store, const Model& model) {
  return store.fleet() != nullptr && model.settings().stored_predictions.has_value();
}

// A method of the management, which changes one model: kLarge if that must be loaded.
Placement PlacementOfManagement(const Store& store, const std::string& model);
// One that reads the model's state: kLarge also if something large holds that.
Placement PlacementOfReport(const Store& store, const std::string& model);

}  // namespace perceptrond
