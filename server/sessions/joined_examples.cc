#include "server/sessions/joined_examples.h"

#include <google/protobuf/io/coded_stream.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/error/error.h"
#include "core/features/name_table.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/sessions/field_reader.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;
// Of a number of 32 bits.
constexpr size_t kMostVarintBytes = 5;

using FeaturesCase = NestedExample::FeaturesCase;
using TargetCase = NestedExample::TargetCase;

// The encoding of a row without features, which fits every form.
const std::string& NoFeatures() {
  static const std::string* const kBytes = [] {
    v1::Example example;
    example.mutable_sparse();
    return new std::string(example.SerializeAsString());
  }();
  return *kBytes;
}

bool IsWhole(const Row& row, const FeatureSpace& space) {
  if (row.indices == nullptr) return true;
  return space.kind == FeatureSpace::Kind::kDense && row.size == space.size &&
         row.indices[row.size - 1] + 1 == row.size;
}

template <typename Features>
void CopyValues(const Row& row, Features& features) {
  if (row.values != nullptr) features.mutable_values()->Add(row.values, row.values + row.size);
}

void CopyRow(const Batch& batch, size_t i, const FeatureSpace& space, v1::Example& example) {
  const Row row = batch.row(i);
  if (!batch.texts.empty()) {
    example.set_text(batch.texts[i].data(), batch.texts[i].size());
  } else if (row.size == 0) {
    example.mutable_sparse();
  } else if (batch.names != nullptr) {
    for (size_t k = 0; k < row.size; ++k) {
      const absl::string_view name = batch.names->name(row.indices[k]);
      example.mutable_named()->add_names(name.data(), name.size());
    }
    CopyValues(row, *example.mutable_named());
  } else if (row.values != nullptr && IsWhole(row, space)) {
    CopyValues(row, *example.mutable_dense());
  } else {
    example.mutable_sparse()->mutable_indices()->Add(row.indices, row.indices + row.size);
    CopyValues(row, *example.mutable_sparse());
  }
}

// UNAVAILABLE, with RetryInfo.
absl::Status KeeperUnreachable() {
  return WithRetry(MakeError(absl::StatusCode::kUnavailable, "KEEPER_UNREACHABLE",
                             "the server of the fleet that keeps the predictions did not answer in "
                             "time, and nothing of the message was learned: try again"),
                   absl::Milliseconds(100));
}

absl::Status LengthMismatch(absl::string_view field, int count, int rows) {
  return InvalidField(
      ReasonName(ValidationCode::kMalformedColumns), absl::StrCat("columns.", field),
      absl::StrCat(count, " ", field, " for ", rows, " prediction_ids; send one for each"));
}

// What an example has besides features, as ids are sent in columns.
ValidationCode ReadTarget(const v1::ExampleColumns& columns, int i, v1::Example& example) {
  if (!columns.weights().empty()) example.set_weight(columns.weights(i));
  const int label = columns.labels(i);
  if (columns.label_names().empty()) {
    example.set_label(label);
  } else if (label >= 0 && label < columns.label_names_size()) {
    example.set_label_name(columns.label_names(label));
  } else {
    return ValidationCode::kUnknownLabel;
  }
  return ValidationCode::kNone;
}

void ReadTarget(const NestedExample& nested, v1::Example& example) {
  if (nested.has_weight) example.set_weight(nested.weight);
  if (nested.target == TargetCase::kLabel) example.set_label(nested.label);
  if (nested.target == TargetCase::kLabelName)
    example.set_label_name(nested.label_name.data(), nested.label_name.size());
}

}  // namespace

std::vector<std::string> CopyFeatures(const Batch& batch, const FeatureSpace& space,
                                      std::span<const RowError> refused) {
  std::vector<std::string> all(batch.rows());
  v1::Example example;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!refused.empty() && refused.front().row == i) {
      refused = refused.subspan(1);
      continue;
    }
    example.Clear();
    CopyRow(batch, i, space, example);
    all[i] = example.SerializeAsString();
  }
  return all;
}

size_t RowsBefore(int64_t position, int64_t first_offset) {
  return static_cast<size_t>(std::max<int64_t>(position - std::max<int64_t>(first_offset, 0), 0));
}

absl::Status JoinedExamples::CheckColumns(const v1::ExampleColumns& columns) const {
  const int rows = columns.prediction_ids_size();
  const bool has_features = !columns.row_ends().empty() || !columns.indices().empty() ||
                            !columns.index_deltas().empty() || !columns.values().empty() ||
                            !columns.half_values().empty() || columns.dense_width() > 0 ||
                            !columns.texts().empty() || columns.has_feature_names();
  if (has_features) {
    return InvalidField(ReasonName(ValidationCode::kMalformedColumns), "columns.prediction_ids",
                        "send prediction_ids or features, not both");
  }
  if (columns.labels_size() != rows) return LengthMismatch("labels", columns.labels_size(), rows);
  if (!columns.weights().empty() && columns.weights_size() != rows)
    return LengthMismatch("weights", columns.weights_size(), rows);
  return absl::OkStatus();
}

absl::Status JoinedExamples::Read(const NestedExamples& examples, bool has_columns,
                                  const v1::ExampleColumns& columns, size_t first,
                                  ClaimedPredictions& claimed) {
  if (has_columns && !examples.empty()) {
    return InvalidField("BOTH_FORMS", "columns",
                        "the message has examples and columns; send one of them");
  }
  in_columns_ = has_columns;
  if (absl::Status status = CheckColumns(columns); has_columns && !status.ok()) return status;
  const size_t rows =
      has_columns ? static_cast<size_t>(columns.prediction_ids_size()) : examples.size();
  if (absl::Status status = CheckExampleCount(has_columns ? "columns" : "examples", rows);
      !status.ok())
    return status;
  // Of nested examples some may have features.
  std::vector<absl::string_view> ids;
  std::vector<size_t> id_rows;
  size_t known = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (!has_columns && examples[i].features != FeaturesCase::kPredictionId) continue;
    if (i < first) ++known;
    ids.push_back(has_columns ? absl::string_view(columns.prediction_ids(static_cast<int>(i)))
                              : examples[i].prediction_id);
    id_rows.push_back(i);
  }
  const std::vector<WaitingPredictions::Found> found = claimed.Claim(ids, known, id_rows);
  if (std::any_of(found.begin(), found.end(), [](const auto& one) { return one.unanswered; }))
    return KeeperUnreachable();
  codes_.assign(rows, ValidationCode::kNone);
  std::string message;
  const auto append = [&message](absl::string_view example) {
    using google::protobuf::io::CodedOutputStream;
    constexpr uint32_t kTag = FieldReader::BytesTag(v1::LearnRequest::kExamplesFieldNumber);
    uint8_t head[2 * kMostVarintBytes];
    uint8_t* end = CodedOutputStream::WriteVarint32ToArray(kTag, head);
    end = CodedOutputStream::WriteVarint32ToArray(static_cast<uint32_t>(example.size()), end);
    message.append(reinterpret_cast<const char*>(head), static_cast<size_t>(end - head));
    absl::StrAppend(&message, example);
  };
  size_t next = 0;
  for (size_t i = 0; i < rows; ++i) {
    if (next == id_rows.size() || id_rows[next] != i) {
      append(examples[i].bytes);
      continue;
    }
    const size_t at = next++;
    v1::Example example;
    if (has_columns) {
      codes_[i] = ReadTarget(columns, static_cast<int>(i), example);
    } else {
      ReadTarget(examples[i], example);
    }
    if (at >= known && found[at].code != ValidationCode::kNone) codes_[i] = found[at].code;
    if (codes_[i] != ValidationCode::kNone)
      example.set_prediction_id(ids[at].data(), ids[at].size());
    std::string bytes = example.SerializeAsString();
    if (codes_[i] == ValidationCode::kNone && found[at].example != NoFeatures())
      bytes += found[at].example;
    append(bytes);
  }
  const grpc::Slice slice(message);
  std::string rest;
  if (!examples_.Read(grpc::ByteBuffer(&slice, 1), v1::LearnRequest::kExamplesFieldNumber, rest))
    return absl::InternalError("a kept prediction does not parse");
  return absl::OkStatus();
}

ValidationError JoinedExamples::ErrorOf(size_t i) const {
  switch (codes_[i]) {
    case ValidationCode::kUnknownLabel:
      return {codes_[i], "label", "is no position in label_names"};
    case ValidationCode::kPredictionExpired:
      return {
          codes_[i], "prediction_id",
          "has expired: the prediction was older than the model's stored_predictions.max_age, or "
          "newer ones took its room; send the features, unless its label was learned before"};
    default:
      return {
          ValidationCode::kUnknownPrediction, "prediction_id",
          "names no prediction that waits for its label: it was learned before, is being learned, "
          "is of another model, or was lost with the server that kept it; send the features"};
  }
}

}  // namespace perceptrond
