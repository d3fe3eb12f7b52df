// HTTP requests and responses of the status page in a form that belongs to no library, and its
// embedded files.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace perceptrond {

struct HttpRequest {
  // "GET".
  std::string method;
  // Decoded, without the query: "/models/spam".
  std::string path;
  // Decoded names and values of the query, in their order.
  std::vector<std::pair<std::string, std::string>> query;
  // The headers that the page uses; empty if absent.
  std::string host;
  std::string accept_encoding;
  std::string if_none_match;
};

// Whether a Host header is an address, "localhost", or absent. Any other name could be one whose
// owner makes it resolve to this machine (DNS rebinding): for a browser, the owner's page and what
// is served here would then have the same origin.
bool IsAddressOrLocalhost(absl::string_view host);

struct HttpAnswer {
  int status = 200;
  // Without Content-Length.
  std::vector<std::pair<std::string, std::string>> headers;
  // For a HEAD request the body of the GET response, which is not sent.
  std::string body;
};

// Thread contract: safe for any number of threads.
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

// A file of the page, which the build embeds into the program.
struct EmbeddedFile {
  // "page.css".
  absl::string_view name;
  absl::string_view plain;
  // Compressed with gzip.
  absl::string_view gzipped;
  // SHA-256 of the plain bytes, in hexadecimal.
  absl::string_view digest;
};

// All embedded files; valid as long as the program runs. Defined in the source file that the build
// generates with server/page/embed.cmake.
std::span<const EmbeddedFile> EmbeddedFiles();

}  // namespace perceptrond
