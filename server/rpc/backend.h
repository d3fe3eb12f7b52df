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

}  // namespace perceptrond
