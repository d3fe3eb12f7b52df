// What methods work with.
#pragma once

#include <cstddef>

namespace perceptrond {

class Drain;
class Store;
class Workers;

// All of it must outlive the calls.
struct Backend {
  Store& store;
  Drain& drain;
  Workers& workers;
  size_t max_message_bytes = 0;
};

// A message that is no larger is answered in about the time that it takes to wake another thread.
inline constexpr size_t kSmallMessage = 8 << 10;

}  // namespace perceptrond
