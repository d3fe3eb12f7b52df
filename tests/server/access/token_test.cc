// Tokens and their digests.
#include "server/access/token.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace perceptrond {
namespace {

TEST(Token, ItsDigestIsSha256) {
  // FIPS 180-2, appendix B.1.
  EXPECT_EQ(FormatDigest(DigestToken("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(ParseDigest(FormatDigest(DigestToken("abc"))), DigestToken("abc"));
  EXPECT_TRUE(SameDigest(DigestToken("abc"), DigestToken("abc")));
  TokenDigest other = DigestToken("abc");
  other.back() ^= 1;
  EXPECT_FALSE(SameDigest(DigestToken("abc"), other));
}

TEST(Token, WhatIsNoDigestIsRefused) {
  const std::string digest = FormatDigest(DigestToken("abc"));
  EXPECT_FALSE(ParseDigest(""));
  EXPECT_FALSE(ParseDigest(digest.substr(1)));
  EXPECT_FALSE(ParseDigest(digest + "0"));
  EXPECT_FALSE(ParseDigest("g" + digest.substr(1)));
}

TEST(Token, EachHas256RandomBits) {
  const std::string token = MakeToken();
  EXPECT_EQ(token.size(), kTokenPrefix.size() + 43);
  EXPECT_EQ(token.substr(0, kTokenPrefix.size()), kTokenPrefix);
  EXPECT_NE(token, MakeToken());
}

TEST(Token, ANewOneIsWrittenForThisUserAloneAndOverwritesNothing) {
  const testing::TempDir dir;
  const std::string path = dir.path() + "/token";
  TokenDigest digest;
  ASSERT_TRUE(WriteNewToken(path, digest).ok());
  struct stat found = {};
  ASSERT_EQ(stat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 0777, 0600);
  std::string line;
  std::getline(std::ifstream(path), line);
  EXPECT_EQ(DigestToken(line), digest);
  EXPECT_EQ(WriteNewToken(path, digest).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(WriteNewToken("/nowhere/token", digest).code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace perceptrond
