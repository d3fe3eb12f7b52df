// The settings file of the packaged service, /etc/default/perceptrond.
#pragma once

#include <string>

namespace perceptrond::manual {

// Every flag as a variable, commented out, with its explanation and default; but for what the unit
// itself decides.
std::string ServiceSettings();

}  // namespace perceptrond::manual
