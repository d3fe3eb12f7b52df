#include "core/journal/rocksdb/disk_reserve.h"

#include <fcntl.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace perceptrond {
namespace {

// Opening a database writes the index of its files anew, and a log.
constexpr off_t kBytes = 4 << 20;

std::string PathIn(const std::string& directory) { return absl::StrCat(directory, "/RESERVE"); }

}  // namespace

void MakeDiskReserve(const std::string& directory) {
  const std::string path = PathIn(directory);
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return;
  const bool made = posix_fallocate(file, 0, kBytes) == 0;
  close(file);
  if (!made) unlink(path.c_str());
}

bool HasDiskReserve(const std::string& directory) {
  return access(PathIn(directory).c_str(), F_OK) == 0;
}

bool ReleaseDiskReserve(const std::string& directory) {
  return unlink(PathIn(directory).c_str()) == 0;
}

}  // namespace perceptrond
