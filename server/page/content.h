// Bytes on their way to a browser: packed, named by what they are, and told what they may do there.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/page/embedded.h"
#include "server/page/http.h"

namespace perceptrond {

// 200, or 304 with nothing if the browser has it: the page's own files do not change while the
// server runs. It asks each time, so that a newer server's page is never mixed with an older one's.
HttpAnswer AnswerStatic(const HttpRequest& request, const EmbeddedFile& file);

inline constexpr char kTextType[] = "text/plain; charset=utf-8";
// "text/css; charset=utf-8" of "page.css", text of what is unknown.
std::string TypeOf(absl::string_view file);

// An answer that is made for this request and kept by nobody.
HttpAnswer AnswerFresh(const HttpRequest& request, int status, std::string type, std::string body);

}  // namespace perceptrond
