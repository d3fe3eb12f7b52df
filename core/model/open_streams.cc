#include "core/model/open_streams.h"

#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {

std::unique_ptr<OpenStreams::Ticket> OpenStreams::Open(const std::string& model_uid,
                                                       const std::string& producer,
                                                       Listener listener) {
  Key key;
  Listener superseded;
  {
    MutexLock lock(&mutex_);
    key = {model_uid, ++last_id_};
    streams_.emplace(key, Stream{producer, std::move(listener)});
    if (!producer.empty()) superseded = Supersede(producer, key);
  }
  if (superseded) {
    superseded(MakeError(
        absl::StatusCode::kAborted, "PRODUCER_SUPERSEDED",
        absl::StrCat("producer \"", producer, "\" has opened a newer stream; this one ends")));
  }
  return absl::WrapUnique(new Ticket(*this, std::move(key)));
}

OpenStreams::Listener OpenStreams::Supersede(const std::string& producer, const Key& key) {
  const auto [found, first] = speakers_.try_emplace(Speaker(key.first, producer), key.second);
  if (first) return nullptr;
  const uint64_t older = std::exchange(found->second, key.second);
  return streams_.at(Key(key.first, older)).listener;
}

void OpenStreams::EndAll(const std::string& model_uid, const absl::Status& why) {
  std::vector<Listener> listeners;
  {
    MutexLock lock(&mutex_);
    for (auto it = streams_.lower_bound(Key(model_uid, 0));
         it != streams_.end() && it->first.first == model_uid; ++it) {
      listeners.push_back(it->second.listener);
    }
  }
  for (const Listener& listener : listeners) listener(why);
}

void OpenStreams::Remove(const Key& key) {
  MutexLock lock(&mutex_);
  const auto stream = streams_.find(key);
  const auto speaker = speakers_.find(Speaker(key.first, stream->second.producer));
  if (speaker != speakers_.end() && speaker->second == key.second) speakers_.erase(speaker);
  streams_.erase(stream);
}

}  // namespace perceptrond
