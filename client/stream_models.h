// StreamModels: what each model of a learn stream has learned of it. LearnStreamCore uses it.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/learn_stream.h"
#include "perceptron/v1/learning_service.pb.h"

namespace perceptrond::client {

class StreamModels {
 public:
  // What a server opens, in the order of the names.
  using Opened = std::vector<perceptron::v1::StreamOpened>;

  // At least one name. `producer_id`: empty if rows are not numbered.
  StreamModels(std::vector<std::string> names, std::string producer_id)
      : names_(std::move(names)), producer_id_(std::move(producer_id)), models_(names_.size()) {}

  size_t size() const { return names_.size(); }
  // Sets models and producer of a connection's first message, with what the models have learned.
  void SetFirst(perceptron::v1::LearnStreamRequest& first) const;
  // The response's opened models. UNIMPLEMENTED if they are not as many as were asked for.
  static absl::StatusOr<Opened> ReadOpened(const perceptron::v1::LearnStreamResponse& response,
                                           size_t models);
  // The position that all models have reached.
  static int64_t LeastOffset(const Opened& opened);

  // Where a stream with these options begins.
  struct Start {
    int64_t next_offset = 0;
    int64_t passes = 0;
  };
  // The first connection. OUT_OF_RANGE (OFFSET_GAP); FAILED_PRECONDITION (POSITIONS_DIFFER).
  absl::StatusOr<Start> Begin(const Opened& opened, const LearnOptions& options) const;
  // A later one, after this first one. ABORTED (MODEL_REPLACED); DATA_LOSS (POSITION_LOST).
  absl::Status CheckSame(const Opened& first, const Opened& opened) const;
  // After either: all models have learned what is below the least offset.
  void OnOpened(const Opened& opened);

  void AddLostAnswers(size_t model, uint64_t rows) { models_[model].totals.lost_answers += rows; }
  void AddResult(size_t model, const perceptron::v1::LearnResult& result);
  void SetReports(perceptron::v1::LearnStreamResponse& response);
  // The pass was marked: where the server did not return it, only its number is known.
  void OnMarked(int64_t pass);

  const LearnTotals& totals(size_t model) const { return models_[model].totals; }
  const std::optional<perceptron::v1::ConvergenceReport>& report(size_t model) const {
    return models_[model].report;
  }
  const perceptron::v1::PassSummary& last_pass(size_t model) const {
    return models_[model].last_pass;
  }

 private:
  struct OneModel {
    LearnTotals totals;
    // What a later connection claims, but for the offset.
    perceptron::v1::Producer::Resume claim;
    perceptron::v1::PassSummary last_pass;
    std::optional<perceptron::v1::ConvergenceReport> report;

    void ClaimRevision(int64_t revision);
    // Empty if nothing was acknowledged.
    perceptron::v1::Producer::Resume Claim() const;
  };

  bool numbered() const { return !producer_id_.empty(); }

  // Those that the server states, once a connection was opened.
  std::vector<std::string> names_;
  const std::string producer_id_;
  std::vector<OneModel> models_;
};

}  // namespace perceptrond::client
