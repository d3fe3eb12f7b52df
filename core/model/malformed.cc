#include "core/model/malformed.h"

#include "absl/strings/str_cat.h"
#include "core/model/error.h"

namespace perceptrond {

absl::Status Malformed(const Finding& finding) {
  return InvalidField(FaultReason(finding.fault), absl::StrCat("columns.", finding.field),
                      finding.description);
}

}  // namespace perceptrond
