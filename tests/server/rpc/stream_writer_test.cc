// If messages are written faster than they are sent, the newest is sent, and the status comes last.
#include "server/rpc/call.h"

#include <functional>

#include "core/error/error.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/model.pb.h"
#include "tests/server/rpc/rpc_server.h"

namespace perceptrond::stream_writer_test {
namespace {

using namespace ::perceptrond::testing;
using Script = std::function<void(StreamWriter&)>;

::perceptron::v1::Model Message(const std::string& text) {
  ::perceptron::v1::Model message;
  message.set_description(text);
  return message;
}

// Runs the script once, without letting a write complete in between.
class ScriptedReactor final : public Reactor {
 public:
  ScriptedReactor(Call& call, const Script& script) : writer_(call), script_(script) {}

  void Start() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    script_(writer_);
  }
  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    writer_.OnWriteDone(ok);
  }

 private:
  Mutex mutex_;
  StreamWriter writer_ ABSL_GUARDED_BY(mutex_);
  const Script& script_;
};

// The messages that a client of the script receives, each followed by a space, and the status.
std::string Received(const Script& script) {
  const Call::Method method = [&script](Call& call) {
    const auto reactor = std::make_shared<ScriptedReactor>(call, script);
    call.Bind(reactor);
    reactor->Start();
  };
  RpcServer server(All(method));
  ClientCall call(server.Connect(), "/a.B/C");
  std::string received;
  for (std::string bytes; call.Read(bytes);) {
    ::perceptron::v1::Model message;
    EXPECT_TRUE(message.ParseFromString(bytes));
    received += message.description() + " ";
  }
  const grpc::Status status = call.Finish();
  return received + (status.ok() ? "OK" : Reason(status));
}

TEST(StreamWriter, ANewerMessageReplacesTheOneThatWaits) {
  EXPECT_EQ(Received([](StreamWriter& writer) {
              for (const char* text : {"first", "second", "third"}) writer.Write(Message(text));
              writer.Finish(absl::OkStatus());
            }),
            "first third OK");
}

TEST(StreamWriter, AnErrorDropsTheMessageThatWaits) {
  EXPECT_EQ(Received([](StreamWriter& writer) {
              writer.Write(Message("first"));
              writer.Write(Message("second"));
              writer.Finish(MakeError(absl::StatusCode::kAborted, "REASON", "message"));
            }),
            "first REASON");
}

TEST(StreamWriter, NothingIsSentAfterTheFirstStatus) {
  EXPECT_EQ(Received([](StreamWriter& writer) {
              writer.Finish(MakeError(absl::StatusCode::kAborted, "REASON", "message"));
              EXPECT_TRUE(writer.finished());
              writer.Write(Message("first"));
              writer.Finish(absl::OkStatus());
            }),
            "REASON");
}

}  // namespace
}  // namespace perceptrond::stream_writer_test
