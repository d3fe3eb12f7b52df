#include "server/page/status_page.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/rpc/status.pb.h"
#include "server/page/content.h"
#include "server/page/embedded.h"
#include "server/page/host_header.h"
#include "server/page/json.h"
#include "server/rpc/status.h"

namespace perceptrond {
namespace {

constexpr char kJsonType[] = "application/json; charset=utf-8";
constexpr char kListPage[] = "index.html";
constexpr char kModelPage[] = "model.html";
// Not even one that could be decoded, perhaps: the page's script is spared it.
constexpr char kNoName[] =
    "This is no model's name: it has letters, digits, '_', '-' and '.', the first a letter or "
    "digit. The models are at /.";

HttpAnswer Text(const HttpRequest& request, int status, absl::string_view text) {
  return AnswerFresh(request, status, kTextType, absl::StrCat(text, "\n"));
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

HttpAnswer Error(const HttpRequest& request, const absl::Status& status) {
  google::rpc::Status proto;
  ToProto(status, proto);
  return AnswerFresh(request, HttpStatus(status.code()), kJsonType, ToJson(proto));
}

template <typename Message>
HttpAnswer Json(const HttpRequest& request, const absl::StatusOr<Message>& message) {
  if (!message.ok()) return Error(request, message.status());
  return AnswerFresh(request, 200, kJsonType, ToJson(*message));
}

// The first of that name; empty if there is none.
std::string Parameter(const HttpRequest& request, absl::string_view name) {
  for (const auto& [key, value] : request.query) {
    if (key == name) return value;
  }
  return "";
}

// The nearest to it that there is; what is no whole number counts as not given.
uint64_t Number(const HttpRequest& request, absl::string_view name, uint64_t otherwise) {
  const std::string text = Parameter(request, name);
  absl::string_view digits = text;
  const bool negative = absl::ConsumePrefix(&digits, "-");
  if (digits.empty() || !std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit))
    return otherwise;
  if (negative) return 0;
  uint64_t number;
  return absl::SimpleAtoi(digits, &number) ? number : std::numeric_limits<uint64_t>::max();
}

ModelListQuery ListQuery(const HttpRequest& request) {
  ModelListQuery query;
  query.search = Parameter(request, "search");
  query.page_token = Parameter(request, "page_token");
  query.page_size = Number(request, "page_size", query.page_size);
  query.points = Number(request, "points", query.points);
  return query;
}

ModelDetailQuery DetailQuery(const HttpRequest& request, absl::string_view id) {
  ModelDetailQuery query;
  query.id = std::string(id);
  query.load = Parameter(request, "load") == "true";
  query.after_revision = Number(request, "after_revision", 0);
  query.features = Number(request, "features", 0);
  return query;
}

}  // namespace

StatusPage::StatusPage(Store& store, std::function<bool()> draining, bool loopback)
    : loopback_(loopback), models_(store, std::move(draining)) {
  for (const EmbeddedFile& file : EmbeddedFiles()) files_.emplace(file.name, file);
}

HttpAnswer StatusPage::Answer(const HttpRequest& request) {
  if (loopback_ && !IsAddressOrLocalhost(request.host)) {
    return Text(
        request, 403,
        "This address is for this machine: ask for 127.0.0.1 or localhost. A proxy must send "
        "that as Host.");
  }
  if (request.method == "GET" || request.method == "HEAD") return Get(request);
  HttpAnswer answer = Text(request, 405, "This page is read by GET; it changes nothing.");
  answer.headers.emplace_back("Allow", "GET, HEAD");
  return answer;
}

HttpAnswer StatusPage::Get(const HttpRequest& request) {
  absl::string_view path = request.path;
  if (path == "/") return Page(request, kListPage, 200);
  if (absl::ConsumePrefix(&path, "/assets/")) {
    const auto file = files_.find(path);
    if (file != files_.end() && !absl::EndsWith(path, ".html"))
      return AnswerStatic(request, file->second);
  } else if (absl::ConsumePrefix(&path, "/api/")) {
    return Api(request, path);
  } else if (absl::ConsumePrefix(&path, "/models/")) {
    const int status = HttpStatus(models_.Exists(std::string(path)).code());
    if (status == 400) return Text(request, status, kNoName);
    // A page that says so, where there is no such model.
    return Page(request, kModelPage, status == 404 ? 404 : 200);
  }
  return Text(request, 404, "There is nothing here. The models are at /, the metrics at /metrics.");
}

HttpAnswer StatusPage::Page(const HttpRequest& request, const std::string& file, int status) const {
  const EmbeddedFile& content = files_.find(file)->second;
  if (status != 200) return AnswerFresh(request, status, TypeOf(file), std::string(content.plain));
  return AnswerStatic(request, content);
}

HttpAnswer StatusPage::Api(const HttpRequest& request, absl::string_view path) {
  const absl::Cleanup done = [this] { --under_way_; };
  if (++under_way_ > kMostAtOnce) {
    HttpAnswer answer = Text(request, 503, "Too many ask at once: ask again in a second.");
    answer.headers.emplace_back("Retry-After", "1");
    return answer;
  }
  if (path == "models") return Json(request, models_.List(ListQuery(request)));
  if (absl::ConsumePrefix(&path, "models/"))
    return Json(request, models_.Detail(DetailQuery(request, path)));
  return Text(request, 404, "There is nothing here: see /api/models.");
}

}  // namespace perceptrond
