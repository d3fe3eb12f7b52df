// A port for a server that is stopped and started again at the same address.
#pragma once

namespace perceptrond::testing {

// A free port of the loopback address, another at each call of all tests that run here, as those of
// free_ports in tests/deploy/processes.py. The system gives it to no outgoing connection, as it may
// a port that it chose itself, while the server is down.
int OwnPort();

}  // namespace perceptrond::testing
