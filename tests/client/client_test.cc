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

TEST(Client, RepeatsLearningThatIsNumberedAndNoOther) {
  FakeServer server;
  int calls = 0;
  v1::LearnRequest last;
  server.on_learn = [&](const grpc::ServerContext&, const v1::LearnRequest& request) {
    last = request;
    return ++calls < 3 ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "") : grpc::Status::OK;
  };
  const Client client(server.Connect(), NoWaiting());
  EXPECT_TRUE(absl::IsUnavailable(client.Learn("m", OneRow()).status()));
  EXPECT_TRUE(absl::IsUnavailable(client.Learn("m", OneRow(), Numbered{"", 7}).status()));
  EXPECT_EQ(calls, 2);
  calls = 0;
  const auto result = client.Learn("m", OneRow(), Numbered{"p", 7});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->examples(), 1u);
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(last.model(), "models/m");
  EXPECT_EQ(last.producer_id(), "p");
  EXPECT_EQ(last.first_offset(), 7);
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

TEST(Client, RefusesWhatIsNoAddress) {
  for (const char* wrong : {"", "localhost:abc", "2187", "http://127.0.0.1:7600", "[::1"})
    EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect(wrong).status())) << wrong;
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
