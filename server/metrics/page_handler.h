// Requests as civetweb has them, to a handler that knows nothing of it. With metrics.cc, which
// starts the HTTP server, the one place that knows civetweb.
#pragma once

#include <civetweb.h>

#include "server/page/http.h"

namespace perceptrond {

// Has every path that nobody else answers go to `handler`, which must outlive the context. To be
// called before the context serves.
void HandleAllPaths(mg_context* context, const HttpHandler& handler);

}  // namespace perceptrond
