// One client's stream on its way to the server that writes its model: segments there, answers back.
#pragma once

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <deque>
#include <memory>

#include "absl/status/status.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/learning_service.pb.h"
#include "server/fleet/writer_calls.h"

namespace perceptrond {

// See proto/perceptron/fleet/v1/segment.proto.
inline constexpr char kSegmentsPath[] = "/perceptron.fleet.v1.SegmentService/Learn";

// Keeps itself until the other server's end is known.
//
// Thread contract: safe for any number of threads.
class SegmentCall final : public WriterCall,
                          public grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>,
                          public std::enable_shared_from_this<SegmentCall> {
 public:
  // Called on gRPC's threads, one call at a time, with no lock.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void OnAnswer(::perceptron::v1::LearnStreamResponse& answer) = 0;
    // The call has ended; OK: after EndInput and every answer.
    virtual void OnEnd(const absl::Status& why) = 0;
  };

  // `calls` must outlive the call.
  static std::shared_ptr<SegmentCall> Start(WriterCalls& calls, const std::string& address,
                                            uint64_t model_id, int64_t epoch,
                                            const CallOrigin& origin,
                                            std::weak_ptr<Receiver> receiver);

  // Sends a segment after those before. Does nothing once the call ends.
  void Send(grpc::ByteBuffer segment) ABSL_LOCKS_EXCLUDED(mutex_);
  // No segment comes after those that were given.
  void EndInput() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  SegmentCall(WriterCalls& calls, const std::string& address, uint64_t model_id, int64_t epoch,
              std::weak_ptr<Receiver> receiver);
  // Writes the next segment, or says that there is none, unless a write is under way.
  void Advance() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Nothing more is started by other threads than gRPC's: the end may come.
  void Close() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  WriterCalls& calls_;
  const std::weak_ptr<Receiver> receiver_;
  const std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  std::shared_ptr<SegmentCall> self_;
  // Used by the reading thread alone.
  grpc::ByteBuffer incoming_;
  ::perceptron::v1::LearnStreamResponse answer_;

  Mutex mutex_;
  std::deque<grpc::ByteBuffer> segments_ ABSL_GUARDED_BY(mutex_);
  // The one being written.
  grpc::ByteBuffer outgoing_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool input_ended_ ABSL_GUARDED_BY(mutex_) = false;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  // Why this server ends the call.
  absl::Status why_ ABSL_GUARDED_BY(mutex_);
};

// What a call to another server ended with, whose own errors have details.
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace perceptrond
