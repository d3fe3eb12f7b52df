// Streams that learn by an alias, over a real connection: they stay on the model that it named first.
#include <memory>
#include <string>

#include "client/connection.h"
#include "client/learn_stream.h"
#include "tests/integration/alias_fixture.h"
#include "tests/integration/fixture.h"

namespace perceptrond::testing {
namespace {

using ::testing::HasSubstr;

// Models a and b, of one feature.
class AliasStreamsTest : public ServerTest {
 protected:
  AliasStreamsTest() {
    for (const std::string id : {"a", "b"}) CreateDense(id, 1);
  }

  static v1::Example RowOf(float x) {
    v1::Example example;
    example.set_label(1);
    example.mutable_dense()->add_values(x);
    return example;
  }
  void Set(const std::string& alias, const std::string& model) {
    grpc::ClientContext context;
    v1::Alias set;
    const grpc::Status status =
        v1::AliasService::NewStub(channel_)->UpdateAlias(&context, Naming(alias, model), &set);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  grpc::Status DeleteAlias(const std::string& alias) {
    grpc::ClientContext context;
    v1::DeleteAliasRequest request;
    request.set_name("aliases/" + alias);
    google::protobuf::Empty nothing;
    return v1::AliasService::NewStub(channel_)->DeleteAlias(&context, request, &nothing);
  }
};

TEST_F(AliasStreamsTest, AStreamThatLearnsStaysOnItsModel) {
  Set("x", "a");
  RawLearnStream stream(*learning_, "", "p");
  stream.first().set_model("aliases/x");
  const v1::StreamOpened opened = stream.Open();
  EXPECT_EQ(opened.model(), "models/a");
  EXPECT_EQ(opened.model_uid(), Get("a").uid());
  Set("x", "b");
  v1::LearnStreamRequest request;
  for (const char* model : {"", "aliases/x", "models/a"}) {
    request.set_model(model);
    request.clear_examples();
    *request.add_examples() = RowOf(2);
    const v1::LearnResult result = stream.Ask(request);
    EXPECT_FALSE(result.has_error()) << result.error().message();
  }
  ASSERT_TRUE(DeleteAlias("x").ok());
  request.set_model("aliases/x");
  EXPECT_FALSE(stream.Ask(request).has_error());
  EXPECT_EQ(Get("a").report().examples(), 4);
  EXPECT_EQ(Get("b").report().examples(), 0);
  EXPECT_TRUE(stream.Finish().ok());
}

TEST_F(AliasStreamsTest, AStreamThatReconnectsStaysOnItsModel) {
  Set("x", "a");
  client::LearnOptions options;
  options.rows_per_message = 1;
  auto stream =
      client::LearnStream::Open(client::MakeConnection(server_.address()), "aliases/x", options);
  ASSERT_TRUE(stream.ok()) << stream.status();
  client::Row row;
  row.indices = {0};
  row.values = {1};
  row.label = 1;
  ASSERT_TRUE((*stream)->Push(row).ok());
  ASSERT_TRUE((*stream)->MarkPass().ok());
  Set("x", "b");
  server_.Kill();
  Restart();
  ASSERT_TRUE((*stream)->Push(row).ok());
  const auto totals = (*stream)->Finish();
  ASSERT_TRUE(totals.ok()) << totals.status();
  EXPECT_EQ(Get("a").report().examples(), 2);
  EXPECT_EQ(Get("b").report().examples(), 0);
}

TEST_F(AliasStreamsTest, AnErrorAfterTheAliasHasMovedAsksForTheModelsName) {
  Set("x", "b");
  RawLearnStream stream(*learning_, "", "p");
  stream.first().set_model("aliases/x");
  v1::Producer::Resume& resume = *stream.first().mutable_producer()->mutable_resume();
  resume.set_model_uid(Get("a").uid());
  stream.Send(stream.first());
  const grpc::Status status = stream.Finish();
  EXPECT_EQ(Reason(status), "MODEL_REPLACED");
  EXPECT_THAT(status.error_message(), HasSubstr("name that model (StreamOpened.model)"));
}

}  // namespace
}  // namespace perceptrond::testing
