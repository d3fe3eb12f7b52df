#include "server/rpc/page_token.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/features/hashing.h"
#include "core/model/error.h"

namespace perceptrond {
namespace {

constexpr size_t kCheckDigits = 16;
// Of a token that is shown.
constexpr size_t kShownBytes = 80;

std::string Check(absl::string_view list, absl::string_view place) {
  // The length keeps list and place apart.
  const std::string text = absl::StrCat("page of ", list.size(), " ", list, " ", place);
  return absl::StrCat(absl::Hex(HashBytes(text.data(), text.size(), 0), absl::kZeroPad16));
}

}  // namespace

std::string MakePageToken(absl::string_view list, absl::string_view place) {
  return absl::WebSafeBase64Escape(absl::StrCat(Check(list, place), place));
}

absl::StatusOr<std::string> ReadPageToken(absl::string_view list, const std::string& token) {
  if (token.empty()) return token;
  std::string text;
  if (absl::WebSafeBase64Unescape(token, &text) && text.size() > kCheckDigits) {
    const std::string place = text.substr(kCheckDigits);
    // One spelling each: the same bytes can be written with other trailing bits.
    if (token == MakePageToken(list, place)) return place;
  }
  return InvalidField(
      "INVALID_FIELD", "page_token",
      absl::StrCat("\"", absl::Utf8SafeCHexEscape(token.substr(0, kShownBytes)),
                   "\" is none that this method gave out for this list: send next_page_token of "
                   "the answer before as it is, or none to begin anew"));
}

}  // namespace perceptrond
