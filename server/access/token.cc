#include "server/access/token.h"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {

TokenDigest DigestToken(absl::string_view token) {
  TokenDigest digest;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

bool SameDigest(const TokenDigest& a, const TokenDigest& b) {
  return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::optional<TokenDigest> ParseDigest(absl::string_view hex) {
  TokenDigest digest;
  if (hex.size() != 2 * digest.size() || !std::all_of(hex.begin(), hex.end(), absl::ascii_isxdigit))
    return std::nullopt;
  const std::string bytes = absl::HexStringToBytes(hex);
  std::memcpy(digest.data(), bytes.data(), digest.size());
  return digest;
}

std::string FormatDigest(const TokenDigest& digest) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

std::string MakeToken() {
  std::array<unsigned char, 32> bits;
  // Fails only where the system has no source of randomness; then no token is better than a bad one.
  if (RAND_bytes(bits.data(), bits.size()) != 1) std::abort();
  std::string text;
  absl::WebSafeBase64Escape(
      absl::string_view(reinterpret_cast<const char*>(bits.data()), bits.size()), &text);
  return absl::StrCat(kTokenPrefix, text);
}

absl::Status WriteNewToken(const std::string& path, TokenDigest& digest) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 && errno == EEXIST)
    return absl::AlreadyExistsError(absl::StrCat(path, " exists; name a new file"));
  if (file < 0)
    return absl::UnavailableError(absl::StrCat("cannot write ", path, ": ", std::strerror(errno)));
  const std::string token = MakeToken();
  const std::string line = token + "\n";
  const bool written = write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  if (close(file) != 0 || !written) {
    unlink(path.c_str());
    return absl::UnavailableError(absl::StrCat("cannot write ", path));
  }
  digest = DigestToken(token);
  return absl::OkStatus();
}

}  // namespace perceptrond
