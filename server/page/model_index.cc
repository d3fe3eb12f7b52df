#include "server/page/model_index.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "core/error/error.h"
#include "core/report/format.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

constexpr char kNoExamples[] = "no examples";
constexpr char kNotInMemory[] = "not in memory";
constexpr char kUnreadable[] = "unreadable";
constexpr char kFrozen[] = "frozen";
// In the order in which they call for attention.
constexpr std::array<absl::string_view, 8> kStates = {"drifting",   "not separable", "refuted",
                                                      "learning",   "converged",     kNoExamples,
                                                      kNotInMemory, kUnreadable};

// Models read at a time: their summaries are larger than their rows.
constexpr size_t kChunk = 1000;

constexpr absl::Duration kMinAge = absl::Seconds(1);
// Rates are over at least this time, and not over times without a request.
constexpr absl::Duration kMinSample = absl::Milliseconds(1500);
constexpr absl::Duration kMaxSample = absl::Minutes(1);

std::string StateOf(const ModelSummary& summary) {
  if (summary.report.state() == v1::CONVERGENCE_STATE_LEARNING && summary.report.examples() == 0)
    return kNoExamples;
  const std::string name = StateName(summary.report.state());
  // Of a composition that is not in memory, or whose components are not.
  return name.empty() ? kNotInMemory : name;
}

ModelRow RowOf(const v1::Model& settings) {
  ModelRow row;
  row.name = settings.name();
  row.description = settings.description();
  row.state = kNotInMemory;
  row.frozen = settings.state() == v1::MODEL_STATE_FROZEN;
  return row;
}

ModelRow RowOf(const ModelSummary& summary) {
  ModelRow row = RowOf(summary.settings);
  row.state = StateOf(summary);
  row.in_memory = summary.in_memory;
  row.examples = summary.report.examples();
  row.updates = summary.report.updates();
  if (summary.report.has_progressive_error()) row.error = summary.report.progressive_error();
  if (summary.report.has_window_error()) row.window_error = summary.report.window_error();
  return row;
}

ModelRow UnreadableRow(std::string name) {
  ModelRow row;
  row.name = std::move(name);
  row.state = kUnreadable;
  return row;
}

bool Contains(const ModelRow& row, const std::string& sought) {
  const absl::string_view id = absl::StripPrefix(row.name, kModelCollection);
  return sought.empty() || absl::StrContains(absl::AsciiStrToLower(id), sought) ||
         absl::StrContains(absl::AsciiStrToLower(row.description), sought);
}

bool HasState(const ModelRow& row, const std::string& state) {
  if (state.empty()) return true;
  if (state == kFrozen) return row.frozen;
  if (state == kNotInMemory) return !row.in_memory && row.state != kUnreadable;
  return row.state == state;
}

bool Matches(const ModelRow& row, const ModelFilter& filter) {
  if (!HasState(row, filter.state)) return false;
  if (filter.min_error > 0 && row.window_error.value_or(-1) < filter.min_error) return false;
  if (filter.active && row.rate.value_or(0) <= 0) return false;
  return IsReadable(row.name, filter.readable);
}

using Key = std::optional<double> (*)(const ModelRow&);

std::optional<double> AttentionOf(const ModelRow& row) {
  return static_cast<double>(std::find(kStates.begin(), kStates.end(), row.state) -
                             kStates.begin());
}

struct Order {
  absl::string_view field;
  Key key;
};
constexpr Order kOrders[] = {
    {"name", [](const ModelRow&) -> std::optional<double> { return 0; }},
    {"state", AttentionOf},
    {"examples", [](const ModelRow& row) -> std::optional<double> { return row.examples; }},
    {"updates", [](const ModelRow& row) -> std::optional<double> { return row.updates; }},
    {"error", [](const ModelRow& row) { return row.error; }},
    {"window_error", [](const ModelRow& row) { return row.window_error; }},
    {"rate", [](const ModelRow& row) { return row.rate; }},
};

absl::Status CheckState(const std::string& state) {
  if (state.empty() || state == kFrozen ||
      std::find(kStates.begin(), kStates.end(), state) != kStates.end())
    return absl::OkStatus();
  return InvalidField("INVALID_FIELD", "state",
                      absl::StrCat("is none of ", absl::StrJoin(kStates, ", "), ", ", kFrozen));
}

// Sorts by one key, up or down.
struct Comparison {
  const Order* order = nullptr;
  bool descending = false;

  bool operator()(const ModelRow* a, const ModelRow* b) const {
    const std::optional<double> x = order->key(*a);
    const std::optional<double> y = order->key(*b);
    if (x.has_value() != y.has_value()) return x.has_value();
    if (x != y) return descending ? *x > *y : *x < *y;
    const bool by_name = order == &kOrders[0];
    return by_name && descending ? a->name > b->name : a->name < b->name;
  }
};

absl::StatusOr<Comparison> ReadOrder(absl::string_view text) {
  Comparison comparison;
  comparison.descending = absl::ConsumeSuffix(&text, " desc");
  if (text.empty()) text = kOrders[0].field;
  for (const Order& order : kOrders) {
    if (order.field == text) comparison.order = &order;
  }
  if (comparison.order != nullptr) return comparison;
  return InvalidField("INVALID_FIELD", "order_by",
                      absl::StrCat("is none of ",
                                   absl::StrJoin(kOrders, ", ",
                                                 [](std::string* out, const Order& order) {
                                                   absl::StrAppend(out, order.field);
                                                 }),
                                   ", with \" desc\" or without"));
}

}  // namespace

bool IsReadable(absl::string_view name, const ReadablePrefixes& readable) {
  return !readable.has_value() ||
         std::any_of(readable->begin(), readable->end(),
                     [&](const std::string& prefix) { return absl::StartsWith(name, prefix); });
}

absl::StatusOr<ModelIndex::Found> ModelIndex::Find(const ModelFilter& filter, size_t skip,
                                                   size_t limit) {
  const absl::StatusOr<Comparison> comparison = ReadOrder(filter.order_by);
  if (!comparison.ok()) return comparison.status();
  if (absl::Status status = CheckState(filter.state); !status.ok()) return status;
  const absl::StatusOr<std::shared_ptr<const Rows>> rows = Current();
  if (!rows.ok()) return rows.status();
  const std::string sought = absl::AsciiStrToLower(filter.search);
  std::vector<const ModelRow*> matching;
  for (const ModelRow& row : **rows) {
    if (Matches(row, filter) && Contains(row, sought)) matching.push_back(&row);
  }
  const size_t begin = std::min(skip, matching.size());
  const size_t end = begin + std::min(limit, matching.size() - begin);
  std::partial_sort(matching.begin(), matching.begin() + static_cast<ptrdiff_t>(end),
                    matching.end(), *comparison);
  Found found;
  found.matches = matching.size();
  for (size_t i = begin; i < end; ++i) found.rows.push_back(*matching[i]);
  return found;
}

absl::StatusOr<std::shared_ptr<const ModelIndex::Rows>> ModelIndex::Current() {
  const absl::StatusOr<uint64_t> models = store_.catalogue().Count();
  MutexLock lock(&mutex_);
  const absl::Time now = now_();
  if (rows_ == nullptr || IsOld(now, models.value_or(models_))) {
    if (absl::Status status = Read(now); !status.ok()) return status;
    models_ = models.value_or(models_);
  }
  return rows_;
}

bool ModelIndex::IsOld(absl::Time now, uint64_t models) const {
  const absl::Duration age = now - read_at_;
  // A clock that is set back makes it old, too.
  if (age < absl::ZeroDuration() || age >= std::max(kMinAge, 20 * read_took_)) return true;
  return models != models_ && age >= 10 * read_took_;
}

absl::Status ModelIndex::Read(absl::Time now) {
  auto rows = std::make_shared<Rows>();
  std::vector<uint64_t> ids;
  const auto add = [&](ModelRow row, uint64_t id) {
    rows->push_back(std::move(row));
    ids.push_back(id);
  };
  const auto wanted = [&](const v1::Model& settings) {
    if (store_.fleet() == nullptr || ModelHandle::FindInMemory(store_, settings.name()) != nullptr)
      return true;
    add(RowOf(settings), 0);
    return false;
  };
  std::string last;
  do {
    absl::StatusOr<Store::Found> found = store_.Search(last, kChunk, kChunk, wanted);
    if (!found.ok()) return found.status();
    for (const ModelSummary& summary : found->models) add(RowOf(summary), summary.id);
    for (std::string& name : found->unreachable) add(UnreadableRow(std::move(name)), 0);
    last = std::move(found->next);
  } while (!last.empty() && rows->size() < kMaxModels);
  Sample(now, ids, *rows);
  rows_ = std::move(rows);
  read_took_ = now_() - now;
  read_at_ = now;
  return absl::OkStatus();
}

void ModelIndex::Sample(absl::Time now, const std::vector<uint64_t>& ids, Rows& rows) {
  const absl::Duration passed = now - sampled_at_;
  const bool due = passed >= kMinSample || passed < absl::ZeroDuration();
  const bool comparable = passed >= kMinSample && passed <= kMaxSample;
  absl::flat_hash_map<uint64_t, Activity> sample;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].examples.has_value()) continue;
    const auto before = activity_.find(ids[i]);
    if (!due) {
      if (before != activity_.end()) rows[i].rate = before->second.rate;
      continue;
    }
    Activity& learned = sample[ids[i]];
    learned.examples = *rows[i].examples;
    // Another server of a fleet may know of fewer.
    if (comparable && before != activity_.end() && before->second.examples <= learned.examples) {
      learned.rate = static_cast<double>(learned.examples - before->second.examples) /
                     absl::ToDoubleSeconds(passed);
    }
    rows[i].rate = learned.rate;
  }
  if (!due) return;
  activity_ = std::move(sample);
  sampled_at_ = now;
}

}  // namespace perceptrond
