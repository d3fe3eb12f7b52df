#include "server/rpc/model_name.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/model/error.h"
#include "core/model/settings.h"

namespace perceptrond {

absl::Status CheckModelName(absl::string_view name, absl::string_view field) {
  absl::string_view id = name;
  if (absl::ConsumePrefix(&id, kModelCollection) && IsModelId(id)) return absl::OkStatus();
  return InvalidField(
      "INVALID_FIELD", field,
      absl::StrCat("\"", absl::CHexEscape(name),
                   "\" is no model's name; write models/NAME, NAME of letters, digits, '_', '-' "
                   "and '.', the first a letter or digit"));
}

}  // namespace perceptrond
