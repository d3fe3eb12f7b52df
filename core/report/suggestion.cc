#include "core/report/suggestion.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace perceptrond {
namespace {

// The optimal string alignment distance, in three rows of the usual table; more than `most` is
// returned as most + 1.
size_t EditDistance(absl::string_view a, absl::string_view b, size_t most) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) > most) return most + 1;
  std::vector<size_t> before_last(b.size() + 1);
  std::vector<size_t> last(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      row[j] =
          std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], most + 1);
}

}  // namespace

std::string SuggestWord(absl::string_view word, const std::vector<std::string>& candidates) {
  size_t most = std::max<size_t>(1, word.size() / 3);
  std::string nearest;
  for (const std::string& candidate : candidates) {
    const size_t distance = EditDistance(word, candidate, most);
    // A distance of all of its bytes has nothing of the word in it.
    if (distance > most || distance >= candidate.size()) continue;
    nearest = candidate;
    if (distance == 0) break;
    most = distance - 1;
  }
  return nearest;
}

}  // namespace perceptrond
