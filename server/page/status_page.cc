#include "server/page/status_page.h"

#include <google/protobuf/util/json_util.h>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/rpc/status.pb.h"
#include "server/page/http.h"
#include "server/page/parameters.h"
#include "server/rpc/message.h"

namespace perceptrond {
namespace {

// Scripts, styles and data come from this server alone. Nothing inline runs, so that no text in the
// page can become a script. No other page may frame this one.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
HttpAnswer WithHeaders(int status, absl::string_view type, absl::string_view caching) {
  HttpAnswer answer;
  answer.status = status;
  answer.headers = {{"Content-Type", std::string(type)},
                    {"Cache-Control", std::string(caching)},
                    {"Vary", "Accept-Encoding"},
                    {"Content-Security-Policy", kPolicy},
                    {"X-Content-Type-Options", "nosniff"},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cross-Origin-Resource-Policy", "same-origin"}};
  return answer;
}

constexpr char kTextType[] = "text/plain; charset=utf-8";

// "text/css; charset=utf-8" for "page.css"; kTextType if unknown.
std::string MediaType(absl::string_view file) {
  if (absl::EndsWith(file, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(file, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(file, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(file, ".svg")) return "image/svg+xml";
  return kTextType;
}

// A response with the file, or 304 without a body if the browser has it. The browser asks every
// time, so that it never mixes files of an old and a new server.
HttpAnswer MakeFileAnswer(const HttpRequest& request, const EmbeddedFile& file) {
  HttpAnswer answer = WithHeaders(200, MediaType(file.name), "no-cache");
  // Weak: gzipped or not, it is the same file.
  const std::string etag = absl::StrCat("W/\"", file.digest, "\"");
  answer.headers.emplace_back("ETag", etag);
  if (absl::StrContains(request.if_none_match, etag)) {
    answer.status = 304;
    return answer;
  }
  const bool gzipped = file.gzipped.size() < file.plain.size() && AcceptsGzip(request);
  if (gzipped) answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::string(gzipped ? file.gzipped : file.plain);
  return answer;
}

// A response that is made for this request and must not be cached.
HttpAnswer MakeAnswer(const HttpRequest& request, int status, std::string type, std::string body) {
  HttpAnswer answer = WithHeaders(status, type, "no-store");
  SetBody(request, std::move(body), answer);
  return answer;
}

constexpr char kJsonType[] = "application/json; charset=utf-8";
constexpr char kListPage[] = "index.html";
constexpr char kModelPage[] = "model.html";
constexpr char kComparePage[] = "compare.html";
// A plain answer, since the page's script may be unable to decode the name.
constexpr char kInvalidName[] =
    "This is not a model's name. A name has letters, digits, '_', '-' and '.', and starts with a "
    "letter or a digit. The list of models is at /.";

// The message as JSON, with zeros. 64-bit numbers are strings; absent `optional` fields are absent.
std::string ToJson(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.always_print_primitive_fields = true;
  std::string json;
  // Fails only for messages that hold an Any of unknown type.
  if (!google::protobuf::util::MessageToJsonString(message, &json, options).ok()) return "{}";
  return json;
}

HttpAnswer Text(const HttpRequest& request, int status, absl::string_view text) {
  return MakeAnswer(request, status, kTextType, absl::StrCat(text, "\n"));
}

int HttpStatus(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kOk:
      return 200;
    case absl::StatusCode::kInvalidArgument:
      return 400;
    case absl::StatusCode::kNotFound:
      return 404;
    case absl::StatusCode::kUnavailable:
      return 503;
    default:
      return 500;
  }
}

HttpAnswer ErrorAnswer(const HttpRequest& request, const absl::Status& status) {
  google::rpc::Status proto;
  ToProto(status, proto);
  return MakeAnswer(request, HttpStatus(status.code()), kJsonType, ToJson(proto));
}

template <typename Message>
HttpAnswer Json(const HttpRequest& request, const absl::StatusOr<Message>& message) {
  if (!message.ok()) return ErrorAnswer(request, message.status());
  return MakeAnswer(request, 200, kJsonType, ToJson(*message));
}

absl::StatusOr<ModelListQuery> ReadListQuery(const HttpRequest& request) {
  Parameters parameters(request);
  ModelListQuery query;
  query.filter.search = parameters.Text("search");
  query.filter.state = parameters.Text("state");
  query.filter.order_by = parameters.Text("order_by");
  query.filter.active = parameters.Flag("active");
  query.filter.min_error = parameters.Number("min_error", 0);
  query.filter.readable = request.readable;
  query.page = parameters.Integer("page", query.page);
  query.page_size = parameters.Integer("page_size", query.page_size);
  query.points = parameters.Integer("points", query.points);
  if (absl::Status status = parameters.Check(); !status.ok()) return status;
  return query;
}

absl::StatusOr<ModelDetailQuery> ReadDetailQuery(const HttpRequest& request, absl::string_view id) {
  Parameters parameters(request);
  ModelDetailQuery query;
  query.id = std::string(id);
  query.load = parameters.Flag("load");
  query.after_revision = parameters.Integer("after_revision", 0);
  query.features = parameters.Integer("features", 0);
  query.readable = request.readable;
  if (absl::Status status = parameters.Check(); !status.ok()) return status;
  return query;
}

}  // namespace

StatusPage::StatusPage(Store& store, std::function<bool()> draining)
    : models_(store, std::move(draining)) {
  for (const EmbeddedFile& file : EmbeddedFiles()) files_.emplace(file.name, file);
}

HttpAnswer StatusPage::Answer(const HttpRequest& request) {
  if (request.method == "GET" || request.method == "HEAD") return Get(request);
  HttpAnswer answer = Text(request, 405, "This page is read-only: use GET or HEAD.");
  answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

HttpAnswer StatusPage::Get(const HttpRequest& request) {
  absl::string_view path = request.path;
  if (path == "/") return Page(request, kListPage, 200);
  if (path == "/compare") return Page(request, kComparePage, 200);
  if (absl::ConsumePrefix(&path, "/assets/")) {
    const auto file = files_.find(path);
    if (file != files_.end() && !absl::EndsWith(path, ".html"))
      return MakeFileAnswer(request, file->second);
  } else if (absl::ConsumePrefix(&path, "/api/")) {
    return Api(request, path);
  } else if (absl::ConsumePrefix(&path, "/models/")) {
    const int status = HttpStatus(models_.Exists(std::string(path), request.readable).code());
    if (status == 400) return Text(request, status, kInvalidName);
    // For an unknown model the page itself says so.
    return Page(request, kModelPage, status == 404 ? 404 : 200);
  }
  return Text(request, 404, "Not found. The list of models is at /, the metrics are at /metrics.");
}

HttpAnswer StatusPage::Page(const HttpRequest& request, const std::string& file, int status) const {
  const EmbeddedFile& content = files_.find(file)->second;
  if (status != 200)
    return MakeAnswer(request, status, MediaType(file), std::string(content.plain));
  return MakeFileAnswer(request, content);
}

HttpAnswer StatusPage::Api(const HttpRequest& request, absl::string_view path) {
  const absl::Cleanup done = [this] { --active_requests_; };
  if (++active_requests_ > kMaxActiveRequests) {
    HttpAnswer answer = Text(request, 503, "Too many requests at once: try again in a second.");
    answer.headers.emplace_back("Retry-After", "1");
    return answer;
  }
  if (path == "models") {
    const absl::StatusOr<ModelListQuery> query = ReadListQuery(request);
    return query.ok() ? Json(request, models_.List(*query)) : ErrorAnswer(request, query.status());
  }
  if (absl::ConsumePrefix(&path, "models/")) {
    const absl::StatusOr<ModelDetailQuery> query = ReadDetailQuery(request, path);
    return query.ok() ? Json(request, models_.Detail(*query))
                      : ErrorAnswer(request, query.status());
  }
  return Text(request, 404, "Not found: see /api/models.");
}

}  // namespace perceptrond
