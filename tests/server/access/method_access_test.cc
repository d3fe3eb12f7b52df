// A method's models are those that its handler will see. tests/fuzz/access_fuzz.cc has more of them.
#include "server/access/method_access.h"

#include <google/protobuf/descriptor.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "perceptron/v1/history_service.pb.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/model_service.pb.h"
#include "tests/support/nested_examples.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

MethodAccess Access(const std::string& method) {
  const auto* const found =
      google::protobuf::DescriptorPool::generated_pool()->FindMethodByName(method);
  EXPECT_NE(found, nullptr) << method;
  return MethodAccess(*found);
}

NamedModels Read(const MethodAccess& access, const std::string& bytes, size_t slice = 1 << 20) {
  NamedModels named;
  grpc::ByteBuffer buffer = testing::InSlices(bytes, slice);
  EXPECT_TRUE(access.Read(buffer, named));
  EXPECT_EQ(buffer.Length(), bytes.size());
  return named;
}

TEST(MethodAccessDeathTest, AMethodThatNobodyDeclaredStopsTheServer) {
  google::protobuf::FileDescriptorProto file;
  file.set_name("undeclared.proto");
  file.add_message_type()->set_name("Request");
  auto* const service = file.add_service();
  service->set_name("Undeclared");
  auto* const method = service->add_method();
  method->set_name("Do");
  method->set_input_type("Request");
  method->set_output_type("Request");
  google::protobuf::DescriptorPool pool;
  const auto* const built = pool.BuildFile(file);
  ASSERT_NE(built, nullptr);
  EXPECT_DEATH(MethodAccess(*built->service(0)->method(0)), "Undeclared.Do has no entry");
}

// Whoever could make the check and the handler see two different models could use any model.
TEST(MethodAccess, OfSeveralNamesTheOneThatTheHandlerTakesIsChecked) {
  const MethodAccess access = Access("perceptron.v1.LearningService.Learn");
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int part = 0; part < 4; ++part) {
      v1::LearnRequest request;
      if (random() % 2 == 0) request.set_model(random() % 2 == 0 ? "models/a" : "models/b");
      if (random() % 2 == 0) request.add_examples()->set_label(1);
      if (random() % 2 == 0) request.set_producer_id("models/c");
      if (random() % 4 == 0) request.mutable_columns()->add_labels(1);
      bytes += request.SerializeAsString();
      // The model's field number with another wire type, which is an unknown field.
      if (random() % 4 == 0) bytes += std::string("\x08\x07");
      if (random() % 8 == 0) bytes += std::string("\x0b\x0c");
    }
    RequestWithExamples<v1::LearnRequest> parsed;
    grpc::ByteBuffer buffer = testing::InSlices(bytes, bytes.size());
    if (!ParseMessage(buffer, 1 << 20, parsed).ok()) continue;
    EXPECT_EQ(Read(access, bytes, 1 + random() % 40).model, parsed.model());
  }
}

TEST(MethodAccess, OfSeveralOtherModelsTheOneThatTheHandlerTakesIsChecked) {
  v1::CopyModelRequest request;
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    request.set_name("models/" + std::to_string(i));
    bytes += request.SerializeAsString();
  }
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_EQ(Read(Access("perceptron.v1.HistoryService.CopyModel"), bytes).other_model,
            request.name());
}

TEST(MethodAccess, MalformedBytesAreNotRead) {
  const MethodAccess access = Access("perceptron.v1.ModelService.UpdateModel");
  for (const std::string& bytes : {std::string("\x0a\x7f"), std::string("\x0a\x02\x0a\x7f"),
                                   std::string("\xff"), std::string("\x0c")}) {
    NamedModels named;
    grpc::ByteBuffer buffer = testing::InSlices(bytes, bytes.size());
    EXPECT_FALSE(access.Read(buffer, named));
  }
}

}  // namespace
}  // namespace perceptrond
