// The files of RocksDB's log, so that a power failure can only make the log end early. Without this
// RocksDB may lose writes in the middle of a log that was not synced, and keep later ones.
#pragma once

#include <memory>

namespace rocksdb {
class Env;
class Status;
}  // namespace rocksdb

namespace perceptrond {

// Thread contract: safe for any number of threads.
class OrderedLogs {
 public:
  // Files are in `base`, which must outlive it.
  explicit OrderedLogs(rocksdb::Env* base);
  ~OrderedLogs();
  OrderedLogs(const OrderedLogs&) = delete;
  OrderedLogs& operator=(const OrderedLogs&) = delete;

  // For one database, which must be closed first. Differs from `base` in two ways:
  //  - A page that never reached the disk reads as zeros, and RocksDB goes on after them without a
  //    word. If something follows them they are damage, where recovery ends. No file is changed.
  //  - A log, and the name of the next one, are synced before that begins: else it could lose its end,
  //    and the next one keep its writes.
  rocksdb::Env* env() const { return env_.get(); }
  // Has everything that was written to the log on disk. Other threads may write meanwhile. Unlike
  // RocksDB's own, it does not end the process if one of them meets an error just then.
  rocksdb::Status Sync();

 private:
  class CurrentLog;
  class Reader;
  class Writer;
  class Files;

  const std::shared_ptr<CurrentLog> current_;
  const std::unique_ptr<rocksdb::Env> env_;
};

}  // namespace perceptrond
