// InputThread: reads and parses an Input on a thread of its own, some rows ahead, so that parsing
// and sending each have a processor.
//
//   InputThread rows(input.get(), [&](const InputThread&) { stream->Flush().IgnoreError(); });
//   while (InputRow* row = rows.Next()) ...
//
// Rows and bad lines come in their order in the files. At most a thousand rows are read ahead, and
// of large rows a few.
//
// Threads: one at a time. While it exists, only those methods of the input may be called that any
// thread may call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "client/ctl/input.h"
#include "client/row.h"
#include "core/sync/mutex.h"

namespace perceptrond::client {

// What Input::Next() read. A plain value.
struct InputRow {
  Row row;
  uint64_t tag = 0;
  // The error of Input::Next(); the row is then unspecified.
  absl::Status status;
  // Input::label_status() and Input::lines_without_example() after the row was read.
  absl::Status label_status;
  uint64_t lines_without_example = 0;
};

class InputThread {
 public:
  using OnWait = std::function<void(const InputThread&)>;

  // Starts to read *input, which must outlive this. `on_wait` is called by Next() when all rows
  // were taken that were read before the input made the reader wait.
  InputThread(Input* input, OnWait on_wait);
  // Ends the thread; if it was not at the end of the input, by Input::Stop().
  ~InputThread();
  InputThread(const InputThread&) = delete;
  InputThread& operator=(const InputThread&) = delete;

  // Waits for the next row, which the caller may change; it is valid until the next call. Null at
  // the end of the input, after an interrupt, or after an error that is not INVALID_ARGUMENT.
  InputRow* Next() ABSL_LOCKS_EXCLUDED(mutex_);

  // Input::fraction() about where the last row is.
  std::optional<double> fraction() const { return fraction_; }

 private:
  // Rows that change hands together.
  struct Block {
    // Only the first `count` are in use; the others keep their memory.
    std::vector<InputRow> rows;
    size_t count = 0;
    // Features in them.
    size_t features = 0;
    std::optional<double> fraction;
    // The reader waits for more input after these rows.
    bool waits = false;
  };

  void Run() ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads a row into the reader's block; false at the end.
  bool ReadRow();
  // Hands the reader's block over and starts another one. False: the owner wants no more.
  bool HandOver(bool waits) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the next block from the reader. False: there is none.
  bool TakeBlock() ABSL_LOCKS_EXCLUDED(mutex_);

  Input* const input_;
  const OnWait on_wait_;
  // The reader's.
  Row row_;
  std::unique_ptr<Block> filling_ = std::make_unique<Block>();
  // The owner's.
  std::unique_ptr<Block> taken_;
  size_t next_ = 0;
  std::optional<double> fraction_;

  Mutex mutex_;
  std::deque<std::unique_ptr<Block>> full_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Block>> empty_ ABSL_GUARDED_BY(mutex_);
  // The reader has handed over its last block.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  // The owner wants no more.
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace perceptrond::client
