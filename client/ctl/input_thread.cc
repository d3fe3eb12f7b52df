#include "client/ctl/input_thread.h"

#include <utility>

#include "absl/status/statusor.h"

namespace perceptrond::client {
namespace {

// A block is handed over when it has this many rows or features.
constexpr size_t kRows = 48;
constexpr size_t kFeatures = 1 << 16;
// Most blocks that wait for the owner.
constexpr size_t kBlocks = 8;

}  // namespace

InputThread::InputThread(Input* input, OnWait on_wait)
    : input_(input), on_wait_(std::move(on_wait)) {
  input_->OnWait([this] { HandOver(true); });
  thread_ = std::thread([this] { Run(); });
}

InputThread::~InputThread() {
  bool ended = false;
  {
    MutexLock lock(&mutex_);
    stopped_ = true;
    ended = ended_;
  }
  // It may be waiting for input that never comes.
  if (!ended) input_->Stop();
  thread_.join();
  input_->OnWait(nullptr);
}

void InputThread::Run() {
  while (ReadRow()) {
    if (filling_->count < kRows && filling_->features < kFeatures) continue;
    if (!HandOver(false)) break;
  }
  HandOver(false);
  MutexLock lock(&mutex_);
  ended_ = true;
}

bool InputThread::ReadRow() {
  // Into a row of its own, because a wait for input hands the block over in between.
  const absl::StatusOr<bool> more = input_->Next(&row_);
  if (more.ok() && !*more) return false;
  Block& block = *filling_;
  if (block.count == block.rows.size()) block.rows.emplace_back();
  InputRow& read = block.rows[block.count++];
  std::swap(read.row, row_);
  read.status = more.status();
  const bool has_line = more.ok() || absl::IsInvalidArgument(more.status());
  if (has_line) {
    read.tag = input_->tag();
    read.label_status = input_->label_status();
    read.lines_without_example = input_->lines_without_example();
  }
  if (more.ok()) block.features += read.row.feature_count();
  return has_line;
}

bool InputThread::HandOver(bool waits) {
  filling_->waits = waits;
  filling_->fraction = input_->fraction();
  MutexLock lock(&mutex_);
  const auto has_room = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopped_ || full_.size() < kBlocks;
  };
  mutex_.Await(absl::Condition(&has_room));
  if (stopped_) return false;
  full_.push_back(std::move(filling_));
  if (empty_.empty()) {
    filling_ = std::make_unique<Block>();
  } else {
    filling_ = std::move(empty_.back());
    empty_.pop_back();
  }
  return true;
}

bool InputThread::TakeBlock() {
  if (taken_ != nullptr) {
    // Rows keep their memory, unless it is much.
    if (taken_->features > kFeatures) taken_->rows.clear();
    taken_->count = 0;
    taken_->features = 0;
  }
  MutexLock lock(&mutex_);
  if (taken_ != nullptr) empty_.push_back(std::move(taken_));
  const auto has_block = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return ended_ || !full_.empty();
  };
  mutex_.Await(absl::Condition(&has_block));
  if (full_.empty()) return false;
  taken_ = std::move(full_.front());
  full_.pop_front();
  next_ = 0;
  fraction_ = taken_->fraction;
  return true;
}

InputRow* InputThread::Next() {
  while (taken_ == nullptr || next_ == taken_->count) {
    if (taken_ != nullptr && taken_->waits && on_wait_) on_wait_(*this);
    if (!TakeBlock()) return nullptr;
  }
  return &taken_->rows[next_++];
}

}  // namespace perceptrond::client
