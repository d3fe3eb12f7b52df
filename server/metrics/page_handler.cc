#include "server/metrics/page_handler.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// More are left out.
constexpr unsigned kMostParameters = 16;

std::string Header(const mg_connection* connection, const char* name) {
  const char* const value = mg_get_header(connection, name);
  return value == nullptr ? "" : value;
}

HttpRequest Read(const mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  HttpRequest request;
  request.method = info.request_method;
  // Not local_uri, which is made fit to be a file's name: a model's may end with a dot. No path
  // here becomes a file's.
  request.path = info.local_uri_raw == nullptr ? "" : info.local_uri_raw;
  request.host = Header(connection, "Host");
  request.accept_encoding = Header(connection, "Accept-Encoding");
  request.if_none_match = Header(connection, "If-None-Match");
  if (info.query_string == nullptr) return request;
  // Is written to.
  std::string query = info.query_string;
  mg_header fields[kMostParameters];
  const int count = mg_split_form_urlencoded(query.data(), fields, kMostParameters);
  for (int i = 0; i < count; ++i) {
    const char* const value = fields[i].value;
    request.query.emplace_back(fields[i].name, value == nullptr ? "" : value);
  }
  return request;
}

void Write(mg_connection* connection, const HttpAnswer& answer, bool with_body) {
  mg_response_header_start(connection, answer.status);
  for (const auto& [name, value] : answer.headers)
    mg_response_header_add(connection, name.c_str(), value.c_str(), -1);
  mg_response_header_add(connection, "Content-Length", absl::StrCat(answer.body.size()).c_str(),
                         -1);
  mg_response_header_send(connection);
  if (with_body) mg_write(connection, answer.body.data(), answer.body.size());
}

int Handle(mg_connection* connection, void* handler) {
  const HttpRequest request = Read(connection);
  const HttpAnswer answer = (*static_cast<const HttpHandler*>(handler))(request);
  const bool with_body = request.method != "HEAD" && answer.status != 304;
  Write(connection, answer, with_body);
  return answer.status;
}

}  // namespace

void HandleAllPaths(mg_context* context, const HttpHandler& handler) {
  mg_set_request_handler(context, "/**", Handle, const_cast<HttpHandler*>(&handler));
}

}  // namespace perceptrond
