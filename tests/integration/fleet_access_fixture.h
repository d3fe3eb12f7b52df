// A fleet whose servers have certificates and know their callers by tokens, over a nats-server.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/integration/access_fixture.h"
#include "tests/integration/certificates.h"
#include "tests/integration/followed_streams_fixture.h"

namespace perceptrond::testing {

// A server of the fleet, with the log of all its calls.
struct Secured {
  Secured(const Certificates& certificates, const AccessFile& access, const std::string& nats,
          const std::string& dir, int partitions)
      : fleet_address(absl::StrCat("127.0.0.1:", OwnPort())),
        audit(dir + ".audit"),
        member(dir, {"--journal",          nats,
                     "--fleet-replicas",   "1",
                     "--fleet-partitions", absl::StrCat(partitions),
                     "--fleet-timeout",    kFleetTimeout,
                     "--fleet-address",    fleet_address,
                     "--fleet-cert",       certificates.Path("server.pem"),
                     "--fleet-key",        certificates.Path("server.key"),
                     "--fleet-ca",         certificates.Path("ca.pem"),
                     "--access-file",      access.path(),
                     "--audit-log",        audit,
                     "--slow-call",        "1us"}) {}

  // Of the metrics; 0 if there is none.
  double Metric(const std::string& sample) const {
    const CommandResult page = RunCommand(
        absl::StrCat("curl -sf -H 'Authorization: Bearer scraper-token' http://127.0.0.1:",
                     member.process.metrics_port(), "/metrics"));
    for (const absl::string_view line : absl::StrSplit(page.out, '\n')) {
      if (absl::StartsWith(line, sample + " "))
        return std::atof(std::string(line.substr(sample.size())).c_str());
    }
    return 0;
  }
  // The lines of its log with all of these.
  std::vector<std::string> Lines(const std::vector<std::string>& parts) const {
    std::vector<std::string> found;
    for (const std::string& line : member.process.Log()) {
      if (std::all_of(parts.begin(), parts.end(),
                      [&](const std::string& part) { return absl::StrContains(line, part); }))
        found.push_back(line);
    }
    return found;
  }

  const std::string fleet_address;
  const std::string audit;
  Member member;
};

inline void Authorize(grpc::ClientContext& context, const std::string& principal) {
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(60)));
  context.AddMetadata("authorization", "Bearer " + principal + "-token");
}

class SecuredFleet : public ::testing::Test {
 protected:
  SecuredFleet(const std::string& rules, int servers, int partitions) {
    access_.Write(rules);
    for (int i = 0; i < servers; ++i)
      servers_.push_back(std::make_unique<Secured>(certificates_, access_, nats_.url(0),
                                                   absl::StrCat(dir_.path(), "/", i), partitions));
    AwaitShares(servers_, partitions);
  }
  grpc::Status Create(const std::string& id) {
    grpc::ClientContext context;
    Authorize(context, "admin");
    v1::CreateModelRequest request;
    request.set_model_id(id);
    request.mutable_model()->mutable_feature_space()->mutable_dense()->set_dimension(2);
    v1::Model created;
    return servers_[0]->member.models->CreateModel(&context, request, &created);
  }
  // Rows that call for an update each time: the same row with either label.
  static v1::ExampleColumns Rows(int rows) {
    v1::ExampleColumns columns;
    columns.set_dense_width(2);
    for (int i = 0; i < rows; ++i) {
      columns.add_labels(i % 2 == 0 ? 1 : -1);
      columns.add_values(1);
      columns.add_values(1);
    }
    return columns;
  }
  grpc::Status Learn(const Secured& server, const std::string& id, int rows,
                     const std::string& principal, const std::string& trace = "") {
    grpc::ClientContext context;
    Authorize(context, principal);
    if (!trace.empty()) context.AddMetadata("traceparent", trace);
    v1::LearnRequest request;
    request.set_model("models/" + id);
    *request.mutable_columns() = Rows(rows);
    v1::LearnResponse response;
    return server.member.learning->Learn(&context, request, &response);
  }
  // The server that writes the model, and another one, once all know it.
  std::pair<Secured*, Secured*> WriterAndOther(const std::string& id) {
    const std::string written = absl::StrCat("perceptrond_model_written{model_name=\"", id, "\"}");
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      double all = 0;
      std::pair<Secured*, Secured*> found = {nullptr, nullptr};
      for (const auto& server : servers_) {
        if (!Learn(*server, id, 1, "admin").ok()) continue;
        const double writes = server->Metric(written);
        all += writes;
        (writes == 1 ? found.first : found.second) = server.get();
      }
      if (all == 1 && found.first != nullptr && found.second != nullptr) return found;
    }
    ADD_FAILURE() << id << " has no writer";
    return {servers_[0].get(), servers_[1].get()};
  }
  void AwaitCreated(const std::string& id) {
    grpc::Status created = Create(id);
    for (const absl::Time end = absl::Now() + kLong; !created.ok() && absl::Now() < end;)
      created = Create(id);
    ASSERT_TRUE(created.ok()) << created.error_message();
  }
  // Calls until lines with all of the parts say that the part `name` took some time, and returns these lines. An
  // append can be there before it is waited for, and a second has room for ten lines only.
  static std::vector<std::string> CallUntil(const std::function<void()>& call,
                                            const Secured& server,
                                            const std::vector<std::string>& parts,
                                            const std::string& name) {
    for (const absl::Time end = absl::Now() + kLong; absl::Now() < end;) {
      call();
      const std::vector<std::string> found = server.Lines(parts);
      if (std::any_of(found.begin(), found.end(),
                      [&](const std::string& line) { return PartOf(line, name) > 0; }))
        return found;
    }
    ADD_FAILURE() << parts[0] << ": no line with " << name;
    return {};
  }
  static double PartOf(const std::string& line, const std::string& name) {
    const size_t at = line.find(name);
    return at == std::string::npos ? 0 : std::atof(line.c_str() + at + name.size());
  }
  static grpc::Status Call(const std::string& address,
                           const std::shared_ptr<grpc::ChannelCredentials>& credentials,
                           const std::string& token = "") {
    grpc::ChannelArguments arguments;
    arguments.SetSslTargetNameOverride("perceptrond");
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(10)));
    if (!token.empty()) context.AddMetadata("authorization", "Bearer " + token);
    v1::ListModelsResponse models;
    return v1::ModelService::NewStub(grpc::CreateCustomChannel(address, credentials, arguments))
        ->ListModels(&context, v1::ListModelsRequest(), &models);
  }

  const TempDir dir_;
  const Certificates certificates_;
  const AccessFile access_;
  const NatsCluster nats_{1};
  std::vector<std::unique_ptr<Secured>> servers_;
};

}  // namespace perceptrond::testing
