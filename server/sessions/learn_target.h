// What the first message of a LearnStream says of the whole stream.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace perceptron::v1 {
class LearnStreamRequest;
}

namespace perceptrond {

// Not thread-safe.
class LearnTarget {
 public:
  // Takes over the fields of the first message. INVALID_ARGUMENT (MISSING_MODEL, INVALID_FIELD).
  absl::Status Read(const ::perceptron::v1::LearnStreamRequest& first);
  // INVALID_ARGUMENT for a later message whose fields of the stream are not those of the first.
  absl::Status CheckSame(const ::perceptron::v1::LearnStreamRequest& later) const;

  // "models/{model}".
  const std::string& model() const { return model_; }
  // Empty: the stream has no producer.
  const std::string& producer() const { return producer_; }
  // Whether answers have scores and labels.
  bool detail() const { return detail_; }
  bool include_report() const { return include_report_; }
  // Whether rows need not wait for the stream's earlier updates where they are evaluated.
  bool relaxed() const { return relaxed_; }
  // LearnStreamRequest.name_table_size.
  uint32_t name_table_size() const { return name_table_size_; }

 private:
  std::string model_;
  std::string producer_;
  bool detail_ = true;
  bool include_report_ = false;
  bool relaxed_ = false;
  uint32_t name_table_size_ = 0;
};

}  // namespace perceptrond
