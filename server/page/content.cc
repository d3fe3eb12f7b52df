#include "server/page/content.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/features/hashing.h"

namespace perceptrond {
namespace {

// Scripts, styles and data of this server and no other; nothing inline, so that no text in the page
// can become one; no frame of another's, which could lay itself over it.
constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
// Below this packing gains nothing.
constexpr size_t kWorthPacking = 1024;

std::string Pack(absl::string_view bytes, int level) {
  namespace io = google::protobuf::io;
  std::string packed;
  io::StringOutputStream out(&packed);
  io::GzipOutputStream::Options options;
  options.compression_level = level;
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

StaticContent MakeStaticContent(std::string type, absl::string_view bytes) {
  constexpr int kBest = 9;
  StaticContent content{std::move(type), std::string(bytes), Pack(bytes, kBest), ""};
  if (content.packed.size() >= bytes.size()) content.packed.clear();
  // Weak: packed or not, it is the same file.
  content.etag = absl::StrCat(
      "W/\"", absl::Hex(HashBytes(bytes.data(), bytes.size(), 0), absl::kZeroPad16), "\"");
  return content;
}

HttpAnswer AnswerStatic(const HttpRequest& request, const StaticContent& content) {
  HttpAnswer answer = Begin(200, content.type, "no-cache");
  answer.headers.emplace_back("ETag", content.etag);
  if (absl::StrContains(request.if_none_match, content.etag)) {
    answer.status = 304;
    return answer;
  }
  const bool packed = !content.packed.empty() && TakesGzip(request);
  if (packed) answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = packed ? content.packed : content.plain;
  return answer;
}

HttpAnswer AnswerFresh(const HttpRequest& request, int status, std::string type, std::string body) {
  constexpr int kFast = 1;
  HttpAnswer answer = Begin(status, type, "no-store");
  answer.body = std::move(body);
  if (answer.body.size() < kWorthPacking || !TakesGzip(request)) return answer;
  std::string packed = Pack(answer.body, kFast);
  if (packed.empty() || packed.size() >= answer.body.size()) return answer;
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::move(packed);
  return answer;
}

}  // namespace perceptrond
