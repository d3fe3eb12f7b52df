#include "client/ctl/commands/shuffled_rows.h"

#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/ctl/command.h"
#include "client/ctl/interrupt.h"

namespace perceptrond::client {
namespace {

// Approximate.
size_t MemoryOf(const Row& row) {
  // The buffer of the names may be twice as large.
  size_t names = 0;
  for (size_t i = 0; i < row.name_count(); ++i) names += 2 * row.name(i).size() + sizeof(size_t);
  return sizeof(InputRow) + sizeof(size_t) + (row.indices.size() + row.values.size()) * 4 +
         row.text.size() + row.label_name.size() + names;
}

// Below `limit`, each equally likely. (The standard library's distributions differ from one to
// another, its engines do not.)
uint64_t Below(uint64_t limit, std::mt19937_64& random) {
  const uint64_t rest = (UINT64_MAX % limit + 1) % limit;
  uint64_t number = random();
  while (number > UINT64_MAX - rest) number = random();
  return number % limit;
}

}  // namespace

Outcome ShuffledRows::Read(Input* input, RowErrors* row_errors) {
  InputThread reader(input, nullptr);
  while (const InputRow* row = reader.Next()) {
    if (!row->status.ok()) {
      if (Outcome outcome = row_errors->AddBadLine(row->status); !outcome.ok()) return outcome;
    } else if (!Add(*row)) {
      return UsageError(absl::StrCat("learn: --shuffle keeps the examples in memory, at most ",
                                     most_bytes_ >> 20,
                                     " MiB of them, and there are more: nothing was learned; "
                                     "shuffle the lines of the file once"));
    }
  }
  if (Interrupted()) return {kExitInterrupted, "learn: interrupted; nothing was learned"};
  return {};
}

bool ShuffledRows::Add(const InputRow& row) {
  bytes_ += MemoryOf(row.row);
  if (bytes_ > most_bytes_) return false;
  order_.push_back(rows_.size());
  rows_.push_back(row);
  return true;
}

void ShuffledRows::Shuffle(int64_t pass) {
  std::iota(order_.begin(), order_.end(), size_t{0});
  std::seed_seq seeds{static_cast<uint32_t>(seed_), static_cast<uint32_t>(seed_ >> 32),
                      static_cast<uint32_t>(pass),
                      static_cast<uint32_t>(static_cast<uint64_t>(pass) >> 32)};
  std::mt19937_64 random(seeds);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[Below(i, random)]);
}

}  // namespace perceptrond::client
