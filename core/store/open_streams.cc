#include "core/store/open_streams.h"

#include <vector>

#include "absl/memory/memory.h"
#include "core/error/error.h"

namespace perceptrond {

std::unique_ptr<OpenStreams::Ticket> OpenStreams::Open(const std::string& model_uid,
                                                       const std::string& producer, OnEnd on_end) {
  Key key;
  OnEnd superseded;
  {
    MutexLock lock(&mutex_);
    key = {model_uid, ++last_id_};
    streams_.emplace(key, Stream{producer, std::move(on_end)});
    if (!producer.empty()) superseded = Supersede(producer, key);
  }
  if (superseded) superseded(ProducerSupersededError(producer));
  return absl::WrapUnique(new Ticket(*this, std::move(key)));
}

OpenStreams::OnEnd OpenStreams::Supersede(const std::string& producer, const Key& key) {
  const auto [found, first] = newest_.try_emplace(Name(key.first, producer), key.second);
  if (first) return nullptr;
  const uint64_t older = std::exchange(found->second, key.second);
  return streams_.at(Key(key.first, older)).on_end;
}

bool OpenStreams::HasAny(const std::string& model_uid) const {
  MutexLock lock(&mutex_);
  const auto next = streams_.lower_bound({model_uid, 0});
  return next != streams_.end() && next->first.first == model_uid;
}

void OpenStreams::EndAll(const std::string& model_uid, const absl::Status& why) {
  std::vector<OnEnd> callbacks;
  {
    MutexLock lock(&mutex_);
    for (auto it = streams_.lower_bound(Key(model_uid, 0));
         it != streams_.end() && it->first.first == model_uid; ++it) {
      callbacks.push_back(it->second.on_end);
    }
  }
  for (const OnEnd& callback : callbacks) callback(why);
}

void OpenStreams::Remove(const Key& key) {
  MutexLock lock(&mutex_);
  const auto stream = streams_.find(key);
  const auto newest = newest_.find(Name(key.first, stream->second.producer));
  if (newest != newest_.end() && newest->second == key.second) newest_.erase(newest);
  streams_.erase(stream);
}

}  // namespace perceptrond
