// The data of the status page, perceptron.page.v1, read from the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/page/v1/status_page.pb.h"
#include "server/page/model_index.h"

namespace perceptrond {

// A request for the list of models. Values out of range are clamped.
struct ModelListQuery {
  ModelFilter filter;
  // From 1.
  uint64_t page = 1;
  // 1 to 100.
  uint64_t page_size = 25;
  // Points of each model's learning curve, 0 to 64.
  uint64_t points = 32;
};

// A request for one model.
struct ModelDetailQuery {
  // Without "models/".
  std::string id;
  // Whether to load a model that is not in memory, which counts as a use of it. Otherwise the
  // response has what is stored.
  bool load = false;
  // Points of the learning curve up to this revision are left out.
  uint64_t after_revision = 0;
  // Top weights of each class, 0 to 100.
  uint64_t features = 0;
  ReadablePrefixes readable;
};

// Reads models as a scrape does: under the locks that scoring takes, for short periods. Reading
// does not count as a use of a model unless it loads the model. At most one model is loaded, and at
// most one model's weights are searched, at a time.
//
// Thread contract: safe for any number of threads.
class ModelAnswers {
 public:
  // `draining` returns whether the server is stopping. The store must outlive this object.
  ModelAnswers(Store& store, std::function<bool()> draining)
      : store_(store), draining_(std::move(draining)), index_(store) {}

  // INVALID_ARGUMENT for an unknown state or order. O(models), and reads them all if the index is old.
  absl::StatusOr<::perceptron::page::v1::ModelList> List(const ModelListQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT, and the errors of Store::Acquire. O(points); O(weights) if
  // features are requested.
  absl::StatusOr<::perceptron::page::v1::ModelDetail> Detail(const ModelDetailQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT. Loads nothing.
  absl::Status Exists(const std::string& id, const ReadablePrefixes& readable = std::nullopt);

 private:
  // The numbers of models are 0 for readers that do not see all.
  void Describe(const ReadablePrefixes& readable, ::perceptron::page::v1::ServerStatus& server);
  // Appends a model of the list to the answer, or its name to those that cannot be read.
  // `journal_is_away` is whether the journal was found to be so, for this answer.
  absl::Status AddEntry(const ModelRow& row, uint64_t points, bool& journal_is_away,
                        ::perceptron::page::v1::ModelList& answer);
  void DescribeWeights(const Model& model, size_t limit,
                       ::perceptron::page::v1::TopFeatures& features)
      ABSL_LOCKS_EXCLUDED(weights_turn_);
  // Loads the model unless it is in memory.
  absl::Status Load(const std::string& name) ABSL_LOCKS_EXCLUDED(load_turn_);

  Store& store_;
  const std::function<bool()> draining_;
  ModelIndex index_;
  Mutex load_turn_;
  Mutex weights_turn_;
};

}  // namespace perceptrond
