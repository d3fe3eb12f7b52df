// The makers of the formats, each defined in the file that bears its name. Preconditions: as
// MakeFormat() has checked.
#pragma once

#include <memory>

#include "client/format/format.h"

namespace perceptrond::client {

std::unique_ptr<Format> MakeSvmlight(const FormatOptions& options);
std::unique_ptr<Format> MakeVw(const FormatOptions& options);
std::unique_ptr<Format> MakeCsv(const FormatOptions& options);
std::unique_ptr<Format> MakeJsonl(const FormatOptions& options);
std::unique_ptr<Format> MakeText(const FormatOptions& options);

}  // namespace perceptrond::client
