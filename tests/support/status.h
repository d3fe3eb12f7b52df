// What a test wants to know of an absl::Status.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/error/error.h"
#include "google/rpc/error_details.pb.h"
#include "gtest/gtest.h"

// Status is a value here, not a reference: the expression may be a temporary.
#define EXPECT_OK(expression)                  \
  do {                                         \
    const absl::Status status_ = (expression); \
    EXPECT_TRUE(status_.ok()) << status_;      \
  } while (false)
#define ASSERT_OK(expression)                  \
  do {                                         \
    const absl::Status status_ = (expression); \
    ASSERT_TRUE(status_.ok()) << status_;      \
  } while (false)

namespace perceptrond::testing {

// ErrorInfo's reason; empty if there is none.
inline std::string ReasonOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  const auto payload = status.GetPayload(kErrorInfoUrl);
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload))) return "";
  return info.reason();
}

}  // namespace perceptrond::testing
