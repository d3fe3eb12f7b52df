#include "core/store/waiting_predictions.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/features/names.h"
#include "core/sync/thread_name.h"

namespace perceptrond {
namespace {

// What a prediction takes besides its features, approximately.
constexpr size_t kPredictionOverhead = 200;
constexpr absl::Duration kSweepInterval = absl::Seconds(1);
// The part of the memory budget that predictions may take.
constexpr size_t kBudgetParts = 4;

size_t BytesOf(const std::string& example) { return example.size() + kPredictionOverhead; }

absl::Time TimeOf(uint64_t number) { return absl::FromUnixMicros(static_cast<int64_t>(number)); }

}  // namespace

std::string PredictionId::ToString() const {
  return absl::StrCat(absl::Hex(server), ".", absl::Hex(model_id), ".", absl::Hex(number), ".",
                      absl::Hex(nonce));
}

bool PredictionId::Parse(absl::string_view text) {
  constexpr size_t kMostBytes = 64;
  if (text.size() > kMostBytes) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '.');
  return parts.size() == 4 && absl::SimpleHexAtoi(parts[0], &server) &&
         absl::SimpleHexAtoi(parts[1], &model_id) && absl::SimpleHexAtoi(parts[2], &number) &&
         absl::SimpleHexAtoi(parts[3], &nonce);
}

uint32_t ServerTag(absl::string_view address) {
  return address.empty() ? 0 : std::max(static_cast<uint32_t>(HashName(address)), 1U);
}

WaitingPredictions::WaitingPredictions(KeptPredictions& journal, MemoryBudget& budget,
                                       absl::string_view address, Clock clock)
    : journal_(journal),
      budget_(budget),
      server_(ServerTag(address)),
      clock_(std::move(clock)),
      max_bytes_(budget.limit() / kBudgetParts) {}

WaitingPredictions::~WaitingPredictions() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status WaitingPredictions::Open(uint64_t model_id,
                                      const StoredPredictionsSettings& settings) {
  {
    MutexLock lock(&mutex_);
    if (tables_.contains(model_id)) return absl::OkStatus();
  }
  std::vector<KeptPrediction> kept;
  if (settings.durable) {
    absl::StatusOr<std::vector<KeptPrediction>> loaded = journal_.LoadPredictions(model_id);
    if (!loaded.ok()) return loaded.status();
    kept = *std::move(loaded);
  }
  Dropped dropped;
  {
    MutexLock lock(&mutex_);
    const auto [table, is_new] = tables_.try_emplace(model_id);
    if (!is_new) return absl::OkStatus();
    table->second.settings = settings;
    for (KeptPrediction& one : kept)
      Insert(table->second, one.number, {one.nonce, std::move(one.example)});
    Trim(model_id, table->second, clock_(), dropped);
    TrimAll(dropped);
    if (!thread_.joinable()) thread_ = std::thread([this] { RemoveExpired(); });
  }
  DropFromJournal(dropped);
  return absl::OkStatus();
}

void WaitingPredictions::Remove(uint64_t model_id) {
  MutexLock lock(&mutex_);
  const auto table = tables_.find(model_id);
  if (table == tables_.end()) return;
  budget_.ChangeModels(table->second.bytes, 0);
  stats_.bytes -= table->second.bytes;
  stats_.waiting -= table->second.waiting.size();
  tables_.erase(table);
}

absl::StatusOr<std::vector<std::string>> WaitingPredictions::Add(
    uint64_t model_id, std::vector<std::string> examples) {
  thread_local absl::BitGen random;
  std::vector<KeptPrediction> added;
  std::vector<std::string> ids(examples.size());
  bool durable = false;
  {
    MutexLock lock(&mutex_);
    const auto table = tables_.find(model_id);
    // It was deleted a moment ago.
    if (table == tables_.end()) return ids;
    durable = table->second.settings.durable;
    const size_t most = std::min<uint64_t>(table->second.settings.max_bytes, max_bytes_);
    const auto now = static_cast<uint64_t>(absl::ToUnixMicros(clock_()));
    for (size_t i = 0; i < examples.size(); ++i) {
      if (examples[i].empty() || BytesOf(examples[i]) > most) continue;
      uint64_t& last = table->second.last_number;
      last = std::max(last + 1, now);
      const uint64_t nonce = random();
      ids[i] = PredictionId{server_, model_id, last, nonce}.ToString();
      added.push_back({last, nonce, std::move(examples[i])});
    }
  }
  if (durable) {
    if (absl::Status status = journal_.SavePredictions(model_id, added); !status.ok())
      return status;
  }
  Dropped dropped;
  {
    MutexLock lock(&mutex_);
    const auto table = tables_.find(model_id);
    if (table == tables_.end()) return ids;
    for (KeptPrediction& one : added)
      Insert(table->second, one.number, {one.nonce, std::move(one.example)});
    Trim(model_id, table->second, clock_(), dropped);
    TrimAll(dropped);
  }
  DropFromJournal(dropped);
  if (budget_.reserved(MemoryUse::kModels) > budget_.model_room()) budget_.EvictModels();
  return ids;
}

std::vector<WaitingPredictions::Found> WaitingPredictions::Claim(
    uint64_t model_id, std::span<const absl::string_view> ids) {
  std::vector<Found> found(ids.size());
  // The rows whose predictions other servers keep.
  absl::btree_map<uint32_t, std::vector<size_t>> elsewhere;
  {
    MutexLock lock(&mutex_);
    for (size_t i = 0; i < ids.size(); ++i) {
      PredictionId id;
      if (!id.Parse(ids[i]) || id.model_id != model_id) continue;
      if (id.server == server_) {
        found[i] = ClaimHere(model_id, id);
      } else if (elsewhere_ != nullptr) {
        elsewhere[id.server].push_back(i);
      }
    }
  }
  for (const auto& [server, rows] : elsewhere) {
    Exchange exchange;
    for (const size_t row : rows) exchange.claimed.emplace_back(ids[row]);
    struct Answer {
      absl::Notification done;
      std::vector<Found> found;
    };
    const auto answer = std::make_shared<Answer>();
    elsewhere_(server, model_id, exchange, [answer](std::vector<Found> theirs) {
      answer->found = std::move(theirs);
      answer->done.Notify();
    });
    answer->done.WaitForNotification();
    for (size_t i = 0; i < std::min(rows.size(), answer->found.size()); ++i) {
      // It waits there no more.
      if (answer->found[i].code != ValidationCode::kNone && IsTooOld(model_id, ids[rows[i]]))
        answer->found[i] = {ValidationCode::kPredictionExpired, ""};
      found[rows[i]] = std::move(answer->found[i]);
    }
  }
  return found;
}

bool WaitingPredictions::IsTooOld(uint64_t model_id, absl::string_view text) const {
  PredictionId id;
  MutexLock lock(&mutex_);
  const auto table = tables_.find(model_id);
  return table != tables_.end() && id.Parse(text) &&
         TimeOf(id.number) + table->second.settings.max_age <= clock_();
}

WaitingPredictions::Found WaitingPredictions::ClaimHere(uint64_t model_id, const PredictionId& id) {
  const auto table = tables_.find(model_id);
  if (table == tables_.end()) return {};
  const absl::Time now = clock_();
  const bool too_old = TimeOf(id.number) + table->second.settings.max_age <= now;
  const auto it = table->second.waiting.find(id.number);
  if (it == table->second.waiting.end() || it->second.nonce != id.nonce || too_old) {
    const bool expired = too_old || id.number <= table->second.removed_through;
    return {expired ? ValidationCode::kPredictionExpired : ValidationCode::kUnknownPrediction, ""};
  }
  if (it->second.claimed) return {};
  it->second.claimed = true;
  return {ValidationCode::kNone, it->second.example,
          table->second.settings.durable ? id.number : 0};
}

void WaitingPredictions::Settle(uint64_t model_id, std::span<const std::string> joined,
                                std::span<const std::string> released) {
  if (joined.empty() && released.empty()) return;
  absl::btree_map<uint32_t, Exchange> elsewhere;
  const auto divide = [&](std::span<const std::string> ids, bool are_joined) {
    for (const std::string& text : ids) {
      PredictionId id;
      if (!id.Parse(text) || id.server == server_) continue;
      Exchange& exchange = elsewhere[id.server];
      (are_joined ? exchange.joined : exchange.released).push_back(text);
    }
  };
  divide(joined, true);
  divide(released, false);
  {
    MutexLock lock(&mutex_);
    SettleHere(model_id, joined, /*joined=*/true);
    SettleHere(model_id, released, /*joined=*/false);
  }
  if (elsewhere_ == nullptr) return;
  // Without an answer: predictions that stay claimed there expire, and are not learned.
  for (const auto& [server, exchange] : elsewhere)
    elsewhere_(server, model_id, exchange, [](const std::vector<Found>&) {});
}

void WaitingPredictions::SettleHere(uint64_t model_id, std::span<const std::string> ids,
                                    bool joined) {
  const auto table = tables_.find(model_id);
  if (table == tables_.end()) return;
  const absl::Time now = clock_();
  for (const std::string& text : ids) {
    PredictionId id;
    if (!id.Parse(text) || id.server != server_) continue;
    const auto it = table->second.waiting.find(id.number);
    const bool waits = it != table->second.waiting.end() && it->second.nonce == id.nonce;
    if (waits && !joined) it->second.claimed = false;
    if (!joined) continue;
    const double delay = absl::ToDoubleSeconds(now - TimeOf(id.number));
    const auto bucket = std::lower_bound(kDelayBounds.begin(), kDelayBounds.end(), delay);
    ++stats_.delays[static_cast<size_t>(bucket - kDelayBounds.begin())];
    stats_.delay_sum += std::max(delay, 0.0);
    ++stats_.joined;
    // It may have expired while it was learned.
    if (waits) Erase(table->second, it);
  }
}

void WaitingPredictions::Insert(Table& table, uint64_t number, Waiting waiting) {
  const size_t bytes = BytesOf(waiting.example);
  table.last_number = std::max(table.last_number, number);
  table.waiting.emplace(number, std::move(waiting));
  table.bytes += bytes;
  stats_.bytes += bytes;
  ++stats_.waiting;
  budget_.ChangeModels(0, bytes);
}

void WaitingPredictions::Erase(Table& table, absl::btree_map<uint64_t, Waiting>::iterator it) {
  const size_t bytes = BytesOf(it->second.example);
  table.bytes -= bytes;
  stats_.bytes -= bytes;
  --stats_.waiting;
  budget_.ChangeModels(bytes, 0);
  table.waiting.erase(it);
}

void WaitingPredictions::RemoveOldest(uint64_t model_id, Table& table, Dropped& dropped) {
  const auto oldest = table.waiting.begin();
  table.removed_through = oldest->first;
  if (table.settings.durable) dropped.emplace_back(model_id, oldest->first);
  ++stats_.expired;
  Erase(table, oldest);
}

void WaitingPredictions::Trim(uint64_t model_id, Table& table, absl::Time now, Dropped& dropped) {
  while (!table.waiting.empty() &&
         (table.bytes > table.settings.max_bytes ||
          TimeOf(table.waiting.begin()->first) + table.settings.max_age <= now))
    RemoveOldest(model_id, table, dropped);
}

void WaitingPredictions::TrimAll(Dropped& dropped) {
  while (stats_.bytes > max_bytes_) {
    const auto largest = std::max_element(
        tables_.begin(), tables_.end(),
        [](const auto& a, const auto& b) { return a.second.bytes < b.second.bytes; });
    RemoveOldest(largest->first, largest->second, dropped);
  }
}

void WaitingPredictions::DropFromJournal(const Dropped& dropped) {
  std::vector<uint64_t> numbers;
  for (size_t i = 0; i < dropped.size(); ++i) {
    numbers.push_back(dropped[i].second);
    if (i + 1 < dropped.size() && dropped[i + 1].first == dropped[i].first) continue;
    // One that stays is removed when it is loaded, or found again: a full disk refuses this.
    (void)journal_.DropPredictions(dropped[i].first, numbers);
    numbers.clear();
  }
}

void WaitingPredictions::RemoveExpired() {
  NameThisThread("predictions");
  while (true) {
    Dropped dropped;
    {
      MutexLock lock(&mutex_);
      if (mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kSweepInterval)) return;
      for (auto& [model_id, table] : tables_) Trim(model_id, table, clock_(), dropped);
    }
    DropFromJournal(dropped);
  }
}

WaitingPredictions::Stats WaitingPredictions::stats() const {
  MutexLock lock(&mutex_);
  return stats_;
}

std::vector<WaitingPredictions::Found> ClaimedPredictions::Claim(
    std::span<const absl::string_view> ids, size_t first, std::span<const size_t> rows) {
  first = std::min(first, ids.size());
  std::vector<WaitingPredictions::Found> found(first);
  for (WaitingPredictions::Found& one : all_.Claim(model_id_, ids.subspan(first))) {
    if (one.code == ValidationCode::kNone || one.unanswered) {
      rows_.push_back(rows[found.size()]);
      ids_.emplace_back(ids[found.size()]);
      if (one.number != 0) kept_.push_back({rows_.back(), one.number});
    }
    found.push_back(std::move(one));
  }
  return found;
}

void ClaimedPredictions::Keep(size_t first, size_t end, std::span<const RowError> refused) {
  std::vector<std::string> released;
  size_t kept = 0;
  size_t error = 0;
  for (size_t i = 0; i < ids_.size(); ++i) {
    while (error < refused.size() && refused[error].row < rows_[i]) ++error;
    const bool is_refused = error < refused.size() && refused[error].row == rows_[i];
    if (rows_[i] >= first && rows_[i] < end && !is_refused) {
      rows_[kept] = rows_[i];
      std::swap(ids_[kept++], ids_[i]);
    } else {
      released.push_back(std::move(ids_[i]));
    }
  }
  ids_.resize(kept);
  rows_.resize(kept);
  all_.Settle(model_id_, {}, released);
}

}  // namespace perceptrond
