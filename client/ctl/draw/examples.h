// The examples of a picture, and the model's scores of them and of the points of a plane.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/ctl/draw/plane.h"
#include "client/draw/geometry.h"
#include "client/row.h"

namespace perceptrond::client {

struct RowScore {
  double score = 0;
  int label = 0;
  // PredictResponse.distances.
  std::optional<double> distance;
};

// Several classes: a row's score of one class, and the score that it competes with: of the row's
// class, or, if that is the one class, the largest of the others. NaN: the class does not exist.
struct ClassScore {
  double own = 0;
  double opponent = 0;
};

// Scores at the points of a field without values.
struct ScoredGrid {
  Field field;
  std::vector<RowScore> scores;
};

// Scores rows through Predict calls of many rows each. Threads: one.
class Scorer {
 public:
  Scorer(const Client& client, std::string name) : client_(client), name_(std::move(name)) {}

  // Errors of the server. INVALID_ARGUMENT: a row has a validation error.
  absl::StatusOr<std::vector<RowScore>> Score(const std::vector<Row>& rows);
  // The rows' scores of class `number` of a model of at most `max_classes`; labels are numbers.
  absl::StatusOr<std::vector<ClassScore>> ScoreClass(const std::vector<Row>& rows, int number,
                                                     size_t max_classes);
  // Scores 161 x 161 points of the window, and refines where the sign of a non-linear score changes
  // between two of them.
  absl::StatusOr<Field> ScorePlane(const FeaturePlane& plane, const Rectangle& window);
  // Scores the same points for several classes. FindArea computes from them the area of one class,
  // with its border refined: RegionsPicture::Class::margin.
  absl::StatusOr<ScoredGrid> ScoreGrid(const FeaturePlane& plane, const Rectangle& window);
  absl::StatusOr<Field> FindArea(const FeaturePlane& plane, const ScoredGrid& grid, int number);

  // The oldest and the newest revision that answered; they differ if the model learned meanwhile.
  int64_t first_revision() const { return first_revision_; }
  int64_t last_revision() const { return last_revision_; }

 private:
  // The value of a field at a point whose score this is.
  using Value = absl::FunctionRef<double(const RowScore& score)>;
  using Answer = absl::FunctionRef<void(const v1::PredictResponse& response)>;

  absl::StatusOr<std::vector<RowScore>> ScorePoints(const FeaturePlane& plane,
                                                    const std::vector<Point>& points);
  absl::Status FindSignChanges(const FeaturePlane& plane, Value value, Field* field);
  // Asks in messages of at most `most` rows.
  absl::Status Ask(const std::vector<Row>& rows, size_t most, bool class_scores, Answer answer);

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
