// Load by unary calls, one after the other.
#pragma once

#include <memory>

#include "client/load/load.h"

namespace perceptrond::client {

// Of LoadOptions::work kCall. A call that fails for a while is made again, as streams are.
std::unique_ptr<Load> MakeCallLoad(const Client& client, const LoadOptions& options,
                                   const MadeRowsOptions& rows);

}  // namespace perceptrond::client
