#include "client/ctl/commands/producer_lease.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "client/connection.h"

namespace perceptrond::client {
namespace {

constexpr int kMaxLeases = 64;
constexpr size_t kIdBytes = 32;

std::filesystem::path StateDirectory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state != nullptr && *state == '/') {
    return std::filesystem::path(state) / "perceptronctl" / "producers";
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::filesystem::path(home) / ".local" / "state" / "perceptronctl" / "producers";
  }
  return {};
}

}  // namespace

ProducerLease::ProducerLease() {
  const std::filesystem::path directory = StateDirectory();
  std::error_code error;
  if (!directory.empty()) std::filesystem::create_directories(directory, error);
  for (int i = 0; i < kMaxLeases && !directory.empty() && !error; ++i) {
    const std::string file = directory / std::to_string(i);
    const int descriptor = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (descriptor < 0) break;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
      descriptor_ = descriptor;
      break;
    }
    close(descriptor);
  }
  char bytes[kIdBytes];
  if (descriptor_ >= 0 && pread(descriptor_, bytes, kIdBytes, 0) == ssize_t{kIdBytes} &&
      ftruncate(descriptor_, 0) == 0) {
    id_.assign(bytes, kIdBytes);
  } else {
    id_ = RandomId();
  }
}

ProducerLease::~ProducerLease() {
  if (descriptor_ >= 0) close(descriptor_);
}

void ProducerLease::Return() {
  if (descriptor_ < 0) return;
  if (pwrite(descriptor_, id_.data(), id_.size(), 0) != static_cast<ssize_t>(id_.size())) {
    // A partial id is invalid; the next run then generates a new one.
    [[maybe_unused]] const int ignored = ftruncate(descriptor_, 0);
  }
}

}  // namespace perceptrond::client
