// Properties that the simulation must have, on small runs.
#pragma once

namespace perceptrond::bench::fleet {

// Prints those that fail; returns whether there were none.
bool CheckFleet();

}  // namespace perceptrond::bench::fleet
