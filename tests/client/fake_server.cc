#include "tests/client/fake_server.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "client/error.h"
#include "tests/client/named_columns.h"

namespace perceptrond::client {
namespace {

std::vector<uint32_t> IdsOf(const v1::ExampleColumns& columns, NameTableReader* table) {
  if (!columns.has_feature_names() && !columns.has_stream_names())
    return {columns.indices().begin(), columns.indices().end()};
  std::vector<uint32_t> ids;
  for (const NamedFeatures& features : table->Read(columns))
    ids.push_back(static_cast<uint32_t>(std::stoul(features.begin()->first.substr(1))));
  return ids;
}

grpc::Status NoTables() {
  return ToGrpcStatus(
      MakeError(absl::StatusCode::kInvalidArgument, "UNSUPPORTED_FIELD", "there are no tables"));
}

grpc::Status TooLarge() {
  return ToGrpcStatus(
      MakeError(absl::StatusCode::kResourceExhausted, "MESSAGE_TOO_LARGE", "too large"));
}

}  // namespace

Row Example(uint32_t id) {
  Row row;
  row.indices = {id};
  row.label = 1;
  return row;
}

Row LargeExample(uint32_t id, size_t bytes) {
  Row row = NamedExample(id);
  for (size_t i = 0; i < bytes / 1000; ++i)
    row.AddName(std::to_string(id) + "-" + std::to_string(i) + std::string(990, '-'));
  row.values.resize(row.name_count(), 2);
  return row;
}

Row NamedExample(uint32_t id) {
  Row row;
  row.kind = RowKind::kNamed;
  row.label = 1;
  row.AddName("z" + std::to_string(id % 3));
  row.AddName("n" + std::to_string(id));
  row.AddName("z" + std::to_string(3 + id % 7));
  row.values = {1, static_cast<float>(id), 3};
  return row;
}

std::vector<uint32_t> UpTo(uint32_t n) {
  std::vector<uint32_t> ids(n);
  std::iota(ids.begin(), ids.end(), 0u);
  return ids;
}

std::chrono::steady_clock::time_point StandingClock() { return {}; }

std::function<std::chrono::steady_clock::time_point()> HurryingClock() {
  const auto time = std::make_shared<std::atomic<int>>(0);
  return
      [time] { return std::chrono::steady_clock::time_point(std::chrono::milliseconds(++*time)); };
}

FakeServer::FakeServer() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  builder.RegisterService(&predictions_);
  server_ = builder.BuildAndStart();
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

std::shared_ptr<Connection> FakeServer::Connect() {
  return MakeConnection(server_->InProcessChannel(grpc::ChannelArguments()));
}

std::string FakeServer::address() const { return absl::StrCat("127.0.0.1:", port_); }

FakeServer::ProducerState FakeServer::producer(const std::string& id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return producers_[id];
}

int64_t FakeServer::openings() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return openings_;
}

grpc::Status FakeServer::Learn(grpc::ServerContext* context, const v1::LearnRequest* request,
                               v1::LearnResponse* response) {
  response->mutable_result()->set_examples(
      static_cast<uint64_t>(request->columns().row_ends_size()));
  return on_learn ? on_learn(*context, *request) : grpc::Status::OK;
}

grpc::Status FakeServer::Open(const v1::LearnStreamRequest& request, v1::StreamOpened* opened) {
  ++openings_;
  if (!refusal.ok()) return refusal;
  if (refuses_name_tables && request.name_table_size() > 0) return NoTables();
  ProducerState& state = producers_[request.producer().id()];
  if (crash_on_drop && static_cast<int64_t>(state.account.size()) > state.durable) {
    // A producer may claim only what was acknowledged.
    const int64_t claimed =
        request.producer().has_resume() ? request.producer().resume().acknowledged_offset() : -1;
    if (claimed > state.acknowledged) return grpc::Status(grpc::StatusCode::DATA_LOSS, "claimed");
    state.account.resize(static_cast<size_t>(std::max(state.durable, claimed + 1)));
  }
  // Telling a producer where it stands acknowledges all before.
  state.acknowledged = static_cast<int64_t>(state.account.size()) - 1;
  opened->set_model_uid(model_uid);
  opened->set_next_offset(static_cast<int64_t>(state.account.size()));
  opened->set_passes(state.passes);
  return grpc::Status::OK;
}

void FakeServer::Account(const v1::LearnStreamRequest& request, const std::vector<uint32_t>& ids,
                         size_t rows, ProducerState* state, v1::LearnResult* result) {
  const auto next = static_cast<int64_t>(state->account.size());
  const int64_t first = request.has_first_offset() ? request.first_offset() : next;
  if (first > next) {
    *result->mutable_error() =
        ToRpcStatus(MakeError(absl::StatusCode::kOutOfRange, "OFFSET_GAP", "a gap"));
    return;
  }
  if (on_result) on_result(request, result);
  if (result->has_error()) return;
  for (size_t row = 0; row < rows; ++row) {
    if (first + static_cast<int64_t>(row) < next) {
      result->set_duplicates(result->duplicates() + 1);
      continue;
    }
    const uint32_t id = ids[row];
    state->account.push_back(id);
    result->set_examples(result->examples() + 1);
    if (id % kUpdateEvery == 0) {
      result->set_updates(result->updates() + 1);
      state->durable = static_cast<int64_t>(state->account.size());
    }
  }
}

grpc::Status FakeServer::LearnStream(grpc::ServerContext*, LearnStreamIo* io) {
  v1::LearnStreamRequest request;
  v1::LearnStreamResponse response;
  std::string id;
  bool include_report = false;
  NameTableReader table(0);
  for (int64_t number = 0; io->Read(&request); ++number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (number == 0) {
      id = request.producer().id();
      include_report = request.include_report();
      grpc::Status status = Open(request, response.mutable_opened());
      if (!status.ok()) return status;
      const uint32_t names = std::min(request.name_table_size(), most_table_names);
      response.mutable_opened()->set_name_table_size(names);
      response.mutable_opened()->set_max_message_bytes(static_cast<int64_t>(most_message_bytes));
      table = NameTableReader(names);
      if (answer_opening) response.add_results();
      io->Write(response);
      response.Clear();
      continue;
    }
    if (most_message_bytes > 0 && request.ByteSizeLong() > most_message_bytes) return TooLarge();
    ProducerState& state = producers_[id];
    const std::vector<uint32_t> ids = IdsOf(request.columns(), &table);
    const Fate what = fate ? fate(request) : Fate::kAnswer;
    const grpc::Status dropped(grpc::StatusCode::UNAVAILABLE, "dropped");
    if (what == Fate::kDropBefore) return dropped;
    v1::LearnResult result;
    result.set_message_number(number);
    Account(request, ids, what == Fate::kDropHalfway ? ids.size() / 2 : ids.size(), &state,
            &result);
    if (what == Fate::kDropHalfway) return dropped;
    if (request.completed_pass() > 0 && !result.has_error()) {
      if (request.completed_pass() == state.passes + 1) {
        ++state.passes;
        state.durable = static_cast<int64_t>(state.account.size());
        state.pass.set_number(state.passes);
        state.pass.set_examples(state.account.size());
      }
      if (request.completed_pass() == state.passes) *result.mutable_completed_pass() = state.pass;
    }
    if (what == Fate::kDropAfter) return dropped;
    result.set_acknowledged_offset(static_cast<int64_t>(state.account.size()) - 1);
    *response.add_results() = result;
    if (include_report) response.mutable_report()->set_examples(state.account.size());
    // An answer that marks a pass is waited for, so it cannot be held back.
    if (response.results_size() >= answers_together || request.completed_pass() > 0) {
      state.acknowledged = static_cast<int64_t>(state.account.size()) - 1;
      io->Write(response);
      response.Clear();
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  if (response.results_size() > 0) io->Write(response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Predictions::PredictStream(grpc::ServerContext*, PredictStreamIo* io) {
  v1::PredictRequest request;
  NameTableReader table(0);
  for (int answered = 0; io->Read(&request); ++answered) {
    if (answered == server_.predict_break_after) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dropped");
    }
    if (server_.most_message_bytes > 0 && request.ByteSizeLong() > server_.most_message_bytes)
      return TooLarge();
    v1::PredictResponse response;
    if (answered == 0) {
      if (request.name_table_size() > 0 && server_.refuses_name_tables) {
        return NoTables();
      }
      const uint32_t names = std::min(request.name_table_size(), server_.most_table_names);
      response.set_name_table_size(names);
      response.set_max_message_bytes(static_cast<int64_t>(server_.most_message_bytes));
      table = NameTableReader(names);
    }
    for (const uint32_t index : IdsOf(request.columns(), &table)) {
      response.add_scores(static_cast<float>(index));
      response.add_predicted_labels(index % 2 == 0 ? 1 : -1);
    }
    io->Write(response);
  }
  return grpc::Status::OK;
}

}  // namespace perceptrond::client
