#include "server/rpc/request_fields.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/features/names.h"
#include "core/model/error.h"
#include "core/model/settings.h"

namespace perceptrond {
namespace {

constexpr size_t kChecksumDigits = 16;
// The longest part of an invalid token that an error repeats.
constexpr size_t kMaxShownBytes = 80;

std::string Checksum(absl::string_view list, absl::string_view position) {
  // The length separates list and position.
  const std::string text = absl::StrCat("page of ", list.size(), " ", list, " ", position);
  return absl::StrCat(absl::Hex(HashBytes(text.data(), text.size(), 0), absl::kZeroPad16));
}

}  // namespace

absl::Status CheckModelName(absl::string_view name, absl::string_view field) {
  absl::string_view id = name;
  if (absl::ConsumePrefix(&id, kModelCollection) && IsModelId(id)) return absl::OkStatus();
  return InvalidField(
      "INVALID_FIELD", field,
      absl::StrCat("\"", absl::CHexEscape(name),
                   "\" is not a model's name; write models/NAME, with NAME of letters, digits, "
                   "'_', '-' and '.', starting with a letter or a digit"));
}

absl::StatusOr<size_t> ReadPageSize(int32_t page_size, size_t standard, size_t maximum) {
  if (page_size < 0) {
    return InvalidField("INVALID_FIELD", "page_size",
                        absl::StrCat(page_size, " is below 0; send 0 for the default"));
  }
  return page_size == 0 ? standard : std::min(static_cast<size_t>(page_size), maximum);
}

std::string MakePageToken(absl::string_view list, absl::string_view position) {
  return absl::WebSafeBase64Escape(absl::StrCat(Checksum(list, position), position));
}

absl::StatusOr<std::string> ReadPageToken(absl::string_view list, const std::string& token) {
  if (token.empty()) return token;
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text) && text.size() > kChecksumDigits) {
    const std::string position = text.substr(kChecksumDigits);
    // Base64 can spell the same bytes with other trailing bits; only one spelling is valid.
    if (token == MakePageToken(list, position)) return position;
  }
  return InvalidField(
      "INVALID_FIELD", "page_token",
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(token.substr(0, kMaxShownBytes)),
                   "\" is not a token of this list; send next_page_token of the previous page "
                   "unchanged, or nothing to start at the beginning"));
}

}  // namespace perceptrond
