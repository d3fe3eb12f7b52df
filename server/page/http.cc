#include "server/page/http.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// Scripts, styles and data come from this server alone. Nothing inline runs, so that no text in the
// page can become a script. No other page may frame this one.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
// Compressing a smaller body gains nothing.
constexpr size_t kMinGzipBytes = 1024;

// Empty if the compression fails.
std::string Gzip(absl::string_view bytes) {
  constexpr int kFast = 1;
  namespace io = google::protobuf::io;
  std::string gzipped;
  io::StringOutputStream out(&gzipped);
  io::GzipOutputStream::Options options;
  options.compression_level = kFast;
  io::GzipOutputStream gzip(&out, options);
  void* buffer = nullptr;
  int size = 0;
  while (!bytes.empty() && gzip.Next(&buffer, &size)) {
    const size_t part = bytes.copy(static_cast<char*>(buffer), static_cast<size_t>(size));
    bytes.remove_prefix(part);
    gzip.BackUp(size - static_cast<int>(part));
  }
  return gzip.Close() && bytes.empty() ? gzipped : std::string();
}

bool AcceptsGzip(const HttpRequest& request) {
  return absl::StrContains(request.accept_encoding, "gzip") &&
         !absl::StrContains(request.accept_encoding, "gzip;q=0,") &&
         !absl::EndsWith(request.accept_encoding, "gzip;q=0");
}

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

}  // namespace

std::string MediaType(absl::string_view file) {
  if (absl::EndsWith(file, ".html")) return "text/html; charset=utf-8";
  if (absl::EndsWith(file, ".css")) return "text/css; charset=utf-8";
  if (absl::EndsWith(file, ".js")) return "text/javascript; charset=utf-8";
  if (absl::EndsWith(file, ".svg")) return "image/svg+xml";
  return kTextType;
}

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

HttpAnswer MakeAnswer(const HttpRequest& request, int status, std::string type, std::string body) {
  HttpAnswer answer = WithHeaders(status, type, "no-store");
  answer.body = std::move(body);
  if (answer.body.size() < kMinGzipBytes || !AcceptsGzip(request)) return answer;
  std::string gzipped = Gzip(answer.body);
  if (gzipped.empty() || gzipped.size() >= answer.body.size()) return answer;
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::move(gzipped);
  return answer;
}

}  // namespace perceptrond
