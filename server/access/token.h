// Bearer tokens, and the digests that the access file has of them.
//
// A token holds 256 random bits, too many to try; a slow hash, which protects
// passwords that people choose, would gain nothing and cost each call.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace perceptrond {

// SHA-256 of a token.
using TokenDigest = std::array<uint8_t, 32>;

TokenDigest DigestToken(absl::string_view token);

// Takes the same time for any two digests.
bool SameDigest(const TokenDigest& a, const TokenDigest& b);

// From 64 hexadecimal digits; absent for anything else.
std::optional<TokenDigest> ParseDigest(absl::string_view hex);
std::string FormatDigest(const TokenDigest& digest);

// What our tokens begin with, so that a search for leaked secrets can find them.
inline constexpr absl::string_view kTokenPrefix = "ptd_";

// A new token of 256 random bits: kTokenPrefix and 43 letters, digits, '-' and '_'.
std::string MakeToken();

// Writes a new token to a new file that only this user can read, and sets `digest` to its digest.
// ALREADY_EXISTS; UNAVAILABLE if the file cannot be written, which is then removed.
absl::Status WriteNewToken(const std::string& path, TokenDigest& digest);

}  // namespace perceptrond
