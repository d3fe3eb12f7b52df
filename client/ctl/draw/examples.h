// The examples of a picture, and the model's scores of them and of the points of a plane.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/ctl/draw/plane.h"
#include "client/draw/geometry.h"
#include "client/row.h"

namespace perceptrond::client {

struct RowScore {
  double score = 0;
  int label = 0;
};

// Scores rows through Predict calls of many rows each. Threads: one.
class Scorer {
 public:
  Scorer(const Client& client, std::string name) : client_(client), name_(std::move(name)) {}

  // Errors of the server. INVALID_ARGUMENT: a row has a validation error.
  absl::StatusOr<std::vector<RowScore>> Score(const std::vector<Row>& rows);
  // Scores 161 x 161 points of the window, and refines where the sign of a non-linear score changes
  // between two of them.
  absl::StatusOr<Field> ScorePlane(const FeaturePlane& plane, const Window& window);

  // The oldest and the newest revision that answered; they differ if the model learned meanwhile.
  int64_t first_revision() const { return first_revision_; }
  int64_t last_revision() const { return last_revision_; }

 private:
  absl::StatusOr<std::vector<double>> ScorePoints(const FeaturePlane& plane,
                                                  const std::vector<Point>& points);
  absl::Status FindSignChanges(const FeaturePlane& plane, Field* field);
  absl::Status Ask(v1::ExampleColumns columns, std::vector<RowScore>* scores);

  const Client& client_;
  const std::string name_;
  int64_t first_revision_ = std::numeric_limits<int64_t>::max();
  int64_t last_revision_ = 0;
};

struct StoredExampleRows {
  std::vector<Row> rows;
  // The model stores more.
  bool limited = false;
};

// Reads the stored examples without duplicates, at most `limit`: the sample, if the model keeps
// one, else the examples that caused updates. Errors of the server.
absl::StatusOr<StoredExampleRows> ReadStoredExampleRows(const Client& client,
                                                        const std::string& name, size_t limit);

}  // namespace perceptrond::client
