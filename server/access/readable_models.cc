#include "server/access/readable_models.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace perceptrond {
namespace {

namespace v1 = ::perceptron::v1;

// A text after all names before the prefix: names have no character like DEL.
std::string Before(std::string prefix) {
  if (prefix.empty()) return prefix;
  --prefix.back();
  return prefix + '\x7f';
}

std::string LastName(const Store::Found& found) {
  std::string last;
  if (!found.models.empty()) last = found.models.back().settings.name();
  if (!found.unreachable.empty()) last = std::max(last, found.unreachable.back());
  return last;
}

void DropLast(Store::Found& found) {
  const std::string last = LastName(found);
  if (!found.models.empty() && found.models.back().settings.name() == last) {
    found.models.pop_back();
  } else {
    found.unreachable.pop_back();
  }
}

}  // namespace

absl::StatusOr<Store::Found> SearchReadable(Store& store, const std::vector<std::string>& prefixes,
                                            const std::string& after, size_t limit,
                                            size_t most_read,
                                            const std::function<bool(const v1::Model&)>& wanted) {
  // One more than asked for tells whether there are more.
  const size_t sought = limit + 1;
  Store::Found all;
  for (const std::string& prefix : prefixes) {
    if (after > prefix && !absl::StartsWith(after, prefix)) continue;
    absl::StatusOr<Store::Found> found =
        store.Search(std::max(after, Before(prefix)), sought - all.size(),
                     std::max(most_read, sought), [&](const v1::Model& model) {
                       return absl::StartsWith(model.name(), prefix) && wanted(model);
                     });
    if (!found.ok()) return found.status();
    std::move(found->models.begin(), found->models.end(), std::back_inserter(all.models));
    std::move(found->unreachable.begin(), found->unreachable.end(),
              std::back_inserter(all.unreachable));
    if (all.size() == sought) break;
    if (!found->next.empty() && absl::StartsWith(found->next, prefix)) {
      all.next = std::move(found->next);
      return all;
    }
  }
  if (all.size() < sought) return all;
  DropLast(all);
  all.next = LastName(all);
  return all;
}

}  // namespace perceptrond
