#include "client/call_metadata.h"

#include <arpa/inet.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "core/file/read_file.h"

namespace perceptrond::client {
namespace {

using grpc::experimental::InterceptionHookPoints;

// As gRPC's servers take no longer headers.
constexpr size_t kMaxTokenBytes = 8 << 10;

// gRPC ends the process for a header with other characters.
bool IsHeaderValue(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(),
                                      [](unsigned char c) { return absl::ascii_isgraph(c); });
}

// The token of a channel's calls. Threads: any.
class TokenSource {
 public:
  TokenSource(const CallMetadata& metadata, const std::string& address, bool encrypted)
      : file_(metadata.token_file),
        address_(address),
        is_safe_(encrypted || metadata.token_without_tls || IsLocalAddress(address)),
        token_(metadata.token) {}

  bool in_use() const { return !file_.empty() || !current().empty(); }
  // Sets `token`, which stays empty if none is to be sent. An error: none may be sent.
  grpc::Status Get(std::string& token) {
    absl::MutexLock lock(&mutex_);
    if (file_.empty() && token_.empty()) return grpc::Status::OK;
    if (!is_safe_) {
      return NotSent(absl::StrCat("the connection to ", address_,
                                  " is not encrypted, and others could read the token: use TLS, or "
                                  "allow it with token_without_tls"));
    }
    if (token_.empty()) {
      absl::StatusOr<std::string> read = Read();
      if (!read.ok()) return NotSent(std::string(read.status().message()));
      token_ = *std::move(read);
    }
    if (!IsHeaderValue(token_)) {
      token_.clear();
      return NotSent(file_.empty() ? "the token has characters that no token has"
                                   : absl::StrCat("cannot read a token from ", file_));
    }
    token = token_;
    return grpc::Status::OK;
  }
  // The server refused this token: whether the file has another one.
  bool Renew(const std::string& refused) {
    absl::MutexLock lock(&mutex_);
    if (file_.empty()) return false;
    // Another call may have read it already.
    if (token_ == refused) token_ = Read().value_or("");
    return !token_.empty() && token_ != refused;
  }

 private:
  static grpc::Status NotSent(const std::string& why) {
    return {grpc::StatusCode::UNAUTHENTICATED, why};
  }
  std::string current() const {
    absl::MutexLock lock(&mutex_);
    return token_;
  }
  // The file's first line.
  absl::StatusOr<std::string> Read() const {
    const absl::StatusOr<std::string> text = ReadFileUpTo(file_, kMaxTokenBytes, FileKind::kAny);
    if (!text.ok()) return text;
    return std::string(
        absl::StripAsciiWhitespace(absl::string_view(*text).substr(0, text->find('\n'))));
  }

  const std::string file_;
  const std::string address_;
  const bool is_safe_;
  mutable absl::Mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
};

class MetadataInterceptor final : public grpc::experimental::Interceptor {
 public:
  MetadataInterceptor(std::shared_ptr<TokenSource> source, std::string traceparent,
                      grpc::ClientContext* context)
      : source_(std::move(source)), traceparent_(std::move(traceparent)), context_(context) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* batch) override {
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_INITIAL_METADATA))
      Send(*batch->GetSendInitialMetadata());
    if (batch->QueryInterceptionHookPoint(InterceptionHookPoints::POST_RECV_STATUS))
      Receive(*batch->GetRecvStatus());
    batch->Proceed();
  }

 private:
  void Send(std::multimap<std::string, std::string>& headers) {
    if (IsHeaderValue(traceparent_)) headers.emplace("traceparent", traceparent_);
    refused_ = source_->Get(token_);
    if (!refused_.ok()) return context_->TryCancel();
    if (!token_.empty()) headers.emplace("authorization", absl::StrCat("Bearer ", token_));
  }
  void Receive(grpc::Status& status) {
    if (!refused_.ok()) {
      status = refused_;
    } else if (status.error_code() == grpc::StatusCode::UNAUTHENTICATED && source_->Renew(token_)) {
      status = {grpc::StatusCode::UNAVAILABLE,
                "the server refused the token, and its file has another one by now"};
    }
  }

  const std::shared_ptr<TokenSource> source_;
  const std::string traceparent_;
  grpc::ClientContext* const context_;
  std::string token_;
  grpc::Status refused_;
};

class Factory final : public grpc::experimental::ClientInterceptorFactoryInterface {
 public:
  Factory(std::shared_ptr<TokenSource> source, std::function<std::string()> traceparent)
      : source_(std::move(source)), traceparent_(std::move(traceparent)) {}

  grpc::experimental::Interceptor* CreateClientInterceptor(
      grpc::experimental::ClientRpcInfo* info) override {
    return new MetadataInterceptor(source_, traceparent_ == nullptr ? "" : traceparent_(),
                                   info->client_context());
  }

 private:
  const std::shared_ptr<TokenSource> source_;
  const std::function<std::string()> traceparent_;
};

}  // namespace

bool IsLocalAddress(const std::string& address) {
  absl::string_view host = address;
  if (absl::StartsWith(host, "unix:")) return true;
  for (const absl::string_view scheme : {"dns:///", "ipv4:"}) absl::ConsumePrefix(&host, scheme);
  // A list of addresses may lead anywhere.
  if (absl::StrContains(host, ',')) return false;
  host = host.substr(0, host.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  absl::ConsumeSuffix(&host, ".");
  const std::string bare(host);
  in_addr v4;
  in6_addr v6;
  // As resolvers read it: 127.1 is 127.0.0.1.
  if (inet_aton(bare.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  if (inet_pton(AF_INET6, bare.c_str(), &v6) == 1)
    return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == 127);
  return absl::EqualsIgnoreCase(host, "localhost");
}

std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>>
MakeMetadataInterceptors(const CallMetadata& metadata, const std::string& address, bool encrypted) {
  std::vector<std::unique_ptr<grpc::experimental::ClientInterceptorFactoryInterface>> made;
  auto source = std::make_shared<TokenSource>(metadata, address, encrypted);
  if (source->in_use() || metadata.traceparent != nullptr)
    made.push_back(std::make_unique<Factory>(std::move(source), metadata.traceparent));
  return made;
}

}  // namespace perceptrond::client
