// A request over HTTP and its answer, before any library's form.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace perceptrond {

struct HttpRequest {
  // "GET".
  std::string method;
  // Decoded, without the query: "/models/spam".
  std::string path;
  // Names and values, decoded, in their order.
  std::vector<std::pair<std::string, std::string>> query;
  // The headers that the page goes by; empty where there is none.
  std::string host;
  std::string accept_encoding;
  std::string if_none_match;
};

struct HttpAnswer {
  int status = 200;
  // Content-Length is not among them.
  std::vector<std::pair<std::string, std::string>> headers;
  // Of a HEAD request what GET would have got: it is not sent.
  std::string body;
};

// Thread contract: called by any number of threads at once.
using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

}  // namespace perceptrond
