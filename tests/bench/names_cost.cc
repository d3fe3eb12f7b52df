// What the names of a named space cost, beside the map that one would write: bytes a name, and
// nanoseconds a lookup, of names that are known and in random order.
//   names_cost [NAMES]
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "core/features/name_table.h"
#include "core/features/names.h"

namespace perceptrond::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Lookups at a time: the names of one message.
constexpr size_t kTogether = 4000;
constexpr size_t kRounds = 500;

size_t Allocated() { return mallinfo2().uordblks + mallinfo2().hblkhd; }

double Nanoseconds(Clock::time_point start, size_t count) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() /
         static_cast<double>(count);
}

// Keeps the compiler from leaving out what computes it.
void Keep(uint64_t value) { asm volatile("" : : "r"(value) : "memory"); }

// The names of each round, one after the other as a message has them.
struct Round {
  std::string text;
  std::vector<uint32_t> lengths;
};

std::vector<Round> Draw(const std::vector<std::string>& names) {
  std::mt19937 random(1);
  std::vector<Round> rounds(kRounds);
  for (Round& round : rounds) {
    for (size_t i = 0; i < kTogether; ++i) {
      const std::string& name = names[random() % names.size()];
      round.text += name;
      round.lengths.push_back(static_cast<uint32_t>(name.size()));
    }
  }
  return rounds;
}

template <typename LookUp>
double TimeRounds(const std::vector<Round>& rounds, const LookUp& look_up) {
  const Clock::time_point start = Clock::now();
  for (const Round& round : rounds) look_up(round);
  return Nanoseconds(start, rounds.size() * kTogether);
}

void Run(size_t count) {
  std::vector<std::string> names;
  for (size_t i = 0; i < count; ++i) names.push_back(absl::StrCat("country=", i, "/app:mail"));
  const std::vector<Round> rounds = Draw(names);
  size_t before = Allocated();
  absl::flat_hash_map<std::string, uint32_t> map;
  for (const std::string& name : names) map.emplace(name, static_cast<uint32_t>(map.size()));
  const double map_bytes = static_cast<double>(Allocated() - before) / static_cast<double>(count);
  before = Allocated();
  Dictionary dictionary;
  for (const std::string& name : names) dictionary.Add(name);
  const double bytes = static_cast<double>(Allocated() - before) / static_cast<double>(count);
  const auto each = [](const Round& round, const auto& look_up) {
    const char* next = round.text.data();
    uint64_t sum = 0;
    for (const uint32_t length : round.lengths) {
      sum += look_up(absl::string_view(next, length));
      next += length;
    }
    Keep(sum);
  };
  const double map_time = TimeRounds(rounds, [&](const Round& round) {
    each(round, [&](absl::string_view name) { return map.find(name)->second; });
  });
  const double time = TimeRounds(rounds, [&](const Round& round) {
    each(round, [&](absl::string_view name) { return dictionary.Find(name); });
  });
  NameTable table;
  const double together = TimeRounds(rounds, [&](const Round& round) {
    table.Clear();
    if (table.Append(round.text, round.lengths)) std::abort();
    Keep(table.BindTo(dictionary) ? 1 : 0);
  });
  std::printf("%zu names of %.1f bytes\n", count,
              static_cast<double>(rounds[0].text.size()) / kTogether);
  std::printf("%-28s %12s %14s\n", "", "bytes a name", "ns a lookup");
  std::printf("%-28s %12.1f %14.1f\n", "flat_hash_map<string, u32>", map_bytes, map_time);
  std::printf("%-28s %12.1f %14.1f\n", "Dictionary, one by one", bytes, time);
  std::printf("%-28s %12s %14.1f\n", "Dictionary, by message", "", together);
}

}  // namespace
}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  perceptrond::bench::Run(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1'000'000);
}
