// The real server and the null server, side by side, started when first asked for.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "perceptron/v1/model.pb.h"
#include "tests/bench/load.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {

// The servers that are measured: ours, and one with our transport that learns nothing.
enum class Server { kReal, kNull };

// It listens on a free port of the loopback address and on a Unix socket in `dir`.
std::vector<std::string> ServerCommand(Server server, const std::string& dir);

// Not thread-safe.
class Servers {
 public:
  // Of this program; lives until it ends or Stop is called.
  static Servers& Get();
  static void Stop();

  enum class Transport { kTcp, kUnix };
  grpc::Channel& channel(Server server, Transport transport = Transport::kTcp);
  // What the server's process has used so far.
  double ProcessorSeconds(Server server) const;
  // Commits of the real server's journal so far.
  uint64_t JournalCommits() const;
  // On the disk of the real server's journal.
  const std::string& directory() const { return dir_.path(); }

  // On the real server, from here on: a hashed model of 2^bits weights, without an offset if `offset` is false.
  void CreateModel(const std::string& id, bool offset = true, uint32_t bits = 20);
  void CreateModel(const std::string& id, const ::perceptron::v1::Model& model);
  void DeleteModel(const std::string& id);
  // Streams `messages` round after round until a round of them has no more mistakes than
  // `mistakes`. Aborts if that does not come.
  void Converge(Messages& messages, uint64_t mistakes);

 private:
  struct Running {
    explicit Running(Server server, const std::string& dir);

    testing::Process process;
    std::shared_ptr<grpc::Channel> channels[2];
  };

  Servers();
  const Running& running(Server server) const { return *running_[static_cast<int>(server)]; }

  testing::TempDir dir_;
  std::unique_ptr<Running> running_[2];
};

}  // namespace perceptrond::bench
