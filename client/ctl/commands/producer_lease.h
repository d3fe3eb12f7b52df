// The producer that `perceptronctl learn` uses when it is given none.
//
// A model remembers a limited number of producers, so a new random one for each run would fill it
// up in time. Runs on one machine therefore take turns at a few: each lies in a file that its user
// holds locked. A run that ends well gives its producer back; one that crashed, or stopped between
// two passes, has taken it out of the file, and nobody uses it again.
#pragma once

#include <string>

namespace perceptrond::client {

// Threads: one at a time.
class ProducerLease {
 public:
  // Takes a free producer, or makes a new one. Where no file can be written the producer is new
  // each time.
  ProducerLease();
  // Without Return() before, the producer is given up.
  ~ProducerLease();
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  const std::string& id() const { return id_; }
  // The next run may go on with it: all it sent was answered, and its last pass is marked.
  void Return();

 private:
  std::string id_;
  int descriptor_ = -1;
};

}  // namespace perceptrond::client
