// A perceptrond in the test's own process: a real gRPC server that keeps account of every example
// and misbehaves on request. An example is known by the index of its one feature, or by the number
// in the name "n7" of its first one; those divisible by kUpdateEvery "update the model".
#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/connection.h"
#include "client/row.h"
#include "perceptron/v1/learning_service.grpc.pb.h"
#include "perceptron/v1/model_service.grpc.pb.h"
#include "perceptron/v1/prediction_service.grpc.pb.h"

namespace perceptrond::client {

inline constexpr uint32_t kUpdateEvery = 3;

// Examples that the server knows by this number: by index, or by name among names that are frequent.
Row Example(uint32_t id);
Row NamedExample(uint32_t id);
// The same with names of about this many bytes more.
Row LargeExample(uint32_t id, size_t bytes);
// The numbers below n.
std::vector<uint32_t> UpTo(uint32_t n);

// Clocks of a retry policy: one that stands still, so that nothing is given up however long it takes;
// and one that goes on by a millisecond whenever it is looked at.
std::chrono::steady_clock::time_point StandingClock();
std::function<std::chrono::steady_clock::time_point()> HurryingClock();

class FakeServer final : public v1::LearningService::Service {
 public:
  // The fate of one message of a learning stream.
  enum class Fate {
    kAnswer,
    // The connection breaks before anything of it is accounted for, after a part of it, after all
    // of it.
    kDropBefore,
    kDropHalfway,
    kDropAfter,
  };
  struct ProducerState {
    std::vector<uint32_t> account;
    // The last position that an update journaled.
    int64_t durable = 0;
    int64_t acknowledged = -1;
    int64_t passes = 0;
    v1::PassSummary pass;
  };

  FakeServer();
  ~FakeServer() override;

  std::shared_ptr<Connection> Connect();
  // Its port on the loopback address, for what a channel within the process does not have.
  std::string address() const;

  // Set before use. Asked for each message, under the lock.
  std::function<Fate(const v1::LearnStreamRequest&)> fate;
  // Each break also is a crash: positions that no update journaled are lost.
  bool crash_on_drop = false;
  // Answer message 0, too.
  bool answer_opening = false;
  // The most names of a stream's table that it grants.
  uint32_t most_table_names = 0;
  // The largest message that it accepts; 0: any.
  size_t most_message_bytes = 0;
  // It refuses streams that ask for one, as earlier servers do.
  bool refuses_name_tables = false;
  // Hold answers back until this many are due, a pass ends, or the stream has no more to read.
  int answers_together = 1;
  // Refuses every opening unless it is OK.
  grpc::Status refusal;
  // May refuse rows of a message, or all of it; called under the lock.
  std::function<void(const v1::LearnStreamRequest&, v1::LearnResult*)> on_result;
  std::string model_uid = "uid-1";
  // Predictions: how many messages a stream answers before it breaks; < 0: any.
  int predict_break_after = -1;

  ProducerState producer(const std::string& id);
  int64_t openings();

  // For unary calls.
  std::function<grpc::Status(const grpc::ServerContext&, const v1::LearnRequest&)> on_learn;

 private:
  using LearnStreamIo = grpc::ServerReaderWriter<v1::LearnStreamResponse, v1::LearnStreamRequest>;
  using PredictStreamIo = grpc::ServerReaderWriter<v1::PredictResponse, v1::PredictRequest>;

  grpc::Status Learn(grpc::ServerContext* context, const v1::LearnRequest* request,
                     v1::LearnResponse* response) override;
  grpc::Status LearnStream(grpc::ServerContext*, LearnStreamIo* io) override;

  grpc::Status Open(const v1::LearnStreamRequest& request, v1::StreamOpened* opened);
  // Accounts for the first `rows` of a message, whose rows are known by `ids`.
  void Account(const v1::LearnStreamRequest& request, const std::vector<uint32_t>& ids, size_t rows,
               ProducerState* state, v1::LearnResult* result);

  class Predictions final : public v1::PredictionService::Service {
   public:
    explicit Predictions(const FakeServer& server) : server_(server) {}
    grpc::Status PredictStream(grpc::ServerContext*, PredictStreamIo* io) override;

   private:
    const FakeServer& server_;
  };

  Predictions predictions_{*this};
  std::mutex mutex_;
  std::map<std::string, ProducerState> producers_;
  int64_t openings_ = 0;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace perceptrond::client
