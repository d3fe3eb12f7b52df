// What the status page is told of the models: perceptron.page.v1, from the store.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/model/store.h"
#include "core/sync/mutex.h"
#include "perceptron/page/v1/status_page.pb.h"

namespace perceptrond {

// What is asked of a list. Ranges are clamped, not refused.
struct ModelListQuery {
  // In a name or a description, in upper or lower case (of ASCII); empty: all.
  std::string search;
  std::string page_token;
  // 1 to 100.
  uint64_t page_size = 25;
  // Of each model's curve, 0 to 64.
  uint64_t points = 32;
};

// What is asked of one model.
struct ModelDetailQuery {
  // Without "models/".
  std::string id;
  // A model that is not in memory is loaded, which is a use of it as any; else it is told as
  // stored.
  bool load = false;
  // Points of its curve up to this revision are left out.
  uint64_t after_revision = 0;
  // How many weights, of each class, 0 to 100; 0: none are looked for.
  uint64_t features = 0;
};

// Reads as a scrape does: under the locks that scoring takes, for short stretches; and counts no
// use of a model unless it loads it. One model is loaded and one model's weights are looked through
// at a time, whoever asks.
//
// Thread contract: any number of threads at once.
class ModelAnswers {
 public:
  // `draining` says whether the server stops. Store must outlive this.
  ModelAnswers(Store& store, std::function<bool()> draining)
      : store_(store), draining_(std::move(draining)) {}

  // INVALID_ARGUMENT for a page token of another list. O(models looked at, at most 10,000).
  absl::StatusOr<::perceptron::page::v1::ModelList> List(const ModelListQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT, and what Store::Acquire answers. O(points, and weights if features
  // are asked for).
  absl::StatusOr<::perceptron::page::v1::ModelDetail> Detail(const ModelDetailQuery& query);
  // NOT_FOUND, INVALID_ARGUMENT. Loads nothing.
  absl::Status Exists(const std::string& id);

 private:
  void Describe(::perceptron::page::v1::ServerStatus& server);
  void DescribeWeights(const Model& model, size_t limit,
                       ::perceptron::page::v1::HeaviestFeatures& features)
      ABSL_LOCKS_EXCLUDED(weights_turn_);
  // In memory afterwards, if it could be loaded.
  absl::Status Load(const std::string& name) ABSL_LOCKS_EXCLUDED(load_turn_);

  Store& store_;
  const std::function<bool()> draining_;
  Mutex load_turn_;
  Mutex weights_turn_;
};

}  // namespace perceptrond
