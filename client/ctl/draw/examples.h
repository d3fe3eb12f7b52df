// The examples of a picture, and the model's scores of them and of points of a plane.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/ctl/draw/plane.h"
#include "client/draw/contour.h"
#include "client/row.h"

namespace perceptrond::client {

struct RowScore {
  double score = 0;
  int label = 0;
};

// Asks in messages of many rows. Threads: one.
class Scorer {
 public:
  Scorer(const Client& client, std::string name) : client_(client), name_(std::move(name)) {}

  // The server's errors; INVALID_ARGUMENT for rows that it would refuse.
  absl::StatusOr<std::vector<RowScore>> Score(const std::vector<Row>& rows);
  // Over the window, at 161 x 161 places, and between those where a score that is not linear
  // changes its sign.
  absl::StatusOr<Field> ScorePlane(const FeaturePlane& plane, const Window& window);

  // The states that answered, from the oldest to the newest: one, unless the model learned
  // meanwhile.
  int64_t first_revision() const { return first_revision_; }
  int64_t last_revision() const { return last_revision_; }

 private:
  absl::StatusOr<std::vector<double>> ScorePlaces(const FeaturePlane& plane,
                                                  const std::vector<Point>& places);
  absl::Status FindTurns(const FeaturePlane& plane, Field* field);
  absl::Status Ask(v1::ExampleColumns columns, std::vector<RowScore>* scores);

  const Client& client_;
  const std::string name_;
  int64_t first_revision_ = std::numeric_limits<int64_t>::max();
  int64_t last_revision_ = 0;
};

struct RetainedRows {
  std::vector<Row> rows;
  // There are more.
  bool limited = false;
};

// Each different example once, at most `limit`: of the sample, where the model keeps one, else
// those that caused updates.
absl::StatusOr<RetainedRows> ReadRetainedRows(const Client& client, const std::string& name,
                                              size_t limit);

}  // namespace perceptrond::client
