// ProducerLease: the producer id of `perceptronctl learn` without --producer.
//
// A model remembers a limited number of producers, and a random id per run would use them up. Runs
// on one machine therefore share a few ids: each is stored in a file that its user locks. A run
// that ends well returns its id; the id of a run that crashed or stopped between two passes is
// dropped. A run of several models has one id for all: each has a position of its own for it.
#pragma once

#include <string>

namespace perceptrond::client {

// Threads: one at a time.
class ProducerLease {
 public:
  // Takes a free id or generates a new one; without a writable state directory always a new one.
  ProducerLease();
  // Drops the id unless Return() was called.
  ~ProducerLease();
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  const std::string& id() const { return id_; }
  // Makes the id available to the next run. Call when everything sent was answered and the last
  // pass is marked.
  void Return();

 private:
  std::string id_;
  int descriptor_ = -1;
};

}  // namespace perceptrond::client
