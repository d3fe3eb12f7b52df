// Files of settings and secrets that a server reads while it serves.
#pragma once

#include <sys/stat.h>

#include <string>

#include "absl/status/statusor.h"

namespace perceptrond {

// The whole file, and what stat says of it unless `found` is null. Neither waits for a pipe's writer
// nor reads a device, which has no end. NOT_FOUND: it cannot be read, or is no regular file;
// INVALID_ARGUMENT: it has more than `max_bytes`. Any thread.
absl::StatusOr<std::string> ReadRegularFile(const std::string& path, size_t max_bytes,
                                            struct stat* found);

}  // namespace perceptrond
