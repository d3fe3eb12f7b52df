#include "client/ctl/draw/examples.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "client/batch_builder.h"
#include "client/draw/geometry.h"

namespace perceptrond::client {
namespace {

constexpr size_t kMessageRows = 4096;
constexpr size_t kMessageBytes = 1 << 20;
constexpr size_t kPointsPerSide = 161;
// Bisections between two points, which are less than three pixels apart: to 1/20 of a pixel.
constexpr int kBisections = 6;

std::vector<double> Values(const std::vector<RowScore>& scores,
                           absl::FunctionRef<double(const RowScore&)> value) {
  std::vector<double> values;
  for (const RowScore& score : scores) values.push_back(value(score));
  return values;
}

double ScoreOf(int number, std::span<const float> scores) {
  const bool known = number >= 0 && static_cast<size_t>(number) < scores.size();
  return known ? scores[static_cast<size_t>(number)] : std::numeric_limits<double>::quiet_NaN();
}

// NaN: there is no other class.
double LargestWithout(int number, std::span<const float> scores) {
  double largest = std::numeric_limits<double>::quiet_NaN();
  for (size_t k = 0; k < scores.size(); ++k) {
    if (static_cast<int>(k) != number) largest = std::fmax(largest, scores[k]);
  }
  return largest;
}

}  // namespace

absl::Status Scorer::Ask(const std::vector<Row>& rows, size_t most, bool class_scores,
                         Answer answer) {
  BatchBuilder batch;
  const auto flush = [&]() -> absl::Status {
    v1::ExampleColumns columns;
    batch.Build(&columns);
    const absl::StatusOr<v1::PredictResponse> response =
        client_.Predict(name_, std::move(columns), 0, class_scores);
    if (!response.ok()) return response.status();
    first_revision_ = std::min(first_revision_, response->revision());
    last_revision_ = std::max(last_revision_, response->revision());
    answer(*response);
    return absl::OkStatus();
  };
  for (const Row& row : rows) {
    if (!batch.Fits(row) || batch.rows() >= most || batch.bytes() >= kMessageBytes) {
      if (absl::Status status = flush(); !status.ok()) return status;
    }
    if (absl::Status status = batch.Add(row); !status.ok()) return status;
  }
  return batch.empty() ? absl::OkStatus() : flush();
}

absl::StatusOr<std::vector<RowScore>> Scorer::Score(const std::vector<Row>& rows) {
  std::vector<RowScore> scores;
  const auto add = [&](const v1::PredictResponse& response) {
    for (int i = 0; i < response.scores_size(); ++i) {
      RowScore& one = scores.emplace_back();
      one.score = response.scores(i);
      one.label = response.predicted_labels(i);
      if (response.distances_size() > 0) one.distance = response.distances(i);
    }
  };
  if (absl::Status status = Ask(rows, kMessageRows, false, add); !status.ok()) return status;
  return scores;
}

absl::StatusOr<std::vector<ClassScore>> Scorer::ScoreClass(const std::vector<Row>& rows, int number,
                                                           size_t max_classes) {
  constexpr size_t kMostScores = size_t{1} << 20;
  std::vector<ClassScore> scores;
  const auto add = [&](const v1::PredictResponse& response) {
    const int classes = response.class_scores_size() / std::max(1, response.scores_size());
    for (int i = 0; i < response.scores_size(); ++i) {
      const std::span<const float> all(response.class_scores().data() + i * classes,
                                       static_cast<size_t>(classes));
      const int label = rows[scores.size()].label;
      scores.push_back({ScoreOf(number, all),
                        label == number ? LargestWithout(number, all) : ScoreOf(label, all)});
    }
  };
  const size_t most =
      std::clamp<size_t>(kMostScores / std::max<size_t>(1, max_classes), 1, kMessageRows);
  if (absl::Status status = Ask(rows, most, true, add); !status.ok()) return status;
  return scores;
}

absl::StatusOr<std::vector<RowScore>> Scorer::ScorePoints(const FeaturePlane& plane,
                                                          const std::vector<Point>& points) {
  std::vector<Row> rows(points.size());
  for (size_t i = 0; i < points.size(); ++i) plane.MakeRow(points[i], &rows[i]);
  return Score(rows);
}

absl::Status Scorer::FindSignChanges(const FeaturePlane& plane, Value value, Field* field) {
  if (AsLinear(*field).has_value()) return absl::OkStatus();
  SignChanges sign_changes(*field);
  for (int i = 0; i < kBisections; ++i) {
    const absl::StatusOr<std::vector<RowScore>> scores = ScorePoints(plane, sign_changes.Points());
    if (!scores.ok()) return scores.status();
    sign_changes.SetValues(Values(*scores, value));
  }
  sign_changes.Finish(field);
  return absl::OkStatus();
}

absl::StatusOr<ScoredGrid> Scorer::ScoreGrid(const FeaturePlane& plane, const Rectangle& window) {
  ScoredGrid grid;
  grid.field.window = window;
  grid.field.columns = grid.field.rows = kPointsPerSide;
  std::vector<Point> points;
  for (size_t row = 0; row < kPointsPerSide; ++row) {
    for (size_t column = 0; column < kPointsPerSide; ++column)
      points.push_back({grid.field.x(column), grid.field.y(row)});
  }
  absl::StatusOr<std::vector<RowScore>> scores = ScorePoints(plane, points);
  if (!scores.ok()) return scores.status();
  grid.scores = *std::move(scores);
  return grid;
}

absl::StatusOr<Field> Scorer::ScorePlane(const FeaturePlane& plane, const Rectangle& window) {
  const absl::StatusOr<ScoredGrid> grid = ScoreGrid(plane, window);
  if (!grid.ok()) return grid.status();
  const auto value = [](const RowScore& score) { return score.score; };
  Field field = grid->field;
  field.values = Values(grid->scores, value);
  if (absl::Status status = FindSignChanges(plane, value, &field); !status.ok()) return status;
  return field;
}

absl::StatusOr<Field> Scorer::FindArea(const FeaturePlane& plane, const ScoredGrid& grid,
                                       int number) {
  // Linear scores differ by a linear function, so that between two areas this is linear too.
  const auto value = [number](const RowScore& score) {
    return score.label == number ? score.distance.value_or(1) : -score.distance.value_or(1);
  };
  Field field = grid.field;
  field.values = Values(grid.scores, value);
  if (absl::Status status = FindSignChanges(plane, value, &field); !status.ok()) return status;
  return field;
}

namespace {

namespace v1 = ::perceptron::v1;

Row RowOf(const v1::Example& example) {
  Row row;
  if (example.label_name().empty()) row.label = example.label();
  row.label_name = example.label_name();
  if (example.has_dense()) {
    row.kind = RowKind::kDense;
    row.values.assign(example.dense().values().begin(), example.dense().values().end());
  } else if (example.has_named()) {
    row.kind = RowKind::kNamed;
    row.values.assign(example.named().values().begin(), example.named().values().end());
    for (const std::string& feature : example.named().names()) row.AddName(feature);
  } else {
    row.indices.assign(example.sparse().indices().begin(), example.sparse().indices().end());
    row.values.assign(example.sparse().values().begin(), example.sparse().values().end());
  }
  return row;
}

// The server lists examples of updates first; the sample, if there is one, contains them too.
class Collector {
 public:
  explicit Collector(size_t limit) : limit_(limit) {}

  bool Take(const v1::ListStoredExamplesResponse& page) {
    for (const v1::StoredExample& stored : page.examples()) {
      if (stored.update_revision() == 0 && !sampled_) {
        sampled_ = true;
        seen_.clear();
        found_ = StoredExampleRows();
      }
      Add(stored.example());
    }
    return !(sampled_ && found_.limited);
  }
  StoredExampleRows Found() { return std::move(found_); }

 private:
  void Add(v1::Example example) {
    // Examples that differ only in weight are duplicates.
    example.clear_weight();
    if (!seen_.insert(example.SerializeAsString()).second) return;
    found_.limited = found_.rows.size() == limit_;
    if (!found_.limited) found_.rows.push_back(RowOf(example));
  }

  const size_t limit_;
  bool sampled_ = false;
  absl::flat_hash_set<std::string> seen_;
  StoredExampleRows found_;
};

}  // namespace

absl::StatusOr<StoredExampleRows> ReadStoredExampleRows(const Client& client,
                                                        const std::string& name, size_t limit) {
  Collector collector(limit);
  const absl::Status status = client.ListStoredExamples(
      name, [&](const v1::ListStoredExamplesResponse& page) { return collector.Take(page); });
  if (!status.ok()) return status;
  return collector.Found();
}

}  // namespace perceptrond::client
