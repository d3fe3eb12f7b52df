#include "client/client.h"

#include <gtest/gtest.h>

#include "client/connection.h"
#include "tests/client/fake_server.h"

namespace perceptrond::client {
namespace {

ClientOptions NoWaiting() {
  ClientOptions options;
  options.retry.sleep = [](absl::Duration) {};
  return options;
}

v1::ExampleColumns OneRow() {
  v1::ExampleColumns columns;
  columns.add_indices(1);
  columns.add_row_ends(1);
  columns.add_labels(1);
  return columns;
}

TEST(Client, RepeatsLearningThatIsNumbered) {
  FakeServer server;
  int calls = 0;
  server.on_learn = [&](const v1::LearnRequest& request) {
    EXPECT_EQ(request.model(), "models/m");
    EXPECT_EQ(request.producer_id(), "p");
    EXPECT_EQ(request.first_offset(), 7);
    return ++calls < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "") : grpc::Status::OK;
  };
  const auto result = Client(server.Connect(), NoWaiting()).Learn("m", OneRow(), Numbered{"p", 7});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples(), 1u);
  EXPECT_EQ(calls, 3);
}

TEST(Client, NeverRepeatsLearningThatIsNot) {
  FakeServer server;
  int calls = 0;
  server.on_learn = [&](const v1::LearnRequest&) {
    ++calls;
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "");
  };
  const Client client(server.Connect(), NoWaiting());
  EXPECT_TRUE(absl::IsUnavailable(client.Learn("m", OneRow()).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.Learn("m", OneRow(), Numbered{"", 7}).status()));
  EXPECT_EQ(calls, 2);
}

TEST(Client, SaysWhenAServerHasNoSuchService) {
  FakeServer server;
  const Client client(server.Connect(), NoWaiting());
  EXPECT_TRUE(absl::IsUnimplemented(client.GetModel("m").status()));
  EXPECT_TRUE(absl::IsUnimplemented(client.CheckHealth().status()));
}

TEST(Client, AsksAboutHealth) {
  grpc::EnableDefaultHealthCheckService(true);
  FakeServer server;
  grpc::EnableDefaultHealthCheckService(false);
  const Client client(server.Connect(), NoWaiting());
  const auto health = client.CheckHealth();
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(*health, Health::kServing);
  EXPECT_TRUE(absl::IsNotFound(client.CheckHealth("no.such.Service").status()));
}

TEST(Names, TakeModelsWithAndWithoutTheirCollection) {
  EXPECT_EQ(ModelName("spam"), "models/spam");
  EXPECT_EQ(ModelName("models/spam"), "models/spam");
  EXPECT_EQ(ModelId("models/spam"), "spam");
  EXPECT_EQ(ModelId("spam"), "spam");
  EXPECT_NE(RandomId(), RandomId());
}

}  // namespace
}  // namespace perceptrond::client
