// Bytes on their way to a browser: packed, named by what they are, and told what they may do there.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "server/page/http.h"

namespace perceptrond {

// The page's own files do not change while the server runs: a browser that has them is told so.
struct StaticContent {
  std::string type;
  std::string plain;
  // Of gzip; empty: it would be no shorter.
  std::string packed;
  // Quoted, as the header has it.
  std::string etag;
};
StaticContent MakeStaticContent(std::string type, absl::string_view bytes);

// 200, or 304 with nothing if the browser has it. It asks each time, so that a newer server's page
// is never mixed with an older one's.
HttpAnswer AnswerStatic(const HttpRequest& request, const StaticContent& content);

// An answer that is made for this request and kept by nobody.
HttpAnswer AnswerFresh(const HttpRequest& request, int status, std::string type, std::string body);

}  // namespace perceptrond
