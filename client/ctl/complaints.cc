#include "client/ctl/complaints.h"

#include "absl/strings/str_cat.h"
#include "client/ctl/printable.h"
#include "client/error.h"

namespace perceptrond::client {
namespace {

constexpr uint64_t kShown = 5;

}  // namespace

Outcome Complaints::Take(const absl::Status& status) {
  const std::string message(status.message());
  if (!absl::IsInvalidArgument(status)) return WrongUsage(message);
  if (!skip_bad_lines_) {
    return WrongUsage(absl::StrCat(message, " (--skip-bad-lines would go on)"));
  }
  if (++skipped_ <= kShown) Complain(absl::StrCat("skipped ", message));
  return {};
}

void Complaints::Refused(const Input& input, uint64_t tag, const absl::Status& status) {
  if (++refused_ > kShown) return;
  Complain(absl::StrCat("refused: ", input.Where(tag), ": ",
                        PrintableInLine(std::string(status.message())), " (", ErrorReason(status),
                        ")"));
}

void Complaints::ReportCounts() const {
  if (refused_ > kShown) {
    Complain(absl::StrCat("the server refused ", refused_.load(), " examples in all"));
  }
  if (skipped_ > 0) Complain(absl::StrCat(skipped_.load(), " malformed lines were skipped"));
}

}  // namespace perceptrond::client
