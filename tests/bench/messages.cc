#include "tests/bench/messages.h"

#include <algorithm>

#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

template <typename T>
void Append(const std::vector<T>& from, google::protobuf::RepeatedField<T>& to) {
  to.Add(from.begin(), from.end());
}

void FillColumns(const Rows& rows, v1::ExampleColumns& columns) {
  Append(rows.row_ends, *columns.mutable_row_ends());
  Append(rows.indices, *columns.mutable_indices());
  Append(rows.values, *columns.mutable_values());
  Append(rows.labels, *columns.mutable_labels());
}

void AddExamples(const Rows& rows, v1::LearnStreamRequest& request) {
  const Batch batch = rows.batch();
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row row = batch.row(i);
    v1::Example& example = *request.add_examples();
    example.set_label(rows.labels[i]);
    example.mutable_sparse()->mutable_indices()->Add(row.indices, row.indices + row.size);
    example.mutable_sparse()->mutable_values()->Add(row.values, row.values + row.size);
  }
}

// Calls `make(slice)` for each message's rows.
template <typename Make>
void ForEachMessage(const Rows& rows, size_t size, Messages& messages, Make make) {
  for (size_t begin = 0; begin < rows.size(); begin += size) {
    const Rows slice = rows.Slice(begin, begin + size);
    messages.rest.push_back(ToBytes(make(slice)));
    messages.examples.push_back(static_cast<int>(slice.size()));
  }
}

}  // namespace

Messages LearnMessages(const Rows& rows, const std::string& model, Form form, size_t size) {
  Messages messages;
  v1::LearnStreamRequest first;
  first.set_model(model);
  messages.first = ToBytes(first);
  ForEachMessage(rows, size, messages, [form](const Rows& slice) {
    v1::LearnStreamRequest request;
    if (form == Form::kPacked) {
      FillColumns(slice, *request.mutable_columns());
    } else {
      AddExamples(slice, request);
    }
    return request;
  });
  return messages;
}

Messages PredictMessages(const Rows& rows, const std::string& model, size_t size) {
  Messages messages;
  v1::PredictRequest first;
  first.set_model(model);
  messages.first = ToBytes(first);
  ForEachMessage(rows, size, messages, [&model](const Rows& slice) {
    v1::PredictRequest request;
    request.set_model(model);
    FillColumns(slice, *request.mutable_columns());
    request.mutable_columns()->clear_labels();
    return request;
  });
  return messages;
}

}  // namespace perceptrond::bench
