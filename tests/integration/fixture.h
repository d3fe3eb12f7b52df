// A real server on the loopback, and calls of it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/api.h"
#include "tests/support/server_process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::testing {

// The metrics page of a server; "" without one.
std::string MetricsPage(const ServerProcess& server, const std::string& token = "");
// The value of a sample, by its name and labels, as the page has it; "" if there is none.
std::string Metric(const ServerProcess& server, const std::string& sample,
                   const std::string& token = "");

// Runs the server's program to its end, which comes with this exit code. Returns its output, with standard error.
std::string RunToEnd(int exit_code, const std::string& arguments);

class ServerTest : public ::testing::Test, protected Api {
 protected:
  explicit ServerTest(std::vector<std::string> flags = {})
      : server_(dir_.path() + "/data", std::move(flags)) {
    Connect(server_.address());
  }

  void Restart() {
    server_.Restart();
    Connect(server_.address());
  }
  // Has a model learn these examples, in text format.
  void Teach(const std::string& id, const std::string& examples) {
    EXPECT_EQ(Call("LearningService/Learn", "model: 'models/" + id + "' " + examples), "OK");
  }
  // Another connection, whose transport keeps 64 KiB of what a call has not read. A transport that
  // measures its connection asks for more, up to whole files: the server then sees a client that reads.
  std::shared_ptr<grpc::Channel> NarrowChannel() const;

  TempDir dir_;
  ServerProcess server_;
};

}  // namespace perceptrond::testing
