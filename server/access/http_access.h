// The access rules for metrics and page.
#pragma once

#include "server/access/access_control.h"
#include "server/access/admission.h"
#include "server/page/http.h"

namespace perceptrond {

// Answers as `handler` for callers with the right that the path needs, METRICS for /metrics and PAGE
// for all others, and tells it which models the caller may read. 401 for those whom the rules do not
// recognize, 403 for the others; both are recorded by `admission`. All three must outlive the result.
HttpHandler WithAccess(const AccessControl& access, Admission& admission, HttpHandler handler);

}  // namespace perceptrond
