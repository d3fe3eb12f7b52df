#include "tests/bench/messages.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "tests/support/names.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

template <typename T>
void Append(const std::vector<T>& from, google::protobuf::RepeatedField<T>& to) {
  to.Add(from.begin(), from.end());
}

bool AllOnes(const Rows& rows) {
  return std::all_of(rows.values.begin(), rows.values.end(), [](float v) { return v == 1; });
}

// The number of each index that was asked for, in the order in which they were.
using Numbers = absl::flat_hash_map<uint32_t, uint32_t>;

// Indices become their numbers, ascending in each row with their values. New ones are appended to
// `names`.
void NumberFeatures(v1::ExampleColumns& columns, Numbers& numbers, v1::NameColumn& names) {
  uint32_t begin = 0;
  std::vector<std::pair<uint32_t, float>> row;
  for (const uint32_t end : columns.row_ends()) {
    row.clear();
    for (int i = static_cast<int>(begin); i < static_cast<int>(end); ++i) {
      const auto [number, is_new] = numbers.emplace(columns.indices(i), numbers.size());
      if (is_new) name_columns::AppendName(FeatureName(columns.indices(i)), names);
      row.emplace_back(number->second, columns.values().empty() ? 1 : columns.values(i));
    }
    std::sort(row.begin(), row.end());
    for (size_t i = 0; i < row.size(); ++i) {
      const int at = static_cast<int>(begin + i);
      columns.set_indices(at, row[i].first);
      if (!columns.values().empty()) columns.set_values(at, row[i].second);
    }
    begin = end;
  }
}

// Names of this message.
void NameFeatures(v1::ExampleColumns& columns, std::vector<std::string>& sent) {
  Numbers numbers;
  v1::NameColumn& names = *columns.mutable_feature_names();
  NumberFeatures(columns, numbers, names);
  size_t begin = 0;
  for (const uint32_t length : names.lengths()) {
    sent.push_back(names.text().substr(begin, length));
    begin += length;
  }
}

void FillColumns(const Rows& rows, v1::ExampleColumns& columns) {
  Append(rows.row_ends, *columns.mutable_row_ends());
  Append(rows.indices, *columns.mutable_indices());
  if (!AllOnes(rows)) Append(rows.values, *columns.mutable_values());
  Append(rows.labels, *columns.mutable_labels());
}

template <typename Request>
void AddExamples(const Rows& rows, Request& request) {
  const Batch batch = rows.batch();
  const bool all_ones = AllOnes(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row row = batch.row(i);
    v1::Example& example = *request.add_examples();
    example.set_label(rows.labels[i]);
    v1::SparseFeatures& sparse = *example.mutable_sparse();
    sparse.mutable_indices()->Add(row.indices, row.indices + row.size);
    if (!all_ones) sparse.mutable_values()->Add(row.values, row.values + row.size);
  }
}

template <typename Request>
void Fill(const Rows& rows, Form form, std::vector<std::string>& sent, Request& request) {
  if (form == Form::kNested) return AddExamples(rows, request);
  FillColumns(rows, *request.mutable_columns());
  if (form == Form::kPackedNames) NameFeatures(*request.mutable_columns(), sent);
}

// Messages of rows; `complete` sets what is the same in all of them.
template <typename Request>
Messages MakeMessages(const Rows& rows, const std::string& model, Form form, size_t size,
                      const std::function<void(Request&)>& complete) {
  Messages messages;
  messages.examples = rows.size();
  Request first;
  first.set_model(model);
  Numbers numbers;
  v1::NameColumn table;
  for (size_t begin = 0; begin < rows.size(); begin += size) {
    const Rows slice = rows.Slice(begin, begin + size);
    Request request;
    Fill(slice, form, messages.names, request);
    if (form == Form::kTableNames) {
      NumberFeatures(*request.mutable_columns(), numbers, table);
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
