// Models that are exported and imported over a real connection, whole or in part.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "perceptron/v1/history_service.grpc.pb.h"
#include "tests/integration/access_fixture.h"

namespace perceptrond::testing {

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
