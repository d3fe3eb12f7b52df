#include "client/ctl/new_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace perceptrond::client {

NewFile::~NewFile() {
  if (descriptor_ >= 0) close(descriptor_);
  if (exists_) unlink(partial_.c_str());
}

bool NewFile::Open() {
  descriptor_ = mkstemp(partial_.data());
  exists_ = descriptor_ >= 0;
  if (!exists_) return false;
  const mode_t mask = umask(0);
  umask(mask);
  return fchmod(descriptor_, 0666 & ~mask) == 0;
}

bool NewFile::Write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool NewFile::Close() {
  if (fsync(descriptor_) != 0) return false;
  const bool closed = close(std::exchange(descriptor_, -1)) == 0;
  if (!closed || std::rename(partial_.c_str(), path_.c_str()) != 0) return false;
  exists_ = false;
  return true;
}

}  // namespace perceptrond::client
