// What a request takes once it is parsed is known before, for every method: also of one that is made to take much.
#include "server/rpc/message_work.h"

#include <google/protobuf/descriptor.h>

#include <functional>

#include "perceptron/v1/prediction_service.pb.h"
#include "server/sessions/nested_examples.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::message_work_test {
namespace {

using namespace ::perceptrond::testing;
namespace pb = ::google::protobuf;
namespace v1 = ::perceptron::v1;

constexpr int kParts = 1000;

size_t Estimate(const pb::Descriptor& type, const std::string& text) {
  grpc::ByteBuffer bytes = ToBytes(text);
  return ParsedBytes(type, bytes);
}

using Check = std::function<void(const pb::Message&, const pb::FieldDescriptor&)>;

// Checks the message with many empty parts in one repeated field of `at`, a part of it, or of a part of that: for each.
void ForEachRepeated(const pb::Message& whole, pb::Message& at, int depth, const Check& check) {
  const pb::Reflection& reflection = *at.GetReflection();
  for (int i = 0; i < at.GetDescriptor()->field_count(); ++i) {
    const pb::FieldDescriptor& field = *at.GetDescriptor()->field(i);
    const bool is_message = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_MESSAGE;
    const bool is_string = field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING;
    if (field.is_repeated() && (is_message || is_string)) {
      for (int part = 0; part < kParts; ++part)
        is_message ? void(reflection.AddMessage(&at, &field))
                   : reflection.AddString(&at, &field, "");
      check(whole, field);
    } else if (is_message && depth > 0) {
      ForEachRepeated(whole, *reflection.MutableMessage(&at, &field), depth - 1, check);
    }
    reflection.ClearField(&at, &field);
  }
}

TEST(MessageWorkTest, EmptyPartsOfAnyRequestCountAsTheObjectsThatTheyBecome) {
  for (const char* name : {"perceptron.v1.ModelService", "perceptron.v1.AliasService",
                           "perceptron.v1.HistoryService", "perceptron.v1.LearningService",
                           "perceptron.v1.PredictionService", "perceptron.v1.AnalysisService",
                           "perceptron.v1.BackupService", "inference.GRPCInferenceService"}) {
    const pb::ServiceDescriptor* const service =
        pb::DescriptorPool::generated_pool()->FindServiceByName(name);
    ASSERT_NE(service, nullptr) << name;
    for (int i = 0; i < service->method_count(); ++i) {
      const pb::Descriptor& type = *service->method(i)->input_type();
      pb::MessageFactory& factory = *pb::MessageFactory::generated_factory();
      const std::unique_ptr<pb::Message> message(factory.GetPrototype(&type)->New());
      const auto check = [&](const pb::Message& whole, const pb::FieldDescriptor& field) {
        const std::string bytes = whole.SerializeAsString();
        const std::unique_ptr<pb::Message> parsed(message->New());
        ASSERT_TRUE(parsed->ParseFromString(bytes));
        const size_t estimate = Estimate(type, bytes);
        EXPECT_GE(estimate, parsed->SpaceUsedLong() / 4 * 3) << type.name() << field.full_name();
        // Of a map those of one key are one.
        if (!field.is_map()) {
          EXPECT_LE(estimate, parsed->SpaceUsedLong() * 2) << type.name() << field.full_name();
        }
        // So a small message takes at most 2 MB.
        EXPECT_LE(estimate, 256 * bytes.size()) << type.name() << field.full_name();
      };
      ForEachRepeated(*message, *message, 4, check);
    }
  }
}

TEST(MessageWorkTest, NestedExamplesCountAsWhatTheyAreReadInto) {
  v1::PredictRequest message;
  for (int i = 0; i < kParts; ++i) message.add_examples();
  RequestWithExamples<v1::PredictRequest> request;
  grpc::ByteBuffer bytes = ToBytes(message.SerializeAsString());
  const size_t empty = Estimate(*v1::PredictRequest::descriptor(), "");
  EXPECT_EQ(ParsedBytesOf(bytes, request), empty + kParts * sizeof(NestedExample));
  message.Clear();
  for (int i = 0; i < kParts; ++i) message.mutable_columns()->add_texts("");
  bytes = ToBytes(message.SerializeAsString());
  EXPECT_GT(ParsedBytesOf(bytes, request), empty + kParts * sizeof(std::string));
}

TEST(MessageWorkTest, AMessageMayTakeAsMuchAsThereIs) {
  const v1::PredictRequest message;
  const std::string fields = UnknownFields(100'000);
  grpc::ByteBuffer bytes = ToBytes(fields);
  const size_t takes = Estimate(*message.GetDescriptor(), fields);
  for (const size_t most : {takes - 1, takes}) {
    const absl::StatusOr<MessageWork> work =
        MeasureWork(MemoryBudget(4 * most, most), bytes, message);
    EXPECT_EQ(ReasonOf(work.status()), most < takes ? "MESSAGE_TOO_LARGE" : "");
    if (!work.ok()) continue;
    EXPECT_EQ(work->bytes, fields.size());
    EXPECT_EQ(work->parsed_bytes, takes);
    EXPECT_GT(work->leased_bytes(), takes);
  }
  EXPECT_EQ((MessageWork{kMaxInlineBytes, 2 << 20}.leased_bytes()), 0U);
}

}  // namespace
}  // namespace perceptrond::message_work_test
