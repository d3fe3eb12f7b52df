// The data of the status page, perceptron.page.v1, read from the store.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/store/store.h"
#include "core/sync/mutex.h"
#include "perceptron/page/v1/status_page.pb.h"

namespace perceptrond {

// Prefixes of the full names of the models that the reader may see, in order; absent: all. Others do
// not exist for it.
using ReadablePrefixes = std::optional<std::vector<std::string>>;

// A request for the list of models. Values out of range are clamped.
struct ModelListQuery {
  // A part of the name or the description, in upper or lower case (ASCII); empty for all models.
  std::string search;
  std::string page_token;
  // 1 to 100.
  uint64_t page_size = 25;
  // Points of each model's learning curve, 0 to 64.
  uint64_t points = 32;
  ReadablePrefixes readable;
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
      : store_(store), draining_(std::move(draining)) {}

  // INVALID_ARGUMENT for a page token of another list. O(models searched, at most 10,000).
  absl::StatusOr<::perceptron::page::v1::ModelList> List(const ModelListQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT, and the errors of Store::Acquire. O(points); O(weights) if
  // features are requested.
  absl::StatusOr<::perceptron::page::v1::ModelDetail> Detail(const ModelDetailQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT. Loads nothing.
  absl::Status Exists(const std::string& id, const ReadablePrefixes& readable = std::nullopt);

 private:
  // The numbers of models are 0 for readers that do not see all.
  void Describe(const ReadablePrefixes& readable, ::perceptron::page::v1::ServerStatus& server);
  void DescribeWeights(const Model& model, size_t limit,
                       ::perceptron::page::v1::TopFeatures& features)
      ABSL_LOCKS_EXCLUDED(weights_turn_);
  // Loads the model unless it is in memory.
  absl::Status Load(const std::string& name) ABSL_LOCKS_EXCLUDED(load_turn_);

  Store& store_;
  const std::function<bool()> draining_;
  Mutex load_turn_;
  Mutex weights_turn_;
};

}  // namespace perceptrond
