// Load by streams: of examples to learn, and of questions.
#pragma once

#include <memory>

#include "client/load/load.h"

namespace perceptrond::client {

std::unique_ptr<Load> MakeLearnLoad(const Client& client, const LoadOptions& options,
                                    const MadeRowsOptions& rows);
std::unique_ptr<Load> MakePredictLoad(const Client& client, const LoadOptions& options,
                                      const MadeRowsOptions& rows);

}  // namespace perceptrond::client
