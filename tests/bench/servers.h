// The real server and the null server, side by side, started when first asked for.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/load.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace perceptrond::bench {

// Both listen on a free port of the loopback address and on a Unix socket in `dir`.
std::vector<std::string> RealServerCommand(const std::string& dir);
std::vector<std::string> NullServerCommand(const std::string& dir);

// Not thread-safe.
class Servers {
 public:
  // Of this program; lives until it ends or Stop is called.
  static Servers& Get();
  static void Stop();

  enum class Transport { kTcp, kUnix };
  grpc::Channel& real(Transport transport = Transport::kTcp);
  grpc::Channel& null(Transport transport = Transport::kTcp);

  // Over a connection of its own.
  std::shared_ptr<grpc::Channel> NewReal() const;
  std::shared_ptr<grpc::Channel> NewNull() const;

  // On the real server: a hashed model of 2^bits weights, without an offset if `offset` is false.
  void CreateModel(const std::string& id, bool offset = true, uint32_t bits = 20);
  void DeleteModel(const std::string& id);
  // Streams `messages` round after round until a round of them has no more mistakes than
  // `mistakes`. Aborts if that does not come.
  void Converge(Messages& messages, uint64_t mistakes);

 private:
  Servers();

  testing::TempDir dir_;
  testing::Process real_;
  testing::Process null_;
  std::shared_ptr<grpc::Channel> real_channels_[2];
  std::shared_ptr<grpc::Channel> null_channels_[2];
};

}  // namespace perceptrond::bench
