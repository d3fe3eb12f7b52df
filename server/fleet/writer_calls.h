// The calls of this server to the servers that write models: how they are reached, and that no call
// waits for one that is no longer the writer.
#pragma once

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "core/sync/mutex.h"
#include "server/rpc/message.h"

namespace perceptrond {

class Call;

// What a call to another server has of the one it is made for: its trace, and who makes it, which
// the server that received it has checked.
struct CallOrigin {
  explicit CallOrigin(const Call& call);
  // Adds it to the metadata.
  void AddTo(grpc::ClientContext& context) const;

  std::string traceparent;
  std::string principal;
};

// A call to the server that writes a model.
class WriterCall {
 public:
  WriterCall(uint64_t model_id, int64_t epoch) : model_id(model_id), epoch(epoch) {}
  virtual ~WriterCall() = default;
  // Ends it for this reason. Any thread.
  virtual void End(const absl::Status& why) = 0;

  const uint64_t model_id;
  // The writer's, when the call began.
  const int64_t epoch;
};

// Thread contract: safe for any number of threads.
class WriterCalls {
 public:
  // `name`: in the other servers' certificates; empty: that of their address. `max_answer_bytes`: of one answer, which is
  // held here.
  WriterCalls(std::shared_ptr<grpc::ChannelCredentials> credentials, std::string name,
              size_t max_message_bytes, size_t max_answer_bytes)
      : name_(std::move(name)),
        max_message_bytes_(max_message_bytes),
        max_answer_bytes_(std::min(max_answer_bytes, kMaxSerializedBytes)),
        credentials_(std::move(credentials)) {}

  // From now on new calls are made with these.
  void UseCredentials(std::shared_ptr<grpc::ChannelCredentials> credentials)
      ABSL_LOCKS_EXCLUDED(mutex_);
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& address) ABSL_LOCKS_EXCLUDED(mutex_);
  // Notes a call until Remove, which is the last thing that it does.
  void Add(const std::shared_ptr<WriterCall>& call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(const WriterCall& call) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the calls whose model has another writer now: the one before may never answer.
  void EndStale(const std::function<int64_t(uint64_t model_id)>& epoch_of)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends all, and waits until they have ended. None may begin.
  void EndAll(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::vector<std::shared_ptr<WriterCall>> All() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::string name_;
  const size_t max_message_bytes_;
  const size_t max_answer_bytes_;
  Mutex mutex_;
  std::shared_ptr<grpc::ChannelCredentials> credentials_ ABSL_GUARDED_BY(mutex_);
  // By address. Servers that are gone are dropped once there are many.
  absl::flat_hash_map<std::string, std::shared_ptr<grpc::Channel>> channels_
      ABSL_GUARDED_BY(mutex_);
  absl::flat_hash_map<const WriterCall*, std::weak_ptr<WriterCall>> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace perceptrond
