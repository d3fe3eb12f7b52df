#include "server/access/http_access.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace perceptrond {
namespace {

HttpAnswer Refusal(int status, std::string text) {
  HttpAnswer answer;
  answer.status = status;
  answer.headers = {{"Content-Type", "text/plain; charset=utf-8"}, {"Cache-Control", "no-store"}};
  // Browsers ask for the token as a password.
  if (status == 401)
    answer.headers.emplace_back("WWW-Authenticate",
                                "Basic realm=\"perceptrond\", charset=\"UTF-8\"");
  answer.body = std::move(text);
  return answer;
}

}  // namespace

HttpHandler WithAccess(const AccessControl& access, Admission& admission, HttpHandler handler) {
  return [&access, &admission, handler = std::move(handler)](const HttpRequest& request) {
    const Right right = request.path == "/metrics" ? Right::kMetrics : Right::kPage;
    const std::shared_ptr<const AccessRules> rules = access.rules();
    const Principal* const principal = rules->Find({TokenOf(request.authorization), {}});
    if (principal != nullptr && principal->Has(right)) {
      HttpRequest allowed = request;
      allowed.readable = principal->ReadablePrefixes();
      return handler(allowed);
    }
    const bool known = principal != nullptr && !principal->anonymous;
    AuditRecord record;
    record.time = absl::Now();
    record.principal = known ? principal->name : "";
    record.peer = request.peer;
    record.method = absl::StrCat("http ", absl::AsciiStrToLower(RightName(right)));
    record.outcome = known ? "PermissionDenied" : "Unauthenticated";
    admission.RecordDenial(record);
    if (known) {
      return Refusal(
          403, absl::StrCat("Principal ", principal->name, " lacks the right ", RightName(right),
                            ": the server's access file can give it.\n"));
    }
    return Refusal(401,
                   "A token is needed: as Authorization: Bearer TOKEN, or in a browser as the "
                   "password.\n");
  };
}

}  // namespace perceptrond
