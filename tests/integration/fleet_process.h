// Servers of a fleet as processes of their own, over one nats-server.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/integration/fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/nats_cluster.h"
#include "tests/support/own_port.h"

namespace perceptrond::testing {

// A server, and what is called on it. With a token, all of its clients send that.
struct Member {
  Member(const std::string& data, const std::vector<std::string>& flags)
      : process(data, flags),
        channel(grpc::CreateChannel(process.address(), grpc::InsecureChannelCredentials())),
        models(v1::ModelService::NewStub(channel)),
        learning(v1::LearningService::NewStub(channel)),
        predictions(v1::PredictionService::NewStub(channel)) {}

  v1::Model Get(const std::string& id, v1::ModelView view = v1::MODEL_VIEW_WEIGHTS) {
    grpc::ClientContext context;
    v1::GetModelRequest request;
    request.set_name("models/" + id);
    request.set_view(view);
    v1::Model model;
    const grpc::Status status = models->GetModel(&context, request, &model);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return model;
  }
  // The value of a metric, as it is written; 0 if there is none. `header`: of the request.
  double Metric(const std::string& sample, const std::string& header = "") const {
    const CommandResult page = RunCommand(absl::StrCat(
        "curl -sf -H '", header, "' http://127.0.0.1:", process.metrics_port(), "/metrics"));
    std::istringstream lines(page.out);
    for (std::string line; std::getline(lines, line);) {
      if (line.rfind(sample + " ", 0) == 0)
        return std::strtod(line.c_str() + sample.size(), nullptr);
    }
    return 0;
  }

  ServerProcess process;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::ModelService::Stub> models;
  std::unique_ptr<v1::LearningService::Stub> learning;
  std::unique_ptr<v1::PredictionService::Stub> predictions;
};

class FleetProcesses : public ::testing::Test {
 protected:
  // The flags of perceptrond that name the fleet: its servers', and those of copies.
  std::string FleetFlags() const {
    return absl::StrCat(" --fleet ", fleet_, " --fleet-replicas 1 --fleet-partitions 1");
  }
  std::string url() const { return nats_.url(0); }
  // Of one partition, so that one server writes all models. `more`: flags.
  Member& Start(std::vector<std::string> more = {}) {
    const std::vector<std::string> flags = {
        "--journal",          url(), "--fleet",         fleet_,
        "--fleet-replicas",   "1",   "--fleet-timeout", "1s",
        "--fleet-partitions", "1",   "--fleet-address", absl::StrCat("127.0.0.1:", OwnPort())};
    fleet_addresses_.push_back(flags.back());
    more.insert(more.end(), flags.begin(), flags.end());
    return *members_.emplace_back(
        std::make_unique<Member>(absl::StrCat(dir_.path(), "/member", members_.size()), more));
  }
  // One that says it writes all models. Another one may, soon after.
  Member& AwaitWriter(const std::string& header = "") {
    const auto writes = [&](const auto& member) {
      return member->Metric("perceptrond_fleet_partitions_written", header) == 1;
    };
    auto found = members_.end();
    EXPECT_TRUE(Eventually([&] {
      return (found = std::find_if(members_.begin(), members_.end(), writes)) != members_.end();
    }));
    return found == members_.end() ? *members_.front() : **found;
  }
  Member& OtherThan(const Member& one) const {
    return members_[0].get() == &one ? *members_[1] : *members_[0];
  }
  CommandResult RunOnFleet(const std::string& arguments) const {
    return RunServer(arguments + FleetFlags());
  }

  const TempDir dir_;
  const NatsCluster nats_{1};
  std::string fleet_ = "f";
  std::vector<std::unique_ptr<Member>> members_;
  // Of the members.
  std::vector<std::string> fleet_addresses_;
};

}  // namespace perceptrond::testing
