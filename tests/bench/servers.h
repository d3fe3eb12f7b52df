// The real server and the null server, side by side, started when first asked for.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/load.h"
#include "tests/bench/rows.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {

// The servers that are measured: ours, and one with our transport that learns nothing.
enum class Server { kReal, kNull };

// Not thread-safe.
class Servers {
 public:
  // The servers of this program; they live until it ends.
  static Servers& Get();

  grpc::Channel& channel(Server server) { return *running(server).channel; }
  // Used by the server's process so far.
  double ProcessorSeconds(Server server) const;
  // Commits of the real server's journal so far.
  uint64_t JournalCommits() const;
  // On the disk of the real server's journal.
  const std::string& directory() const { return dir_.path(); }

  // Creates a model on the real server, in a named space or a hashed one of kHashedWeights.
  void CreateModel(const std::string& id, bool named_space, bool offset);
  // Streams `messages` to the real server, round after round, until a round has no more mistakes than
  // `mistakes`. Aborts if that does not come.
  void Converge(Messages& messages, uint64_t mistakes);

 private:
  struct Running {
    explicit Running(const std::vector<std::string>& command);

    testing::Process process;
    std::shared_ptr<grpc::Channel> channel;
  };

  Servers();
  const Running& running(Server server) const { return server == Server::kReal ? real_ : null_; }

  const testing::TempDir dir_;
  const Running real_;
  const Running null_;
};

}  // namespace perceptrond::bench
