#include "server/sessions/message_timings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "perceptron/v1/learning_service.pb.h"
#include "perceptron/v1/prediction_service.pb.h"
#include "tests/server/rpc/reactors.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::testing {
namespace {

namespace v1 = ::perceptron::v1;

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Has a call of a real server time messages, with every message slow; returns the lines.
std::vector<std::string> LinesOf(const std::function<void(MessageTimings&)>& messages) {
  ::testing::internal::CaptureStderr();
  const Call::Method method = [&](Call& call) {
    call.Bind(std::make_shared<Reactor>());
    call.slow_calls().SetThreshold(absl::Nanoseconds(1));
    // Each event has a time of its own, though all of them happen within this one.
    polled_event_time = {};
    MessageTimings timings(call);
    messages(timings);
    call.Finish(grpc::Status::OK);
  };
  {
    RpcServer server(All(method));
    EXPECT_TRUE(ClientCall(server.Connect(), "/a/B").Finish().ok());
  }
  std::vector<std::string> lines;
  for (const absl::string_view line :
       absl::StrSplit(::testing::internal::GetCapturedStderr(), '\n')) {
    if (absl::StrContains(line, "slow call")) lines.emplace_back(line);
  }
  return lines;
}

void Handle(MessageTimings& timings, const std::string& model, bool is_answered) {
  MessageHandling handling(SteadyClock::now());
  handling.OnDone();
  v1::PredictRequest request;
  request.set_model(model);
  timings.OnHandled(handling, request, is_answered);
}

v1::PredictResponse Failed(int code) {
  v1::PredictResponse response;
  response.mutable_error()->set_code(code);
  return response;
}

TEST(MessageTimingsTest, EachMessageHasItsOwnModelAndCode) {
  const auto lines = LinesOf([](MessageTimings& timings) {
    for (const char* model : {"models/a", "", "models/b"}) {
      timings.OnRead(5);
      Handle(timings, model, true);
    }
    for (const int code : {0, 3, 0}) {
      timings.OnReady(0, Failed(code));
      timings.OnWritten();
    }
  });
  EXPECT_THAT(lines, ElementsAre(HasSubstr("method=/a/B model=models/a "),
                                 AllOf(HasSubstr(" model=models/a "), HasSubstr(" message=1 "),
                                       HasSubstr(" status=INVALID_ARGUMENT ")),
                                 AllOf(HasSubstr(" model=models/b "), HasSubstr(" message=2 "))));
}

TEST(MessageTimingsTest, AResponseMayAnswerSeveralMessages) {
  const auto lines = LinesOf([](MessageTimings& timings) {
    v1::LearnStreamResponse response;
    for (int i = 0; i < 3; ++i) {
      timings.OnRead(5);
      Handle(timings, "models/a", false);
      response.add_results();
    }
    timings.OnReady(3);
    timings.OnReady(0, response);
    timings.OnWritten();
  });
  EXPECT_THAT(lines, ElementsAre(HasSubstr(" message=0 "), HasSubstr(" message=1 "),
                                 HasSubstr(" message=2 ")));
}

TEST(MessageTimingsTest, WhatIsNotAnsweredHasTheStatusOfTheStream) {
  const auto lines = LinesOf([](MessageTimings& timings) {
    for (int i = 0; i < 3; ++i) timings.OnRead(5);
    Handle(timings, "models/a", true);
    Handle(timings, "", false);
    timings.OnReady(0, Failed(0));
    timings.OnEnd(absl::UnavailableError("the server is stopping"));
  });
  EXPECT_THAT(lines, ElementsAre(HasSubstr(" status=UNAVAILABLE "),
                                 HasSubstr(" status=UNAVAILABLE "), HasSubstr(" message=2 ")));
}

}  // namespace
}  // namespace perceptrond::testing
