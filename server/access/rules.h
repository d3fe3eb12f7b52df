// What the access file says: principals, how they are recognized, and what they may do.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/access/token.h"

namespace perceptrond {

// What may be done with a model. Each includes those before it.
enum class Role : uint8_t { kRead, kLearn, kAdmin };
// What may be done besides.
enum class Right : uint8_t { kHealth, kReflection, kMetrics, kPage };

// As in the access file: "READ", "METRICS".
absl::string_view RoleName(Role role);
absl::string_view RightName(Right right);

// A user or a program. A plain value.
struct Principal {
  struct Grant {
    Role role;
    // Of full names: "models/spam-".
    std::string prefix;
  };

  bool Has(Right right) const { return rights[static_cast<size_t>(right)]; }
  // `model` is a full name. O(grants).
  bool Has(Role role, absl::string_view model) const;
  // Whether it has the role for some prefix.
  bool HasSome(Role role) const;
  // The prefixes of the models that it may read, in order, none of which is a prefix of another.
  std::vector<std::string> ReadablePrefixes() const;

  std::string name;
  bool anonymous = false;
  std::vector<Grant> grants;
  std::array<bool, 4> rights{};
  // Absent: the server's default.
  std::optional<uint64_t> max_examples_per_second;
};

// What a caller shows.
struct CallerCredentials {
  // Absent without a token.
  std::optional<TokenDigest> token;
  // Of the verified client certificate: "dns:NAME", "uri:URI", "cn:NAME".
  std::vector<std::string> certificate;
};

// The rules of one file, which do not change. Thread contract: safe for any number of threads.
class AccessRules {
 public:
  // INVALID_ARGUMENT, naming line or principal, for a text that is no access file.
  static absl::StatusOr<std::shared_ptr<const AccessRules>> Parse(const std::string& text);

  // Whose the credentials are: a token decides, else a certificate name, else the caller is
  // anonymous. Null for an unknown token, and for an anonymous caller if none is allowed. The time
  // does not tell how much of a token is right.
  const Principal* Find(const CallerCredentials& credentials) const;
  // The principal that has this name or had it; null if there is none.
  const Principal* FindNamed(absl::string_view name) const;
  const std::vector<Principal>& principals() const { return principals_; }

 private:
  AccessRules() = default;

  // The first bytes of a digest. Lookups that are timed tell nothing about a token: to choose
  // these bytes is to invert SHA-256.
  static uint64_t BucketOf(const TokenDigest& digest) {
    uint64_t bucket;
    std::memcpy(&bucket, digest.data(), sizeof bucket);
    return bucket;
  }

  std::vector<Principal> principals_;
  // Indices of principals_.
  absl::flat_hash_map<uint64_t, std::vector<std::pair<TokenDigest, size_t>>> tokens_;
  absl::flat_hash_map<std::string, size_t> certificates_;
  absl::flat_hash_map<std::string, size_t> names_;
  std::optional<size_t> anonymous_;

  friend class RulesParser;
};

}  // namespace perceptrond
