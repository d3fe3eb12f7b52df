#include "server/page/http.h"

#include <google/protobuf/io/gzip_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <utility>

#include "absl/strings/match.h"

namespace perceptrond {
namespace {

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

}  // namespace

bool AcceptsGzip(const HttpRequest& request) {
  return absl::StrContains(request.accept_encoding, "gzip") &&
         !absl::StrContains(request.accept_encoding, "gzip;q=0,") &&
         !absl::EndsWith(request.accept_encoding, "gzip;q=0");
}

void SetBody(const HttpRequest& request, std::string body, HttpAnswer& answer) {
  answer.body = std::move(body);
  if (answer.body.size() < kMinGzipBytes || !AcceptsGzip(request)) return;
  std::string gzipped = Gzip(answer.body);
  if (gzipped.empty() || gzipped.size() >= answer.body.size()) return;
  answer.headers.emplace_back("Content-Encoding", "gzip");
  answer.body = std::move(gzipped);
}

}  // namespace perceptrond
