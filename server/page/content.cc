#include "server/page/content.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// Scripts, styles and data of this server and no other; nothing inline, so that no text in the page
// can become one; no frame of another's, which could lay itself over it.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
// Below this packing gains nothing.
constexpr size_t kWorthPacking = 1024;

std::string Pack(absl::string_view bytes) {
  constexpr int kFast = 1;
  namespace io = google::protobuf::io;
  std::string packed;
  io::StringOutputStream out(&packed);
  io::GzipOutputStream::Options options;
  options.compression_level = kFast;
  io::GzipOutputStream gzip(&out, options);
  void* place = nullptr;
  int room = 0;
  while (!bytes.empty() && gzip.Next(&place, &room)) {
    const size_t part = bytes.copy(static_cast<char*>(place), static_cast<size_t>(room));
    bytes.remove_prefix(part);
    gzip.BackUp(room - static_cast<int>(part));
  }
  return gzip.Close() && bytes.empty() ? packed : std::string();
}

bool TakesGzip(const HttpRequest& request) {
  return absl::StrContains(request.accept_encoding, "gzip") &&
         !absl::StrContains(request.accept_encoding, "gzip;q=0,") &&
         !absl::EndsWith(request.accept_encoding, "gzip;q=0");
}

HttpAnswer Begin(int status, absl::string_view type, absl::string_view caching) {
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

}  // namespace

std::string TypeOf(absl::string_view file) {
  if (absl::EndsWith(file, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(file, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(file, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(file, ".svg")) return "image/svg+xml";
  return kTextType;
}

HttpAnswer AnswerStatic(const HttpRequest& request, const EmbeddedFile& file) {
  HttpAnswer answer = Begin(200, TypeOf(file.name), "no-cache");
  // Weak: packed or not, it is the same file.
  const std::string etag = absl::StrCat("W/\"", file.digest, "\"");
  answer.headers.emplace_back("ETag", etag);
  if (absl::StrContains(request.if_none_match, etag)) {
    answer.status = 304;
    return answer;
  }
  const bool packed = file.packed.size() < file.plain.size() && TakesGzip(request);
  if (packed) answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::string(packed ? file.packed : file.plain);
  return answer;
}

HttpAnswer AnswerFresh(const HttpRequest& request, int status, std::string type, std::string body) {
  HttpAnswer answer = Begin(status, type, "no-store");
  answer.body = std::move(body);
  if (answer.body.size() < kWorthPacking || !TakesGzip(request)) return answer;
  std::string packed = Pack(answer.body);
  if (packed.empty() || packed.size() >= answer.body.size()) return answer;
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::move(packed);
  return answer;
}

}  // namespace perceptrond
