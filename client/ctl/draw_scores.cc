#include "client/ctl/draw_scores.h"

#include <algorithm>
#include <utility>

#include "client/batch_builder.h"
#include "client/draw/turns.h"

namespace perceptrond::client {
namespace {

constexpr size_t kMessageRows = 4096;
constexpr size_t kMessageBytes = 1 << 20;
constexpr size_t kPlaces = 161;
// Of asking between two places, which lie less than three pixels apart: to a twentieth of one.
constexpr int kHalvings = 6;

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

absl::StatusOr<std::vector<double>> Scorer::ScorePlaces(const FeaturePlane& plane,
                                                        const std::vector<Point>& places) {
  std::vector<Row> rows(places.size());
  for (size_t i = 0; i < places.size(); ++i) plane.MakeRow(places[i], &rows[i]);
  const absl::StatusOr<std::vector<RowScore>> scores = Score(rows);
  if (!scores.ok()) return scores.status();
  std::vector<double> values;
  for (const RowScore& score : *scores) values.push_back(score.score);
  return values;
}

absl::Status Scorer::FindTurns(const FeaturePlane& plane, Field* field) {
  if (AsLinear(*field).has_value()) return absl::OkStatus();
  Turns turns(*field);
  for (int i = 0; i < kHalvings; ++i) {
    const absl::StatusOr<std::vector<double>> values = ScorePlaces(plane, turns.Places());
    if (!values.ok()) return values.status();
    turns.Take(*values);
  }
  turns.Finish(field);
  return absl::OkStatus();
}

absl::StatusOr<Field> Scorer::ScorePlane(const FeaturePlane& plane, const Window& window) {
  Field field;
  field.window = window;
  field.columns = field.rows = kPlaces;
  std::vector<Point> places;
  for (size_t row = 0; row < kPlaces; ++row) {
    for (size_t column = 0; column < kPlaces; ++column)
      places.push_back({field.x(column), field.y(row)});
  }
  absl::StatusOr<std::vector<double>> values = ScorePlaces(plane, places);
  if (!values.ok()) return values.status();
  field.values = *std::move(values);
  if (absl::Status status = FindTurns(plane, &field); !status.ok()) return status;
  return field;
}

}  // namespace perceptrond::client
