#include "tests/bench/fleet/model.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>

#include "tests/bench/fleet/stream.h"
#include "tests/bench/fleet/writer.h"

namespace perceptrond::bench::fleet {
namespace {

// A replica's delay is at most this multiple of the median.
constexpr double kMostJitter = 8;

double Share(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

double Quantile(std::vector<double>& values, double q) {
  if (values.empty()) return 0;
  const auto at =
      values.begin() + static_cast<ptrdiff_t>(q * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

// See Closed::kWaitUnlessErring.
constexpr double kErring = 1.0 / 8;
constexpr double kErringWeight = 1.0 / 16;

class Fleet {
 public:
  explicit Fleet(const FleetOptions& options)
      : options_(options),
        source_(options.rows),
        random_(options.rows.seed + 1'000'003),
        stride_(source_.stride()),
        weights_(stride_),
        commits_(options.commit),
        streams_(options.replicas * options.streams_per_replica),
        copies_(options.replicas, 0) {}

  FleetFigures Run();

 private:
  void ScheduleNext(double now);
  void OnAnswered(double time, size_t stream);
  void OnEvaluated(double now, size_t stream);
  // Handles the next event of segments and streams, if it is not later than `until`.
  bool Step(double until);
  void OnArrival(double now, size_t stream, const Message& message);
  void EvaluateWaiting(double now, size_t stream);
  // A follower evaluates what it may and forwards the rest.
  void OnFollowerMessage(double now, size_t stream, bool evaluates, const Message& message);
  void Forward(double now, size_t called, size_t stream, Message message);
  void Serve(const Segment& segment);
  // The writer evaluates the rows at `now`. Returns the number of updates among the first `called`.
  size_t Evaluate(double now, const Message& message, size_t called);
  bool IsOpen(double now, size_t stream);
  bool Waits(size_t stream) const;
  double ReplicationDelay();
  uint64_t Copy(double now, size_t replica);
  void CountRow(bool updated);
  bool Proxied() const { return window_.Rate() > options_.proxy_above; }
  size_t ReplicaOf(size_t stream) const { return stream % options_.replicas; }

  const FleetOptions options_;
  RowSource source_;
  Random random_;
  const size_t stride_;
  WeightsHistory weights_;
  CommitLog commits_;
  std::vector<Stream> streams_;
  // The revision that each replica last had.
  std::vector<uint64_t> copies_;
  UpdateWindow window_;
  // In the order of being served, which is that of arrival.
  std::deque<Segment> segments_;
  std::priority_queue<Opening, std::vector<Opening>, std::greater<>> openings_;
  double writer_free_ = 0;
  FleetFigures figures_;
  std::vector<double> delays_;
  double answers_ = 0;
  uint64_t scheduled_ = 0;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
};

// The next message of the streams that send at a rate.
void Fleet::ScheduleNext(double now) {
  const double interval = static_cast<double>(options_.message_rows) / options_.rate;
  ++scheduled_;
  if (options_.regular) {
    arrivals_.push({static_cast<double>(scheduled_) * interval, scheduled_ % streams_.size()});
  } else {
    // As many independent Poisson processes as streams, merged.
    const size_t stream = random_.Bits() % streams_.size();
    arrivals_.push({now + interval * random_.Exponential(), stream});
  }
}

// A message is or will be answered at `time`.
void Fleet::OnAnswered(double time, size_t stream) {
  if (options_.window > 0) arrivals_.push({time + options_.client, stream});
}

// A message was evaluated by its replica, one after the other.
void Fleet::OnEvaluated(double now, size_t stream) {
  double& busy_until = streams_[stream].busy_until;
  busy_until =
      std::max(busy_until, now) + static_cast<double>(options_.message_rows) * options_.evaluation;
  OnAnswered(busy_until, stream);
}

void Fleet::CountRow(bool updated) {
  ++figures_.rows;
  window_.Add(updated);
}

size_t Fleet::Evaluate(double now, const Message& message, size_t called) {
  const uint64_t before = weights_.revision();
  size_t updates_of_called = 0;
  const size_t count = message.rows.size() / stride_;
  for (size_t i = 0; i < count; ++i) {
    const float* row = message.rows.data() + i * stride_;
    const bool updated = weights_.Learn(row);
    if (updated && i < called) ++updates_of_called;
    CountRow(updated);
  }
  const uint64_t updates = weights_.revision() - before;
  if (updates == 0) return 0;
  commits_.Append(now, weights_.revision());
  figures_.updates += updates;
  const double committed = commits_.EndOf(weights_.revision());
  const double visible = options_.replicas == 1 ? now : committed + options_.replication;
  delays_.insert(delays_.end(), updates, visible - message.arrived);
  return updates_of_called;
}

double Fleet::ReplicationDelay() {
  if (options_.jitter == 0) return options_.replication;
  return options_.replication * std::min(kMostJitter, std::exp(options_.jitter * random_.Normal()));
}

// The delay is drawn each time a replica needs its copy: it is that of the last commit it applied.
uint64_t Fleet::Copy(double now, size_t replica) {
  copies_[replica] = std::max(copies_[replica], commits_.CommittedAt(now - ReplicationDelay()));
  return copies_[replica];
}

bool Fleet::IsOpen(double now, size_t stream) {
  Stream& state = streams_[stream];
  if (!options_.strict || state.open) return true;
  if (state.unserved > 0 || copies_[ReplicaOf(stream)] < state.floor) return false;
  state.open = std::max(state.served, commits_.EndOf(state.floor)) + options_.forward <= now;
  return state.open;
}

bool Fleet::Waits(size_t stream) const {
  return options_.closed == Closed::kWait ||
         (options_.closed == Closed::kWaitUnlessErring && streams_[stream].erring < kErring);
}

// A message of one of the writer's own streams is evaluated at once.
void Fleet::OnArrival(double now, size_t stream, const Message& message) {
  if (ReplicaOf(stream) == 0) {
    const uint64_t before = weights_.revision();
    Evaluate(now, message, 0);
    const bool updated = weights_.revision() > before;
    OnEvaluated(updated ? commits_.EndOf(weights_.revision()) : now, stream);
    return;
  }
  figures_.follower_rows += message.rows.size() / stride_;
  streams_[stream].waiting.push_back(message);
  EvaluateWaiting(now, stream);
}

void Fleet::EvaluateWaiting(double now, size_t stream) {
  std::deque<Message>& waiting = streams_[stream].waiting;
  while (!waiting.empty()) {
    Copy(now, ReplicaOf(stream));
    const bool open = IsOpen(now, stream);
    if (!open && !Proxied() && Waits(stream)) return;
    const Message message = std::move(waiting.front());
    waiting.pop_front();
    OnFollowerMessage(now, stream, open && !Proxied(), message);
  }
}

void Fleet::OnFollowerMessage(double now, size_t stream, bool evaluates, const Message& message) {
  const uint64_t copy = copies_[ReplicaOf(stream)];
  Message forwarded{message.arrived, {}};
  size_t called = 0;
  for (size_t i = 0; i < message.rows.size(); i += stride_) {
    const float* row = message.rows.data() + i;
    const bool mistake = Score(weights_.At(copy), row, stride_) <= 0;
    if (mistake) ++figures_.copy_mistakes;
    const bool local = evaluates && (!options_.strict || called == 0);
    if (local && !mistake) {
      if (copy < weights_.revision() && Score(weights_.Newest(), row, stride_) <= 0)
        ++figures_.missed;
      weights_.CountRight();
      CountRow(false);
      answers_ += now - message.arrived;
      continue;
    }
    if (local) ++called;
    forwarded.rows.insert(forwarded.rows.end(), row, row + stride_);
  }
  if (forwarded.rows.empty()) {
    streams_[stream].erring -= kErringWeight * streams_[stream].erring;
    OnEvaluated(now, stream);
  } else {
    Forward(now, called, stream, std::move(forwarded));
  }
}

void Fleet::Forward(double now, size_t called, size_t stream, Message message) {
  const size_t count = message.rows.size() / stride_;
  figures_.forwarded += count;
  figures_.called += called;
  writer_free_ = std::max(writer_free_, now + options_.forward) +
                 static_cast<double>(count) * options_.service;
  streams_[stream].open = false;
  ++streams_[stream].unserved;
  segments_.push_back({writer_free_, stream, called, std::move(message)});
}

void Fleet::Serve(const Segment& segment) {
  const uint64_t before = weights_.revision();
  figures_.stale += segment.called - Evaluate(segment.served, segment.message, segment.called);
  Stream& stream = streams_[segment.stream];
  stream.erring += kErringWeight * ((weights_.revision() > before) - stream.erring);
  --stream.unserved;
  stream.floor = weights_.revision();
  stream.served = segment.served;
  const double committed = std::max(segment.served, commits_.EndOf(stream.floor));
  answers_ += (committed + options_.forward - segment.message.arrived) *
              static_cast<double>(segment.message.rows.size() / stride_);
  OnAnswered(committed + options_.forward, segment.stream);
  if (options_.closed == Closed::kForward) return;
  const double copied = commits_.EndOf(stream.floor) + ReplicationDelay();
  openings_.push({std::max(committed + options_.forward, copied), segment.stream, stream.floor});
}

bool Fleet::Step(double until) {
  const double served =
      segments_.empty() ? std::numeric_limits<double>::infinity() : segments_.front().served;
  if (!openings_.empty() && openings_.top().time <= std::min(until, served)) {
    const Opening opening = openings_.top();
    openings_.pop();
    uint64_t& copy = copies_[ReplicaOf(opening.stream)];
    copy = std::max(copy, opening.copy);
    EvaluateWaiting(opening.time, opening.stream);
    return true;
  }
  if (segments_.empty() || served > until) return false;
  const Segment segment = std::move(segments_.front());
  segments_.pop_front();
  Serve(segment);
  return true;
}

FleetFigures Fleet::Run() {
  constexpr double kEver = std::numeric_limits<double>::max();
  double now = 0;
  double started = 0;
  bool warm = options_.warm_up_rows == 0;
  Message message;
  if (options_.window == 0) ScheduleNext(0);
  for (size_t i = 0; i < options_.window * streams_.size(); ++i)
    arrivals_.push({options_.client * random_.Uniform(), i % streams_.size()});
  for (uint64_t drawn = 0; drawn < options_.total_rows; drawn += options_.message_rows) {
    while (Step(arrivals_.empty() ? kEver : arrivals_.top().time)) {
    }
    const Arrival arrival = arrivals_.top();
    arrivals_.pop();
    now = arrival.time;
    commits_.Advance(now);
    if (!warm && drawn >= options_.warm_up_rows) {
      warm = true;
      started = now;
      figures_ = {};
      figures_.commits = commits_.commits();
      delays_.clear();
      answers_ = 0;
    }
    message.arrived = now;
    source_.Draw(options_.message_rows, &message.rows);
    OnArrival(now, arrival.stream, message);
    if (options_.window == 0) ScheduleNext(now);
    weights_.DropBefore(commits_.CommittedAt(now - kMostJitter * options_.replication));
  }
  figures_.seconds = now - started;
  while (Step(kEver)) {
  }
  figures_.updates_ever = weights_.revision();
  figures_.commits = commits_.commits() - figures_.commits;
  figures_.median_delay = Quantile(delays_, 0.5);
  figures_.p99_delay = Quantile(delays_, 0.99);
  if (figures_.follower_rows > 0)
    figures_.mean_answer = answers_ / static_cast<double>(figures_.follower_rows);
  figures_.least_margin = source_.least_margin();
  figures_.largest_norm = source_.largest_norm();
  figures_.newest.assign(weights_.Newest(), weights_.Newest() + stride_);
  figures_.mean = weights_.Mean();
  return figures_;
}

}  // namespace

double FleetFigures::Forwarded() const { return Share(forwarded, follower_rows); }
double FleetFigures::ErrorRate() const { return Share(updates, rows); }
double FleetFigures::CopyErrorRate() const { return Share(copy_mistakes, follower_rows); }
double FleetFigures::StaleAnUpdate() const { return Share(stale, called - stale); }

FleetFigures SimulateFleet(const FleetOptions& options) { return Fleet(options).Run(); }

}  // namespace perceptrond::bench::fleet
