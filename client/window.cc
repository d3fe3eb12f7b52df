#include "client/window.h"

#include <utility>

namespace perceptrond::client {

void Window::Add(std::shared_ptr<Outgoing> message) {
  bytes_ += message->bytes;
  messages_.push_back(std::move(message));
}

std::shared_ptr<Outgoing> Window::NextToSend() {
  return sent_ < messages_.size() ? messages_[sent_++] : nullptr;
}

std::shared_ptr<Outgoing> Window::Oldest(int64_t number) const {
  return number == front_number_ && sent_ > 0 ? messages_.front() : nullptr;
}

void Window::RemoveOldest() {
  bytes_ -= messages_.front()->bytes;
  messages_.pop_front();
  --sent_;
  ++front_number_;
}

void Window::Restart() {
  sent_ = 0;
  front_number_ = 1;
}

std::vector<std::shared_ptr<Outgoing>> Window::Settle(int64_t next_offset) {
  std::vector<std::shared_ptr<Outgoing>> settled;
  std::deque<std::shared_ptr<Outgoing>> rest;
  for (std::shared_ptr<Outgoing>& message : messages_) {
    const auto end = message->first_offset + static_cast<int64_t>(message->tags.size());
    if (message->tags.empty() || message->rows_settled || end > next_offset) {
      rest.push_back(std::move(message));
      continue;
    }
    if (message->request.completed_pass() > 0) {
      // Replaced by a copy, because gRPC may still use the message.
      auto mark = std::make_shared<Outgoing>();
      mark->request.set_completed_pass(message->request.completed_pass());
      mark->first_offset = message->first_offset;
      mark->tags = message->tags;
      mark->rows_settled = true;
      rest.push_back(std::move(mark));
    }
    bytes_ -= message->bytes;
    settled.push_back(std::move(message));
  }
  messages_ = std::move(rest);
  return settled;
}

}  // namespace perceptrond::client
