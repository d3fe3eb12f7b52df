// perceptronctl: perceptrond's command line.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>

#include "client/ctl/run.h"

namespace {

// Where the caller has closed a standard descriptor, the next file or socket would take its number,
// and be read as input or written as output. Reads of the first and writes to the others fail
// instead.
void OccupyStandardDescriptors(int, char**, char**) {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(descriptor, F_GETFD) >= 0 || errno != EBADF) continue;
    // Takes the lowest free number, which is this one.
    [[maybe_unused]] const int taken =
        open("/dev/null", descriptor == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

// Runs before the initializers of shared libraries: gRPC's opens a descriptor.
[[gnu::section(".preinit_array"),
  gnu::used]] void (*const occupy)(int, char**, char**) = OccupyStandardDescriptors;

}  // namespace

int main(int argc, char** argv) {
  // Errors already contain what gRPC would log.
  setenv("GRPC_VERBOSITY", "NONE", 0);
  const int code = perceptrond::client::Run(argc, argv);
  // Without exit handlers: OpenSSL's and others free what gRPC's threads, which run on, may be using.
  std::fflush(nullptr);
  _exit(code);
}
