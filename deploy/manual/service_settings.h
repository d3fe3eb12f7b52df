// The settings file of the packaged service, /etc/default/perceptrond.
#pragma once

#include <string>

namespace perceptrond::manual {

// All flags as variables, commented out, with description and default, except those set by the
// unit.
std::string ServiceSettings();

}  // namespace perceptrond::manual
