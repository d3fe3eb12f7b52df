#include "core/journal/postgres/uri.h"

#include <libpq-fe.h>

#include <algorithm>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

constexpr char kForm[] = "postgres://USER@HOST[:PORT][,HOST...]/DATABASE[?PARAMETER=VALUE&...]";

}  // namespace

bool IsPostgresUri(absl::string_view text) {
  return absl::StartsWith(text, "postgres://") || absl::StartsWith(text, "postgresql://");
}

std::string CheckPostgresUri(const std::string& uri) {
  if (!IsPostgresUri(uri)) return absl::StrCat("expected ", kForm);
  char* error = nullptr;
  PQconninfoOption* const parsed = PQconninfoParse(uri.c_str(), &error);
  const std::unique_ptr<char, decltype(&PQfreemem)> message(error, &PQfreemem);
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(parsed,
                                                                             &PQconninfoFree);
  // libpq's own message may repeat a password.
  if (parsed == nullptr) {
    const absl::string_view why = error == nullptr ? "" : absl::StripAsciiWhitespace(error);
    const bool names_parameter = absl::StartsWith(why, "invalid URI query parameter");
    return absl::StrCat(names_parameter ? absl::StrCat(why, "; ") : "", "expected ", kForm,
                        ", as libpq reads it");
  }
  for (const PQconninfoOption* option = parsed; option->keyword != nullptr; ++option) {
    const absl::string_view keyword = option->keyword;
    if (option->val == nullptr) continue;
    if (keyword == "password" || keyword == "sslpassword") {
      return absl::StrCat("it holds a ", keyword,
                          ", which others may see: put it into a file that passfile names, or into "
                          "the environment variable PGPASSWORD");
    }
    // A server writes.
    if (keyword == "target_session_attrs" && absl::string_view(option->val) != "read-write")
      return "target_session_attrs must be read-write, which it is if it is left out";
  }
  return "";
}

bool IsSchemaName(absl::string_view text) {
  return !text.empty() && text.size() <= 50 && !absl::ascii_isdigit(text[0]) &&
         !absl::StartsWith(text, "pg_") && std::all_of(text.begin(), text.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) || c == '_';
         });
}

}  // namespace perceptrond
