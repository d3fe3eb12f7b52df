// What tests of formats share: a format with options that serve most, and what it makes of a line.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client/format/format.h"

namespace perceptrond::client::format_test {

inline FormatOptions Options(FormatKind kind) {
  FormatOptions options;
  options.kind = kind;
  options.index_base = 1;
  options.label_column = "y";
  return options;
}

inline std::unique_ptr<Format> Make(const FormatOptions& options) {
  auto format = MakeFormat(options);
  EXPECT_TRUE(format.ok()) << format.status();
  return *std::move(format);
}

// Parses a line that must hold an example.
inline Row Parsed(Format* format, const std::string& line) {
  Row row;
  const auto kind = format->Parse(line, &row);
  EXPECT_TRUE(kind.ok()) << line << ": " << kind.status();
  EXPECT_TRUE(!kind.ok() || *kind == LineKind::kExample) << line;
  return row;
}

// The error of a line that must not parse.
inline std::string Error(Format* format, const std::string& line) {
  Row row;
  const auto kind = format->Parse(line, &row);
  EXPECT_TRUE(absl::IsInvalidArgument(kind.status())) << line;
  return std::string(kind.status().message());
}

inline bool Nothing(Format* format, const std::string& line) {
  Row row;
  const auto kind = format->Parse(line, &row);
  return kind.ok() && *kind == LineKind::kNothing;
}

inline std::map<std::string, float> Features(const Row& row) {
  std::map<std::string, float> features;
  for (size_t i = 0; i < row.name_count(); ++i) {
    features[std::string(row.name(i))] = row.values.empty() ? 1 : row.values[i];
  }
  return features;
}

using Map = std::map<std::string, float>;

}  // namespace perceptrond::client::format_test
