// A stream of one-dimensional examples to a real server.
#pragma once

#include <initializer_list>
#include <string>
#include <utility>

#include "tests/integration/fixture.h"

namespace perceptrond::testing {

class LearnStreamTest : public ServerTest {
 protected:
  LearnStreamTest() { CreateDense("line", 1); }

  static v1::LearnStreamRequest Columns(std::initializer_list<std::pair<float, int>> examples) {
    v1::LearnStreamRequest request;
    v1::ExampleColumns& columns = *request.mutable_columns();
    columns.set_dense_width(1);
    for (const auto& [x, y] : examples) {
      columns.add_values(x);
      columns.add_labels(y);
    }
    return request;
  }
  void Delete(const std::string& id) {
    grpc::ClientContext context;
    v1::DeleteModelRequest request;
    request.set_name("models/" + id);
    google::protobuf::Empty empty;
    const grpc::Status status = models_->DeleteModel(&context, request, &empty);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  // Points on a line: 25 updates to theta = -3, theta_0 = 7, worked by hand.
  static v1::LearnStreamRequest Line() { return Columns({{1, 1}, {2, 1}, {3, -1}, {4, -1}}); }
};

}  // namespace perceptrond::testing
