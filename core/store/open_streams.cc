#include "core/store/open_streams.h"

#include <vector>

#include "absl/memory/memory.h"
#include "core/error/error.h"

namespace perceptrond {

std::unique_ptr<OpenStreams::Ticket> OpenStreams::Open(const std::string& model_uid,
                                                       const std::string& producer, OnEnd on_end,
                                                       OnAsk on_ask) {
  Key key;
  OnEnd superseded;
  absl::Status refused;
  {
    MutexLock lock(&mutex_);
    key = {model_uid, ++last_id_};
    const auto asked = asked_.find(model_uid);
    if (asked != asked_.end() && on_ask != nullptr) refused = asked->second;
    streams_.emplace(key, Stream{producer, on_end, std::move(on_ask)});
    if (!producer.empty()) superseded = Supersede(producer, key);
  }
  if (superseded) superseded(ProducerSupersededError(producer));
  if (!refused.ok()) on_end(refused);
  return absl::WrapUnique(new Ticket(*this, std::move(key)));
}

void OpenStreams::AwaitRest(const std::vector<std::string>& model_uids, const absl::Status& why,
                            absl::Duration timeout) {
  std::vector<OnAsk> asks;
  size_t awaited = 0;
  const auto for_each = [&](const std::function<void(Stream&)>& visit)
                            ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                              for (const std::string& uid : model_uids) {
                                for (auto it = streams_.lower_bound(Key(uid, 0));
                                     it != streams_.end() && it->first.first == uid; ++it)
                                  visit(it->second);
                              }
                            };
  {
    MutexLock lock(&mutex_);
    for (const std::string& uid : model_uids) asked_[uid] = why;
    for_each([&](Stream& stream) {
      if (stream.on_ask == nullptr || stream.awaited != nullptr) return;
      asks.push_back(stream.on_ask);
      stream.awaited = &awaited;
      ++awaited;
    });
  }
  for (const OnAsk& ask : asks) ask();
  asks.clear();
  const auto ended = [&awaited] { return awaited == 0; };
  MutexLock lock(&mutex_);
  mutex_.AwaitWithTimeout(absl::Condition(&ended), timeout);
  for (const std::string& uid : model_uids) asked_.erase(uid);
  for_each([&](Stream& stream) {
    if (stream.awaited == &awaited) stream.awaited = nullptr;
  });
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
  if (stream->second.awaited != nullptr) --*stream->second.awaited;
  streams_.erase(stream);
}

}  // namespace perceptrond
