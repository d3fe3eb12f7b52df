// Fleets' journals on real servers, which tests of one process share: starting a cluster takes seconds.
#pragma once

#include <memory>
#include <string>

#include "core/journal/jetstream/jetstream_journal.h"
#include "tests/support/nats_cluster.h"

namespace perceptrond::testing {

// A cluster of this many servers, until the process ends. It is not to be disturbed.
NatsCluster& SharedNats(int servers);
// A name that no other fleet of this process has.
std::string NewFleet();
// Opens the journal of a fleet with two partitions, which every server keeps. Waits until the cluster
// can have it.
std::unique_ptr<JetStreamJournal> OpenFleet(const NatsCluster& cluster, const std::string& fleet);

}  // namespace perceptrond::testing
