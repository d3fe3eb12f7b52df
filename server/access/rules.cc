#include "server/access/rules.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "perceptron/access/v1/access.pb.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

namespace access_v1 = ::perceptron::access::v1;

constexpr size_t kMaxNameBytes = 63;

bool IsName(absl::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && !absl::StrContains(name, kTokenPrefix) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) ||
                  absl::string_view("_-.@/").find(static_cast<char>(c)) != absl::string_view::npos;
         });
}

// Messages repeat what is in the file, which may be a token in the wrong place.
std::string WithoutToken(std::string message) {
  if (!absl::StrContains(message, kTokenPrefix)) return message;
  return "it has a token; put token_sha256, the token's digest, there, and make a new token if "
         "others "
         "may read the file";
}

// Keeps the first error.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int column, const std::string& message) override {
    if (!text_.empty()) return;
    text_ = absl::StrCat("line ", line + 1, ", column ", column + 1, ": ", WithoutToken(message));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

absl::string_view RoleName(Role role) {
  static constexpr std::array<absl::string_view, 3> kNames = {"READ", "LEARN", "ADMIN"};
  return kNames[static_cast<size_t>(role)];
}

absl::string_view RightName(Right right) {
  static constexpr std::array<absl::string_view, 4> kNames = {"HEALTH", "REFLECTION", "METRICS",
                                                              "PAGE"};
  return kNames[static_cast<size_t>(right)];
}

bool Principal::Has(Role role, absl::string_view model) const {
  return std::any_of(grants.begin(), grants.end(), [&](const Grant& grant) {
    return grant.role >= role && absl::StartsWith(model, grant.prefix);
  });
}

bool Principal::HasSome(Role role) const {
  return std::any_of(grants.begin(), grants.end(),
                     [role](const Grant& grant) { return grant.role >= role; });
}

std::vector<std::string> Principal::ReadablePrefixes() const {
  std::set<std::string> all;
  for (const Grant& grant : grants) all.insert(grant.prefix);
  std::vector<std::string> outermost;
  for (const std::string& prefix : all) {
    if (outermost.empty() || !absl::StartsWith(prefix, outermost.back()))
      outermost.push_back(prefix);
  }
  return outermost;
}

class RulesParser {
 public:
  absl::StatusOr<std::shared_ptr<const AccessRules>> Parse(const std::string& text) {
    access_v1::AccessFile file;
    FirstError error;
    google::protobuf::TextFormat::Parser parser;
    parser.RecordErrorsTo(&error);
    if (!parser.ParseFromString(text, &file)) return absl::InvalidArgumentError(error.text());
    for (const access_v1::Principal& principal : file.principal()) {
      if (absl::Status status = Add(principal); !status.ok()) return status;
    }
    return std::move(rules_);
  }

 private:
  static absl::Status Bad(const std::string& principal, absl::string_view why) {
    std::string text =
        absl::StrCat("principal \"", absl::Utf8SafeCHexEscape(principal), "\": ", why);
    return absl::InvalidArgumentError(WithoutToken(std::move(text)));
  }

  absl::Status AddName(const std::string& name, size_t index) {
    if (!IsName(name) || name == "other")
      return Bad(
          name,
          "a name has 1 to 63 letters, digits, '_', '-', '.', '@' or '/', and is not \"other\"");
    if (!rules_->names_.emplace(name, index).second) return Bad(name, "occurs twice");
    return absl::OkStatus();
  }

  absl::Status Add(const access_v1::Principal& proto) {
    const size_t index = rules_->principals_.size();
    if (absl::Status status = AddName(proto.name(), index); !status.ok()) return status;
    for (const std::string& name : proto.former_name()) {
      if (absl::Status status = AddName(name, index); !status.ok()) return status;
    }
    Principal& principal = rules_->principals_.emplace_back();
    principal.name = proto.name();
    principal.anonymous = proto.anonymous();
    for (const access_v1::Grant& grant : proto.allow()) {
      if (grant.role() == access_v1::ROLE_UNSPECIFIED || !access_v1::Role_IsValid(grant.role()))
        return Bad(proto.name(), "allow needs a role: READ, LEARN or ADMIN");
      if (!grant.has_models())
        return Bad(proto.name(), "allow needs models, a prefix of their ids; \"\" is for all");
      principal.grants.push_back({static_cast<Role>(grant.role() - access_v1::READ),
                                  absl::StrCat(kModelCollection, grant.models())});
    }
    for (const int right : proto.right()) {
      if (right == access_v1::RIGHT_UNSPECIFIED || !access_v1::Right_IsValid(right))
        return Bad(proto.name(), "a right is HEALTH, REFLECTION, METRICS or PAGE");
      principal.rights[static_cast<size_t>(right - access_v1::HEALTH)] = true;
    }
    if (proto.has_max_examples_per_second())
      principal.max_examples_per_second = proto.max_examples_per_second();
    return AddCredentials(proto, index);
  }

  absl::Status AddCredentials(const access_v1::Principal& proto, size_t index) {
    for (const std::string& hex : proto.token_sha256()) {
      const std::optional<TokenDigest> digest = ParseDigest(hex);
      if (!digest.has_value())
        return Bad(proto.name(),
                   "token_sha256 is not 64 hexadecimal digits; perceptrond --new-token "
                   "FILE makes a token and its line");
      if (rules_->Find({digest, {}}) != nullptr)
        return Bad(proto.name(), "a token_sha256 occurs twice in the file");
      rules_->tokens_[AccessRules::BucketOf(*digest)].emplace_back(*digest, index);
    }
    for (const std::string& name : proto.certificate()) {
      const bool is_typed = absl::StartsWith(name, "dns:") || absl::StartsWith(name, "uri:") ||
                            absl::StartsWith(name, "cn:");
      if (!is_typed || name.back() == ':')
        return Bad(proto.name(), "certificate is dns:NAME, uri:URI or cn:NAME");
      if (!rules_->certificates_.emplace(name, index).second)
        return Bad(proto.name(), absl::StrCat("certificate ", name, " occurs twice in the file"));
    }
    if (proto.anonymous()) {
      if (proto.token_sha256_size() + proto.certificate_size() > 0)
        return Bad(proto.name(), "an anonymous principal has neither token nor certificate");
      if (rules_->anonymous_.has_value()) return Bad(proto.name(), "is the second anonymous one");
      rules_->anonymous_ = index;
    } else if (proto.token_sha256_size() + proto.certificate_size() == 0) {
      return Bad(proto.name(), "needs a token_sha256 or a certificate, or anonymous: true");
    }
    return absl::OkStatus();
  }

  std::shared_ptr<AccessRules> rules_{new AccessRules()};
};

absl::StatusOr<std::shared_ptr<const AccessRules>> AccessRules::Parse(const std::string& text) {
  return RulesParser().Parse(text);
}

const Principal* AccessRules::Find(const CallerCredentials& credentials) const {
  if (credentials.token.has_value()) {
    const auto bucket = tokens_.find(BucketOf(*credentials.token));
    const Principal* found = nullptr;
    if (bucket == tokens_.end()) return nullptr;
    for (const auto& [digest, index] : bucket->second) {
      if (SameDigest(digest, *credentials.token)) found = &principals_[index];
    }
    return found;
  }
  for (const std::string& name : credentials.certificate) {
    const auto found = certificates_.find(name);
    if (found != certificates_.end()) return &principals_[found->second];
  }
  return anonymous_.has_value() ? &principals_[*anonymous_] : nullptr;
}

const Principal* AccessRules::FindNamed(absl::string_view name) const {
  const auto found = names_.find(name);
  return found == names_.end() ? nullptr : &principals_[found->second];
}

}  // namespace perceptrond
