// What a machine with more processors would reach, by the utilisation law: no resource can be in
// use for longer than the time that passes, so that
//
//   examples a second <= (units of the resource) / (its seconds an example)
//
// for the processors, the polling threads, the committer's thread, the streams, of which each is
// handled by one thread at a time, and the locks of a model that are held exclusively.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tests/bench/server_usage.h"

namespace perceptrond::bench {

// What was measured at one number of streams. Times are nanoseconds an example.
struct ScalingPoint {
  size_t streams = 0;
  // Examples a second of all streams together.
  double rate = 0;
  // Processors that had nothing to do, on average.
  double idle = 0;
  // The part of the examples that were mistakes.
  double mistakes = 0;
  // Processor time: of the client, and of the server's threads.
  double client = 0;
  double pollers = 0;
  double workers = 0;
  double committer = 0;
  double rocksdb = 0;
  double others = 0;
  // An example. Empty unless locks were counted.
  LockUses locks;

  // Of the thread, or threads, with this name.
  void AddThread(const std::string& name, double nanos);
  double server() const { return pollers + workers + committer + rocksdb + others; }
  // Processors that client and server used, on average.
  double used() const { return 1e-9 * rate * (server() + client); }
};

// A bound of the rate, in examples a second, and the resource that sets it.
struct Bound {
  double rate = 0;
  std::string resource;
};

// The lowest bound on `processors` processors. With `shared`, the client uses them too.
// `one_model`: all streams learn the same, so that its locks are one resource.
Bound LowestBound(const ScalingPoint& point, const LockUses& locks, bool one_model,
                  double processors, bool shared);

// The tables of one kind of work.
class ScalingTable {
 public:
  // `processors`: of the machine that is modelled.
  ScalingTable(std::string name, bool one_model, int processors)
      : name_(std::move(name)), one_model_(one_model), processors_(processors) {}

  // `one`: with the server on one processor; `all`: on all, which the client uses too.
  void Add(const ScalingPoint& one, const ScalingPoint& all, const LockUses& locks) {
    rows_.push_back({one, all, locks});
  }
  void Print() const;

 private:
  struct Row {
    ScalingPoint one;
    ScalingPoint all;
    LockUses locks;
  };

  void PrintLocks() const;

  const std::string name_;
  const bool one_model_;
  const int processors_;
  std::vector<Row> rows_;
};

}  // namespace perceptrond::bench
