// The examples that a model retains, as rows to draw.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/row.h"

namespace perceptrond::client {

struct RetainedRows {
  std::vector<Row> rows;
  // There are more.
  bool limited = false;
};

// Each different example once, at most `limit`: of the sample, where the model keeps one, else
// those that caused updates.
absl::StatusOr<RetainedRows> ReadRetainedRows(const Client& client, const std::string& name,
                                              size_t limit);

}  // namespace perceptrond::client
