// ProducerLease: the producer id of `perceptronctl learn` without --producer.
//
// A model remembers a limited number of producers, and a random id per run would use them up. Runs
// on one machine therefore share a few ids: each is stored in a file that its user locks. A run
// that ends well returns its id; the id of a run that crashed or stopped between two passes is
// dropped. Runs of several models share ids with those of the same models alone, in all of which
// such a producer has the same position.
#pragma once

#include <string>
#include <vector>

namespace perceptrond::client {

// Threads: one at a time.
class ProducerLease {
 public:
  // Takes a free id or generates a new one; without a writable state directory always a new one.
  // `models`: all that the run teaches.
  explicit ProducerLease(const std::vector<std::string>& models);
  // Drops the id unless Return() was called.
  ~ProducerLease();
  ProducerLease(const ProducerLease&) = delete;
  ProducerLease& operator=(const ProducerLease&) = delete;

  const std::string& id() const { return id_; }
  // Takes another id, which no model has seen.
  void Renew();
  // Makes the id available to the next run. Call when everything sent was answered and the last
  // pass is marked.
  void Return();

 private:
  std::string id_;
  int descriptor_ = -1;
};

}  // namespace perceptrond::client
