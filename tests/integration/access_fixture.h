// A server with an access file, and callers with and without tokens. Models that are exported and imported over a real connection,
// whole or in part.
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/fixture.h"
#include "tests/support/wait_until.h"

namespace perceptrond::testing {

// The principals admin, keeper, trainer, reader and scraper; the token of NAME is "NAME-token". Written before
// the server starts.
class AccessFile {
 public:
  AccessFile() { Write(Text()); }

  std::string path() const { return dir_.path() + "/access"; }
  std::string audit_log() const { return dir_.path() + "/audit"; }
  // Replaces the file in one step, as tools do that fear a half-written one.
  void Write(const std::string& text) const {
    std::ofstream(path() + ".new") << text;
    chmod((path() + ".new").c_str(), 0600);
    rename((path() + ".new").c_str(), path().c_str());
  }
  // The rules of all principals but one.
  static std::string Text(const std::string& without = "") {
    std::string text;
    const auto add = [&](const std::string& name, const std::string& rights) {
      if (name == without) return;
      absl::StrAppend(&text, "principal { name: '", name, "' token_sha256: '",
                      Digest(name + "-token"), "' ", rights, " }\n");
    };
    add("admin", "allow { role: ADMIN models: '' } right: HEALTH right: REFLECTION");
    add("keeper", "allow { role: ADMIN models: 'spam-' }");
    add("trainer", "allow { role: LEARN models: 'spam-' }");
    add("reader",
        "allow { role: READ models: 'spam-' } allow { role: READ models: 'x' } right: PAGE");
    add("scraper", "right: METRICS");
    return text;
  }
  static std::string Digest(const std::string& token) {
    const CommandResult sum = RunCommand("printf %s '" + token + "' | sha256sum | cut -d' ' -f1");
    return sum.out.substr(0, 64);
  }

 private:
  TempDir dir_;
};

class AccessTest : public AccessFile, public ServerTest {
 protected:
  // All calls are slow ones, whose lines name the principal.
  AccessTest()
      : ServerTest({"--access-file", AccessFile::path(), "--audit-log", audit_log(), "--slow-call",
                    "1us"}) {}

  // Adds the token that the principal of this name has; none for "".
  static void Authorize(grpc::ClientContext& context, const std::string& principal) {
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Hours(1)));
    if (!principal.empty()) context.AddMetadata("authorization", "Bearer " + principal + "-token");
  }
  // Calls a method as a principal.
  std::string As(const std::string& principal, const std::string& method,
                 const std::string& request, google::protobuf::Message* answer = nullptr) {
    return Call(method, request, answer, principal.empty() ? "" : principal + "-token");
  }
  std::string CreateAs(const std::string& principal, const std::string& id) {
    return As(principal, "ModelService/CreateModel",
              "model_id: '" + id + "' model { feature_space { dense { dimension: 2 } } }");
  }
  // Creates the alias, or moves it to the model.
  void NameAs(const std::string& principal, const std::string& alias, const std::string& model) {
    ASSERT_EQ(As(principal, "AliasService/UpdateAlias",
                 absl::StrCat("alias { name: 'aliases/", alias, "' model: 'models/", model,
                              "' } update_mask { paths: 'model' } allow_missing: true")),
              "OK");
  }
  std::string GetAs(const std::string& principal, const std::string& id) {
    return As(principal, "ModelService/GetModel", "name: 'models/" + id + "'");
  }
  // Replaces the rules by others, and returns once the server uses them.
  void Replace(const std::string& text) {
    const auto reloads = [this] {
      const std::vector<std::string> lines = absl::StrSplit(ReadAll(audit_log()), '\n');
      return std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
        return absl::StrContains(line, "reload access file") &&
               absl::StrContains(line, "\"outcome\":\"OK\"");
      });
    };
    const auto before = reloads();
    Write(text);
    server_.Signal(SIGHUP);
    WaitUntil([&] { return reloads() > before; });
  }
};

inline constexpr char kAdminToken[] = "admin-token";
inline constexpr char kKeeperToken[] = "keeper-token";

// A model's file that was exported at another time has as many bytes, but for those of the time.
inline bool IsAsLong(const std::string& file, const std::string& other) {
  constexpr size_t kTimeBytes = 16;
  return file.size() <= other.size() + kTimeBytes && other.size() <= file.size() + kTimeBytes;
}

// An import whose pieces a test sends one by one.
class ImportCall {
 public:
  ImportCall(v1::HistoryService::Stub& stub, const std::string& id,
             const std::string& request_id = "", const std::string& token = "") {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    writer_ = stub.ImportModel(&context_, &model_);
    request_.set_new_name("models/" + id);
    request_.set_request_id(request_id);
  }

  // Only the first message has the names.
  bool Send(const std::string& piece) {
    request_.set_piece(piece);
    const bool sent = writer_->Write(request_);
    request_.Clear();
    return sent;
  }
  // In pieces of this size, as far as the server takes them.
  void SendAll(const std::string& bytes, size_t piece_bytes = 60 << 10) {
    for (size_t at = 0; at < bytes.size(); at += piece_bytes) {
      if (!Send(bytes.substr(at, piece_bytes))) return;
    }
  }
  // The next message.
  v1::ImportModelRequest& next() { return request_; }
  void HalfClose() { writer_->WritesDone(); }
  void Cancel() { context_.TryCancel(); }
  // Waits for the server to end the call.
  grpc::Status AwaitEnd() { return writer_->Finish(); }
  grpc::Status Finish() {
    HalfClose();
    return AwaitEnd();
  }
  const v1::Model& model() const { return model_; }

 private:
  grpc::ClientContext context_;
  v1::Model model_;
  std::unique_ptr<grpc::ClientWriter<v1::ImportModelRequest>> writer_;
  v1::ImportModelRequest request_;
};

// An export that a test reads piece by piece.
class ExportCall {
 public:
  ExportCall(v1::HistoryService::Stub& stub, const std::string& id, const std::string& token = "") {
    if (!token.empty()) context_.AddMetadata("authorization", "Bearer " + token);
    v1::ExportModelRequest request;
    request.set_name("models/" + id);
    reader_ = stub.ExportModel(&context_, request);
  }

  // False at the end.
  bool ReadPiece() {
    v1::ExportModelResponse response;
    if (!reader_->Read(&response)) return false;
    file_ += response.piece();
    return true;
  }
  grpc::Status Finish() {
    while (ReadPiece()) {
    }
    return reader_->Finish();
  }
  const std::string& file() const { return file_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<v1::ExportModelResponse>> reader_;
  std::string file_;
};

// Exports and imports of a server with any flags.
template <typename Base>
class Transfers : public Base {
 protected:
  template <typename... Arguments>
  explicit Transfers(Arguments&&... arguments) : Base(std::forward<Arguments>(arguments)...) {
    Begin();
  }
  void Begin() { history_ = v1::HistoryService::NewStub(this->channel_); }
  // For exports that the server has not sent to their end while the test reads no more.
  std::unique_ptr<v1::HistoryService::Stub> NarrowHistory() const {
    return v1::HistoryService::NewStub(this->NarrowChannel());
  }
  void CrashAndRestart() {
    this->server_.Kill();
    RestartAfterEnd();
  }
  void RestartAfterEnd() {
    this->Restart();
    Begin();
  }
  // A model whose file has some 2.5 MB times `size`.
  void CreateLarge(const std::string& id, int size, const std::string& token = "") {
    constexpr uint32_t kAtOnce = 65'536;
    const auto dimension = static_cast<uint32_t>(size) << 18;
    ASSERT_EQ(this->Call("ModelService/CreateModel",
                         absl::StrCat("model_id: '", id,
                                      "' model { feature_space { dense { dimension: ", dimension,
                                      " } } }"),
                         nullptr, token),
              "OK");
    // Most weights are not 0, so that all are listed.
    for (uint32_t begin = 0; begin < dimension / 4 * 3; begin += kAtOnce) {
      v1::LearnRequest request;
      request.set_model("models/" + id);
      v1::ExampleColumns& columns = *request.mutable_columns();
      for (uint32_t i = begin; i < begin + kAtOnce; ++i) {
        columns.add_indices(i);
        columns.add_values(1 + static_cast<float>(i % 7));
      }
      columns.add_row_ends(static_cast<uint32_t>(columns.indices_size()));
      columns.add_labels(begin / kAtOnce % 2 == 0 ? 1 : -1);
      ASSERT_EQ(Outcome(this->CallRaw("/perceptron.v1.LearningService/Learn",
                                      {request.SerializeAsString()}, nullptr, token)),
                "OK");
    }
  }
  std::string Export(const std::string& id, const std::string& token = "") {
    ExportCall call(*history_, id, token);
    EXPECT_EQ(Outcome(call.Finish()), "OK");
    return call.file();
  }
  bool Exists(const std::string& id, const std::string& token = "") {
    const std::string outcome =
        this->Call("ModelService/GetModel", "name: 'models/" + id + "'", nullptr, token);
    EXPECT_TRUE(outcome == "OK" || outcome == "NOT_FOUND MODEL_NOT_FOUND") << outcome;
    return outcome == "OK";
  }

  std::unique_ptr<v1::HistoryService::Stub> history_;
};

}  // namespace perceptrond::testing
