#include "server/sessions/model_transfer.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/error/error.h"
#include "core/error/stopped.h"
#include "core/store/model_history.h"
#include "core/sync/current_call.h"
#include "core/sync/mutex.h"
#include "perceptron/v1/history_service.pb.h"
#include "server/access/admission.h"
#include "server/rpc/call_memory.h"
#include "server/rpc/freed_memory.h"
#include "server/rpc/message.h"
#include "server/rpc/message_work.h"
#include "server/rpc/unary.h"
#include "server/sessions/convert.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// How fast the client of a transfer is: see Backend::transfer_time.
class TransferRate {
 public:
  explicit TransferRate(absl::Duration time) : time_(absl::ToChronoNanoseconds(time)) {}

  void Start() { start_ = SteadyClock::now(); }
  void Add(size_t bytes) { bytes_ += bytes; }
  size_t bytes() const { return bytes_; }
  bool IsTooSlow() const {
    const std::chrono::seconds more(bytes_ / InFlightMemory::kSlowestBytes);
    return SteadyClock::now() - start_ > time_ + more;
  }

 private:
  const std::chrono::nanoseconds time_;
  SteadyClock::time_point start_ = SteadyClock::now();
  size_t bytes_ = 0;
};

absl::Status SlowConsumer() {
  return MakeError(absl::StatusCode::kResourceExhausted, "SLOW_CONSUMER",
                   "the client receives less than 64 KiB a second, and the server is short of "
                   "memory: read the file faster, or raise the server's --memory-budget");
}

absl::Status PieceTooLarge(size_t bytes, size_t most) {
  return MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE",
                   absl::StrCat("the message has ", bytes, " bytes; the server accepts at most ",
                                most, ": send the file in smaller pieces"),
                   {{"max_message_bytes", absl::StrCat(most)}});
}

// What both directions do. One thread at a time works for the call; its first end counts.
class Transfer : public Reactor, public std::enable_shared_from_this<Transfer> {
 public:
  Transfer(Call& call, const Backend& backend)
      : call_(call), backend_(backend), rate_(backend.transfer_time) {}
  // What the kinds hold is freed before.
  ~Transfer() override {
    if (rate_.bytes() >= kLargeBytes) ReturnFreedMemory();
  }

  void Start() {
    call_.UseMemory(backend_.memory);
    // A call that might have gone to another server is timed since it came.
    if (call_.slow_calls().enabled() && !call_.timing().started())
      call_.timing().Start(Part::kReceive, EventTime());
    MutexLock lock(&mutex_);
    StartRead();
  }

  void OnRequestTimeout() override { Interrupt(RequestTimeout()); }
  void OnCancel() override { Interrupt(CancelledError()); }
  void OnDone() override { backend_.drain.Remove(drain_id_); }

 protected:
  // What is worth returning.
  static constexpr size_t kLargeBytes = 4 << 20;

  // A callback is being handled, and nothing is pending. False: the call has ended.
  bool Begin() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    reading_ = false;
    return !finished_;
  }
  void StartRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    reading_ = true;
    call_.StartReadRequest(&incoming_);
  }
  // Goes on with `start`, which starts an operation, unless the call was interrupted meanwhile.
  template <typename Start>
  void GoOn(const Start& start) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (interrupted_.ok()) return start();
    FinishLocked(interrupted_);
  }
  // No read may be pending but of a call that ends early, and no write.
  void End(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    FinishLocked(status);
  }
  void EndWith(const grpc::ByteBuffer& answer) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (std::exchange(finished_, true)) return;
    call_.FinishWith(answer);
  }
  // From now on the drain waits for the call.
  void Admit() {
    const auto on_drain = [weak = weak_from_this()] {
      if (const std::shared_ptr<Transfer> alive = weak.lock()) alive->OnDrain();
    };
    backend_.drain.Add(on_drain, drain_id_);
  }
  // The drain begins, or had begun before the call was admitted.
  virtual void OnDrain() {}
  // Ends a call that waits for its client to send; otherwise what is under way ends it.
  void Interrupt(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (interrupted_.ok()) interrupted_ = why;
    if (reading_) FinishLocked(why);
  }
  // Has a worker run `work`, a method of T, unless the call is over by then.
  template <typename T>
  void Schedule(WorkSize size, absl::Status (T::*work)(), bool first) {
    Workers::Work whole = [self = shared_from_this(), this, work] {
      const CancellationScope scope(&call_.cancellation());
      const CallScope call_scope(call_.caller());
      absl::Status status = StoppedError();
      if (status.ok()) status = WithinMemory([&] { return (static_cast<T*>(this)->*work)(); });
      if (!status.ok()) End(status);
    };
    // What was admitted once is not refused later: the client is held back.
    if (!first) return backend_.workers.Schedule(size, std::move(whole));
    if (!backend_.workers.TrySchedule(size, whole)) End(ServerBusy());
  }

  Call& call_;
  const Backend backend_;
  grpc::ByteBuffer incoming_;
  TransferRate rate_;

 private:
  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(finished_, true)) return;
    call_.Finish(ToGrpc(status));
  }

  uint64_t drain_id_ = 0;
  Mutex mutex_;
  bool reading_ ABSL_GUARDED_BY(mutex_) = false;
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status interrupted_ ABSL_GUARDED_BY(mutex_);

 protected:
  Mutex& mutex() ABSL_LOCK_RETURNED(mutex_) { return mutex_; }
};

// The file is made whole by one worker, and its pieces are freed as the client receives them.
class ExportTransfer final : public Transfer {
 public:
  using Transfer::Transfer;

  void OnReadDone(bool ok) override {
    if (!Begin()) return;
    if (!ok) return End(MissingRequest());
    Admit();
    if (absl::Status status = ParseSmallRequest(incoming_, request_); !status.ok())
      return End(status);
    call_.timing().SwitchAt(Part::kQueue, EventTime());
    Schedule(WorkSize::kLarge, &ExportTransfer::MakeFile, /*first=*/true);
  }
  void OnWriteDone(bool ok) override {
    rate_.Add(outgoing_.Length());
    call_.CountAnswers(unsent_);
    if (!ok) return End(CancelledError());
    if (backend_.memory.budget().IsShort() && rate_.IsTooSlow()) return End(SlowConsumer());
    SendNext();
  }

 private:
  absl::Status MakeFile() {
    call_.timing().Switch(Part::kWork);
    call_.timing().model = request_.name().substr(0, CallTiming::kMaxNameBytes);
    if (backend_.drain.draining()) return DrainingError();
    if (absl::Status status = CheckNoAlias(request_.name(), "name"); !status.ok()) return status;
    absl::StatusOr<ModelFilePieces> pieces = ModelHistory(backend_.store).Export(request_.name());
    if (!pieces.ok()) return pieces.status();
    pieces_ = *std::move(pieces);
    for (const std::string& piece : pieces_) unsent_ += piece.size();
    if (!call_.memory().TrySet(MemoryUse::kAnswers, unsent_))
      return MemoryExhausted("the file", unsent_, backend_.memory.budget());
    call_.timing().bytes = unsent_;
    call_.timing().Switch(Part::kWrite);
    rate_.Start();
    SendNext();
    return absl::OkStatus();
  }
  void SendNext() {
    if (pieces_.empty()) return End(absl::OkStatus());
    const CancellationScope scope(&call_.cancellation());
    if (absl::Status stopped = StoppedError(); !stopped.ok()) return End(stopped);
    v1::ExportModelResponse response;
    unsent_ -= pieces_.front().size();
    response.set_piece(std::move(pieces_.front()));
    pieces_.pop_front();
    if (absl::Status status = SerializeMessage(response, outgoing_); !status.ok())
      return End(status);
    GoOn([this] { call_.StartWrite(outgoing_); });
  }

  v1::ExportModelRequest request_;
  ModelFilePieces pieces_;
  // Bytes of pieces_.
  size_t unsent_ = 0;
  grpc::ByteBuffer outgoing_;
};

// Each piece is read by a worker before the next one is received.
class ImportTransfer final : public Transfer {
 public:
  ImportTransfer(Call& call, const Backend& backend)
      : Transfer(call, backend),
        file_(ModelHistory(backend.store).ReadFile([this](size_t bytes) { return Hold(bytes); })) {}

  void OnReadDone(bool ok) override {
    if (!Begin()) return;
    if (!ok) {
      if (first_) return End(MissingRequest());
      // What it was denied is for it no end of the file.
      if (absl::Status denied = Denied(); !denied.ok()) return End(denied);
      // Nor is it that it is gone: then this write fails.
      return call_.StartWrite({});
    }
    if (first_) Admit();
    const size_t bytes = incoming_.Length();
    if (bytes > backend_.max_message_bytes)
      return End(PieceTooLarge(bytes, backend_.max_message_bytes));
    rate_.Add(bytes);
    if (rate_.IsTooSlow()) return End(RequestTimeout());
    if (absl::Status status = Hold(file_.memory_bytes()); !status.ok()) return End(status);
    call_.timing().bytes += bytes;
    Schedule(WorkSize::kSmall, &ImportTransfer::TakePiece, std::exchange(first_, false));
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return End(CancelledError());
    Schedule(WorkSize::kLarge, &ImportTransfer::Create, /*first=*/false);
  }

 protected:
  // A file that has not arrived whole is sent again, to a server that goes on.
  void OnDrain() override { Interrupt(DrainingError()); }

 private:
  // Counts what is held of the file, with the piece that has arrived.
  absl::Status Hold(size_t file_bytes) {
    const size_t held = file_bytes + incoming_.Length();
    const MemoryBudget& budget = backend_.memory.budget();
    // While little is in flight the budget refuses nothing, however large.
    if (held <= budget.limit() && call_.memory().TrySet(MemoryUse::kRequests, held))
      return absl::OkStatus();
    return MemoryExhausted("the file", held, budget);
  }
  absl::Status Denied() const {
    return call_.access() == nullptr ? absl::OkStatus() : call_.access()->denied();
  }
  absl::Status TakePiece() {
    v1::ImportModelRequest request;
    const absl::StatusOr<MessageWork> work =
        MeasureWork(backend_.memory.budget(), incoming_, request);
    if (!work.ok()) return work.status();
    const WorkMemory::Lease lease(backend_.memory.work(), work->leased_bytes());
    if (absl::Status status = ParseMessage(incoming_, backend_.max_message_bytes, request);
        !status.ok())
      return status;
    if (absl::Status status = TakeNames(request); !status.ok()) return status;
    if (absl::Status status = file_.Add(request.piece()); !status.ok()) return status;
    if (!checked_ && file_.header() != nullptr) {
      checked_ = true;
      absl::Status status =
          ModelHistory(backend_.store).CheckImport(*file_.header(), new_name_, request_id_);
      if (!status.ok()) return status;
    }
    incoming_.Clear();
    GoOn([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex()) { StartRead(); });
    return absl::OkStatus();
  }
  absl::Status TakeNames(const v1::ImportModelRequest& request) {
    if (named_) {
      const bool same = request.new_name().empty() || request.new_name() == new_name_;
      if (!same)
        return InvalidField("INVALID_FIELD", "new_name", "is not that of the first message");
      return absl::OkStatus();
    }
    named_ = true;
    new_name_ = request.new_name();
    request_id_ = request.request_id();
    call_.timing().model = new_name_.substr(0, CallTiming::kMaxNameBytes);
    if (absl::Status status = CheckNoAlias(new_name_, "new_name"); !status.ok()) return status;
    return CheckId(request_id_, "request_id");
  }
  // The client has sent everything.
  absl::Status Create() {
    call_.timing().Switch(Part::kWork);
    // One at a time, until it is loaded: each step takes the memory of another such model.
    const WorkMemory::Lease lease(backend_.memory.work(), 2 * file_.memory_bytes());
    const bool is_large = file_.memory_bytes() >= kLargeBytes;
    if (is_large) ReturnFreedMemory();
    const absl::StatusOr<v1::Model> imported =
        ModelHistory(backend_.store).Import(std::move(file_), new_name_, request_id_);
    if (!imported.ok()) return imported.status();
    call_.memory().Set(MemoryUse::kRequests, 0);
    if (is_large) ReturnFreedMemory();
    // Loaded, so that the answer is what was stored.
    if (const auto model = backend_.store.Acquire(new_name_); !model.ok()) return model.status();
    const absl::StatusOr<ModelSummary> summary = backend_.store.Get(new_name_);
    if (!summary.ok()) return summary.status();
    grpc::ByteBuffer answer;
    if (absl::Status status = SerializeMessage(ToProto(*summary), answer); !status.ok())
      return status;
    EndWith(answer);
    return absl::OkStatus();
  }

  // The rest is used by one worker at a time.
  ModelFileReader file_;
  std::string new_name_;
  std::string request_id_;
  // No message has arrived; the first was read; the settings were checked.
  bool first_ = true;
  bool named_ = false;
  bool checked_ = false;
};

template <typename Kind>
void StartTransfer(Call& call, const Backend& backend) {
  const auto transfer = std::make_shared<Kind>(call, backend);
  call.Bind(transfer);
  transfer->Start();
}

}  // namespace

void StartExport(Call& call, const Backend& backend) {
  StartTransfer<ExportTransfer>(call, backend);
}

void StartImport(Call& call, const Backend& backend) {
  StartTransfer<ImportTransfer>(call, backend);
}

}  // namespace perceptrond
