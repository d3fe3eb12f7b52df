// Parses options from arguments, the environment and files that a test writes.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "server/config/options.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

class OptionsTest : public ::testing::Test {
 protected:
  ~OptionsTest() override {
    for (const std::string& name : environment_) unsetenv(name.c_str());
  }

  void SetEnvironment(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    environment_.push_back(name);
  }
  // A file with this text, as an argument's value.
  std::string File(const std::string& name, const std::string& text) {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  static Options Good(const std::vector<std::string>& args) {
    const ParseResult result = ParseOptions(args);
    EXPECT_FALSE(result.exit_code.has_value()) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.err, "");
    return result.options;
  }
  // The message on standard error.
  static std::string Bad(const std::vector<std::string>& args) {
    const ParseResult result = ParseOptions(args);
    EXPECT_EQ(result.exit_code, 2) << ::testing::PrintToString(args);
    EXPECT_EQ(result.out, "");
    return result.err;
  }

 private:
  const TempDir directory_;
  std::vector<std::string> environment_;
};

}  // namespace perceptrond::testing
