// Access files: which are accepted, and which principal a caller is; and what principals use: rates of examples, and figures whose
// number is bounded.
#include "server/access/rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/access/access_control.h"
#include "server/access/principal_usage.h"
#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Digest(const std::string& token) { return FormatDigest(DigestToken(token)); }

CallerCredentials WithToken(const std::string& token) { return {DigestToken(token), {}}; }

std::shared_ptr<const AccessRules> Parse(const std::string& text) {
  const auto rules = AccessRules::Parse(text);
  EXPECT_TRUE(rules.ok()) << rules.status();
  return rules.ok() ? *rules : nullptr;
}

std::string NameOf(const Principal* principal) {
  return principal == nullptr ? "nobody" : principal->name;
}

TEST(AccessRules, ATokenDecidesWhoCallsAndElseTheCertificate) {
  const auto rules = Parse(absl::StrCat(
      "principal { name: 'a' token_sha256: '", Digest("one"), "' token_sha256: '", Digest("two"),
      "' }  # both while they change\n"
      "principal { name: 'b' certificate: 'dns:b.example' certificate: 'cn:b' }\n",
      "principal { name: 'c' certificate: 'uri:spiffe://c' }"));
  EXPECT_EQ(NameOf(rules->Find(WithToken("one"))), "a");
  EXPECT_EQ(NameOf(rules->Find(WithToken("two"))), "a");
  EXPECT_EQ(NameOf(rules->Find(WithToken("three"))), "nobody");
  EXPECT_EQ(NameOf(rules->Find({{}, {"dns:b.example"}})), "b");
  EXPECT_EQ(NameOf(rules->Find({{}, {"dns:other", "uri:spiffe://c"}})), "c");
  // A common name is no alternative name.
  EXPECT_EQ(NameOf(rules->Find({{}, {"cn:b.example", "dns:b"}})), "nobody");
  EXPECT_EQ(NameOf(rules->Find({DigestToken("three"), {"dns:b.example"}})), "nobody");
  EXPECT_EQ(NameOf(rules->Find({})), "nobody");
}

TEST(AccessRules, AnUnknownTokenIsNotAnonymous) {
  const auto rules = Parse("principal { name: 'all' anonymous: true right: HEALTH }");
  EXPECT_EQ(NameOf(rules->Find({})), "all");
  EXPECT_EQ(NameOf(rules->Find(WithToken("x"))), "nobody");
  EXPECT_TRUE(rules->Find({})->Has(Right::kHealth));
  EXPECT_FALSE(rules->Find({})->Has(Right::kMetrics));
  EXPECT_FALSE(rules->Find({})->HasSome(Role::kRead));
}

TEST(AccessRules, ARoleIncludesThoseBeforeItForModelsOfItsPrefix) {
  const auto rules =
      Parse(absl::StrCat("principal { name: 'a' token_sha256: '", Digest("t"),
                         "' allow { role: LEARN models: 'spam' } allow { role: READ models: 'x' } "
                         "allow { role: READ models: 'spam-' } }"));
  const Principal& a = *rules->Find(WithToken("t"));
  EXPECT_TRUE(a.Has(Role::kRead, "models/spam"));
  EXPECT_TRUE(a.Has(Role::kLearn, "models/spam-de"));
  EXPECT_FALSE(a.Has(Role::kAdmin, "models/spam"));
  EXPECT_FALSE(a.Has(Role::kLearn, "models/x"));
  EXPECT_FALSE(a.Has(Role::kRead, "models/spa"));
  EXPECT_FALSE(a.Has(Role::kRead, "spam"));
  EXPECT_THAT(a.ReadablePrefixes(), ElementsAre("models/spam", "models/x"));
}

TEST(AccessRules, AFormerNameLeadsToThePrincipalThatHasItsIds) {
  const auto rules = Parse(
      absl::StrCat("principal { name: 'a' former_name: 'old' former_name: 'gone' token_sha256: '",
                   Digest("one"), "' } principal { name: 'b' certificate: 'cn:b' }"));
  for (const char* name : {"a", "old", "gone"}) EXPECT_EQ(NameOf(rules->FindNamed(name)), "a");
  EXPECT_EQ(NameOf(rules->FindNamed("b")), "b");
  EXPECT_EQ(NameOf(rules->FindNamed("c")), "nobody");
}

TEST(AccessRules, WhatIsNoAccessFileIsRefused) {
  const std::string token = absl::StrCat(" token_sha256: '", Digest("t"), "' ");
  for (const std::string& text :
       {std::string("principal { nane: 'a' }"), "principal { name: 'a b'" + token + "}",
        std::string("principal { name: 'a' }"),
        std::string("principal { name: 'a' token_sha256: 'x' }"),
        std::string("principal { name: 'a' certificate: 'b' }"),
        "principal { name: 'a'" + token + "allow { role: READ } }",
        "principal { name: 'a'" + token + "allow { models: '' } }",
        // Twice: a token, a name, and those who are nobody.
        "principal { name: 'a'" + token + "} principal { name: 'b'" + token + "}",
        "principal { name: 'a'" + token + "} principal { name: 'a' certificate: 'cn:a' }",
        "principal { name: 'a' former_name: 'a'" + token + "}",
        "principal { name: 'a'" + token +
            "} principal { name: 'b' former_name: 'a' anonymous: true }",
        "principal { name: 'a' former_name: 'a b'" + token + "}",
        std::string(
            "principal { name: 'a' anonymous: true } principal { name: 'b' anonymous: true }"),
        "principal { name: 'a' anonymous: true" + token + "}"}) {
    EXPECT_EQ(AccessRules::Parse(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
  EXPECT_THAT(std::string(AccessRules::Parse("\nprincipal { nane: 'a' }").status().message()),
              HasSubstr("line 2, column"));
}

TEST(AccessRules, ATokenInTheWrongLineIsNotRepeated) {
  const std::string secret = MakeToken();
  for (const std::string& text :
       {"principal { name: 'a' token_sha256: " + secret + " }", "principal { " + secret + ": 1 }",
        "principal { name: 'a' token_sha256: '" + secret + "' }", secret,
        "principal { name: '" + secret + "' anonymous: true }",
        "principal { name: 'a' certificate: '" + secret + "' }"}) {
    const auto rules = AccessRules::Parse(text);
    ASSERT_FALSE(rules.ok());
    EXPECT_THAT(std::string(rules.status().message()), Not(HasSubstr(secret.substr(4, 10))))
        << text;
  }
}

class AccessControlTest : public ::testing::Test {
 protected:
  void Write(const std::string& text) { std::ofstream(path_, std::ios::trunc) << text; }
  absl::Status Load() { return AccessControl::Load(path_).status(); }

  const testing::TempDir dir_;
  const std::string path_ = dir_.path() + "/access";
  const std::string good_ = "principal { name: 'a' anonymous: true }";
};

TEST_F(AccessControlTest, AFileThatOthersMayWriteIsRefused) {
  Write(good_);
  for (const char* mode : {"0620", "0602", "0666"}) {
    chmod(path_.c_str(), std::stoi(mode, nullptr, 8));
    EXPECT_EQ(Load().code(), absl::StatusCode::kFailedPrecondition) << mode;
  }
  chmod(path_.c_str(), 0640);
  EXPECT_TRUE(Load().ok());
}

TEST_F(AccessControlTest, WhatIsNoRegularFileIsRefusedWithoutWaiting) {
  EXPECT_EQ(Load().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(Load().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(AccessControl::Load("/dev/zero").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(AccessControlTest, ABrokenFileLeavesTheRulesInUse) {
  Write(good_);
  auto access = *AccessControl::Load(path_);
  EXPECT_FALSE(access->FileChanged());
  EXPECT_EQ(*access->Reload(), false);
  Write("principal {");
  EXPECT_TRUE(access->FileChanged());
  EXPECT_FALSE(access->Reload().ok());
  EXPECT_EQ(access->rules()->principals().size(), 1);
  EXPECT_EQ(access->version(), 1);
  Write("# nobody\n");
  EXPECT_EQ(*access->Reload(), true);
  EXPECT_THAT(access->rules()->principals(), IsEmpty());
  EXPECT_EQ(access->version(), 2);
}

TEST_F(AccessControlTest, AServerLooksUpTheCallerThatAnotherServerStates) {
  Write(
      "principal { name: 'a' former_name: 'old' anonymous: true allow { role: READ models: 'x' } "
      "}");
  const auto access = *AccessControl::Load(path_);
  const PassedOnCaller a(access.get(), "a");
  EXPECT_TRUE(a.CheckRead("models/x1").ok());
  EXPECT_TRUE(absl::IsPermissionDenied(a.CheckRead("models/y")));
  EXPECT_TRUE(a.IsNamed("a"));
  EXPECT_TRUE(a.IsNamed("old"));
  EXPECT_FALSE(a.IsNamed("b"));
  const PassedOnCaller old(access.get(), "old");
  EXPECT_TRUE(old.IsNamed("a"));
  EXPECT_TRUE(old.CheckRead("models/x1").ok());
  // This server's file may be an older one.
  const PassedOnCaller unknown(access.get(), "b");
  EXPECT_TRUE(absl::IsPermissionDenied(unknown.CheckRead("models/x1")));
  EXPECT_TRUE(unknown.IsNamed("b"));
  EXPECT_FALSE(unknown.IsNamed("a"));
  EXPECT_FALSE(unknown.IsNamed("c"));
  const PassedOnCaller unchecked(nullptr, "b");
  EXPECT_TRUE(unchecked.CheckRead("models/y").ok());
  EXPECT_FALSE(unchecked.IsNamed("a"));
}

TEST(TokenOf, BothSchemesCarryAToken) {
  EXPECT_EQ(TokenOf("Bearer abc"), DigestToken("abc"));
  EXPECT_EQ(TokenOf("bearer abc "), DigestToken("abc"));
  // user:abc
  EXPECT_EQ(TokenOf("Basic dXNlcjphYmM="), DigestToken("abc"));
  EXPECT_EQ(TokenOf(""), std::nullopt);
  // A header that cannot be understood is a token that nobody has, not the lack of one.
  EXPECT_NE(TokenOf("Digest abc"), std::nullopt);
  EXPECT_NE(TokenOf("Basic !"), std::nullopt);
}

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(RateLimit, ASecondsExamplesPassAtOnceAndFurtherOnesAreOwed) {
  RateLimit limit;
  limit.Set(100);
  limit.Use(100, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::ZeroDuration());
  limit.Use(250, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::Seconds(2.5));
  EXPECT_EQ(limit.Wait(kStart + absl::Seconds(1)), absl::Seconds(1.5));
  EXPECT_EQ(limit.Wait(kStart + absl::Seconds(3)), absl::ZeroDuration());
}

TEST(RateLimit, OverAnyLongTimeNoMoreThanTheRateAndOneSecondsExamplesPass) {
  RateLimit limit;
  limit.Set(100);
  uint64_t passed = 0;
  for (int millisecond = 0; millisecond < 10'000; ++millisecond) {
    const absl::Time now = kStart + absl::Milliseconds(millisecond);
    if (limit.Wait(now) > absl::ZeroDuration()) continue;
    limit.Use(7, now);
    passed += 7;
  }
  EXPECT_GE(passed, 1000u);
  EXPECT_LE(passed, 1100u + 7);
}

TEST(RateLimit, ZeroIsNoLimitAndADebtOutlivesAHigherLimit) {
  RateLimit limit;
  limit.Use(1'000'000, kStart);
  EXPECT_EQ(limit.Wait(kStart), absl::ZeroDuration());
  limit.Set(10);
  limit.Use(30, kStart);
  limit.Set(20);
  EXPECT_EQ(limit.Wait(kStart), absl::Seconds(1));
}

TEST(PrincipalUsages, HaveOneEntryEachUpToALimitAndTheRestTogether) {
  std::string text;
  for (int i = 0; i < 150; ++i)
    absl::StrAppend(&text, "principal { name: 'p", i, "' certificate: 'cn:", i, "' }\n");
  PrincipalUsages usages(0);
  usages.Use(**AccessRules::Parse(text));
  usages.Find("p3")->calls[PrincipalUsage::kOk] = 5;
  for (const char* name : {"p120", "p140"}) usages.Find(name)->examples = 4;
  usages.Find("nobody")->calls[PrincipalUsage::kDenied] = 2;
  const std::vector<PrincipalMetrics> metrics = usages.metrics();
  ASSERT_EQ(metrics.size(), 2 + PrincipalUsages::kMaxNamed);
  EXPECT_EQ(metrics.front().name, "");
  EXPECT_EQ(metrics.front().calls[PrincipalUsage::kDenied], 2u);
  EXPECT_EQ(metrics[4].name, "p3");
  EXPECT_EQ(metrics[4].calls[PrincipalUsage::kOk], 5u);
  EXPECT_EQ(metrics.back().name, "other");
  EXPECT_EQ(metrics.back().examples, 8u);
}

TEST(PrincipalUsages, CountsOutliveAChangeOfTheFileAndLimitsFollowIt) {
  PrincipalUsages usages(10);
  usages.Use(**AccessRules::Parse("principal { name: 'a' certificate: 'cn:a' }"));
  usages.Find("a")->examples = 3;
  usages.Find("a")->examples_limit.Use(20, kStart);
  EXPECT_EQ(usages.Find("a")->examples_limit.Wait(kStart), absl::Seconds(1));
  usages.Use(**AccessRules::Parse(
      "principal { name: 'a' certificate: 'cn:a' max_examples_per_second: 0 }"));
  EXPECT_EQ(usages.Find("a")->examples, 3u);
  EXPECT_EQ(usages.Find("a")->examples_limit.Wait(kStart), absl::ZeroDuration());
}

}  // namespace
}  // namespace perceptrond
