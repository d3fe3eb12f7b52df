// What the null servers answer: as much as the real one, and nothing that was learned.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"

namespace perceptrond::bench {

// As the real server's default.
inline constexpr size_t kMaxInFlight = 1024;
// The largest table of names that a stream gets.
inline constexpr uint32_t kMaxNameTableSize = 1U << 20;

template <typename Request>
int RowCount(const Request& request) {
  if (!request.has_columns()) return request.examples_size();
  const ::perceptron::v1::ExampleColumns& columns = request.columns();
  if (columns.texts_size() > 0) return columns.texts_size();
  return columns.dense_width() == 0
             ? columns.row_ends_size()
             : columns.values_size() / static_cast<int>(columns.dense_width());
}

inline uint32_t GrantedNameTable(uint32_t asked) {
  uint32_t size = std::min(asked, kMaxNameTableSize);
  while ((size & (size - 1)) != 0) size &= size - 1;
  return size;
}

inline void FillResult(int rows, ::perceptron::v1::ResultDetail detail, int64_t number,
                       ::perceptron::v1::LearnResult& result) {
  result.set_message_number(number);
  result.set_examples(rows);
  result.set_acknowledged_offset(rows);
  result.set_revision(1);
  if (detail == ::perceptron::v1::RESULT_DETAIL_UPDATES) return;
  result.mutable_scores()->Resize(rows, 1.5F);
  result.mutable_predicted_labels()->Resize(rows, 1);
}

inline void FillPrediction(const ::perceptron::v1::PredictRequest& request,
                           ::perceptron::v1::PredictResponse& response) {
  const int rows = RowCount(request);
  response.mutable_scores()->Resize(rows, 1.5F);
  response.mutable_predicted_labels()->Resize(rows, 1);
  response.mutable_distances()->Resize(rows, 0.5F);
  response.set_revision(1);
}

// The line that tells where a server listens: `listen` with the ports that it got.
inline std::string ServingLine(const std::vector<std::string>& listen,
                               const std::vector<int>& ports) {
  std::vector<std::string> addresses;
  for (size_t i = 0; i < listen.size(); ++i) {
    addresses.push_back(
        absl::StartsWith(listen[i], "unix:")
            ? listen[i]
            : absl::StrCat(listen[i].substr(0, listen[i].rfind(':')), ":", ports[i]));
  }
  return absl::StrCat("null server serving address=", absl::StrJoin(addresses, ","), "\n");
}

}  // namespace perceptrond::bench
