// HTTP requests and responses of the status page in a form that belongs to no library, and its
// embedded files.
#pragma once

#include <functional>
#include <optional>
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
  std::string authorization;
  // Where the request comes from, for the audit log: "http:127.0.0.1:4711".
  std::string peer;
  // Prefixes of the full names of the models that the caller may read; absent: all.
  std::optional<std::vector<std::string>> readable;
};

struct HttpAnswer {
  int status = 200;
  // Without Content-Length.
  std::vector<std::pair<std::string, std::string>> headers;
  // For a HEAD request the body of the GET response, which is not sent.
  std::string body;
};

// The bytes compressed with gzip if the client accepts that and they are shorter then; otherwise as
// they are. The answer's header says which.
void SetBody(const HttpRequest& request, std::string body, HttpAnswer& answer);
// Whether the client accepts gzip.
bool AcceptsGzip(const HttpRequest& request);

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
