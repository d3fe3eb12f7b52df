#include "core/model/malformed.h"

#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {

absl::Status Malformed(const ValidationError& error) {
  return InvalidField(ReasonName(error.code), absl::StrCat("columns.", error.field),
                      error.description);
}

}  // namespace perceptrond
