#include "client/ctl/draw/examples.h"

#include <algorithm>
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

}  // namespace

absl::Status Scorer::Ask(v1::ExampleColumns columns, std::vector<RowScore>* scores) {
  const absl::StatusOr<v1::PredictResponse> response = client_.Predict(name_, std::move(columns));
  if (!response.ok()) return response.status();
  for (int i = 0; i < response->scores_size(); ++i)
    scores->push_back({response->scores(i), response->labels(i)});
  first_revision_ = std::min(first_revision_, response->revision());
  last_revision_ = std::max(last_revision_, response->revision());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<RowScore>> Scorer::Score(const std::vector<Row>& rows) {
  std::vector<RowScore> scores;
  BatchBuilder batch;
  const auto flush = [&] {
    v1::ExampleColumns columns;
    batch.Build(&columns);
    return Ask(std::move(columns), &scores);
  };
  for (const Row& row : rows) {
    if (!batch.Fits(row) || batch.rows() >= kMessageRows || batch.bytes() >= kMessageBytes) {
      if (absl::Status status = flush(); !status.ok()) return status;
    }
    if (absl::Status status = batch.Add(row); !status.ok()) return status;
  }
  if (!batch.empty()) {
    if (absl::Status status = flush(); !status.ok()) return status;
  }
  return scores;
}

absl::StatusOr<std::vector<double>> Scorer::ScorePoints(const FeaturePlane& plane,
                                                        const std::vector<Point>& points) {
  std::vector<Row> rows(points.size());
  for (size_t i = 0; i < points.size(); ++i) plane.MakeRow(points[i], &rows[i]);
  const absl::StatusOr<std::vector<RowScore>> scores = Score(rows);
  if (!scores.ok()) return scores.status();
  std::vector<double> values;
  for (const RowScore& score : *scores) values.push_back(score.score);
  return values;
}

absl::Status Scorer::FindSignChanges(const FeaturePlane& plane, Field* field) {
  if (AsLinear(*field).has_value()) return absl::OkStatus();
  SignChanges sign_changes(*field);
  for (int i = 0; i < kBisections; ++i) {
    const absl::StatusOr<std::vector<double>> values = ScorePoints(plane, sign_changes.Points());
    if (!values.ok()) return values.status();
    sign_changes.SetValues(*values);
  }
  sign_changes.Finish(field);
  return absl::OkStatus();
}

absl::StatusOr<Field> Scorer::ScorePlane(const FeaturePlane& plane, const Window& window) {
  Field field;
  field.window = window;
  field.columns = field.rows = kPointsPerSide;
  std::vector<Point> points;
  for (size_t row = 0; row < kPointsPerSide; ++row) {
    for (size_t column = 0; column < kPointsPerSide; ++column)
      points.push_back({field.x(column), field.y(row)});
  }
  absl::StatusOr<std::vector<double>> values = ScorePoints(plane, points);
  if (!values.ok()) return values.status();
  field.values = *std::move(values);
  if (absl::Status status = FindSignChanges(plane, &field); !status.ok()) return status;
  return field;
}

namespace {

namespace v1 = ::perceptron::v1;

Row RowOf(const v1::Example& example) {
  Row row;
  row.label = example.label();
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
