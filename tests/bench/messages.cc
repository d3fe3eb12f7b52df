#include "tests/bench/messages.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <string>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "tests/support/names.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

// The number of each index that was asked for, in the order in which they were.
using Numbers = absl::flat_hash_map<uint32_t, uint32_t>;

// Indices of words, whose values are all 1, become their numbers, ascending in each row. New ones are
// appended to `names`.
void NumberWords(v1::ExampleColumns& columns, Numbers& numbers, v1::NameColumn& names) {
  google::protobuf::RepeatedField<uint32_t>& indices = *columns.mutable_indices();
  for (uint32_t& index : indices) {
    const auto [number, is_new] = numbers.emplace(index, numbers.size());
    if (is_new) name_columns::AppendName(FeatureName(index), names);
    index = number->second;
  }
  uint32_t begin = 0;
  for (const uint32_t end : columns.row_ends()) {
    std::sort(indices.begin() + begin, indices.begin() + end);
    begin = end;
  }
}

bool AllOnes(const google::protobuf::RepeatedField<float>& values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return v == 1; });
}

// Rows `begin` to `end` - 1.
void FillColumns(const Batch& rows, size_t begin, size_t end, v1::ExampleColumns& columns) {
  for (size_t i = begin; i < end; ++i) {
    const Row row = rows.row(i);
    columns.mutable_indices()->Add(row.indices, row.indices + row.size);
    columns.mutable_values()->Add(row.values, row.values + row.size);
    columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
    columns.add_labels(rows.labels[i]);
  }
  if (AllOnes(columns.values())) columns.clear_values();
}

void AddExample(const Row& row, int32_t label, v1::Example& example) {
  example.set_label(label);
  v1::SparseFeatures& sparse = *example.mutable_sparse();
  sparse.mutable_indices()->Add(row.indices, row.indices + row.size);
  sparse.mutable_values()->Add(row.values, row.values + row.size);
  if (AllOnes(sparse.values())) sparse.clear_values();
}

// Messages of rows; `complete` sets what is the same in all of them.
template <typename Request>
Messages MakeMessages(const Rows& rows, const std::string& model, Form form, size_t size,
                      const std::function<void(Request&)>& complete) {
  Messages messages;
  const Batch batch = rows.batch();
  messages.examples = batch.rows();
  Request first;
  first.set_model(model);
  Numbers numbers;
  v1::NameColumn table;
  for (size_t begin = 0; begin < batch.rows(); begin += size) {
    const size_t end = std::min(begin + size, batch.rows());
    Request request;
    if (form == Form::kNested) {
      for (size_t i = begin; i < end; ++i)
        AddExample(batch.row(i), batch.labels[i], *request.add_examples());
    } else {
      FillColumns(batch, begin, end, *request.mutable_columns());
    }
    if (form == Form::kPackedNames) {
      Numbers own;
      v1::NameColumn& names = *request.mutable_columns()->mutable_feature_names();
      NumberWords(*request.mutable_columns(), own, names);
      for (std::string& name : name_columns::NamesOf(names))
        messages.names.push_back(std::move(name));
    }
    if (form == Form::kTableNames) {
      NumberWords(*request.mutable_columns(), numbers, table);
      request.mutable_columns()->mutable_stream_names();
    }
    complete(request);
    messages.rest.push_back(ToBytes(request));
  }
  if (form == Form::kTableNames) {
    first.set_name_table_size(std::bit_ceil(static_cast<uint32_t>(numbers.size())));
    *first.mutable_columns()->mutable_stream_names() = table;
  }
  messages.first = ToBytes(first);
  return messages;
}

}  // namespace

Messages LearnMessages(const Rows& rows, const std::string& model, Form form, size_t size) {
  return MakeMessages<v1::LearnStreamRequest>(rows, model, form, size, [](auto& /*request*/) {});
}

Messages PredictMessages(const Rows& rows, const std::string& model, Form form, size_t size) {
  return MakeMessages<v1::PredictRequest>(rows, model, form, size,
                                          [model](v1::PredictRequest& request) {
                                            request.set_model(model);
                                            if (request.has_columns())
                                              request.mutable_columns()->clear_labels();
                                          });
}

}  // namespace perceptrond::bench
