// Version, source revision and compiler of this binary.
#pragma once

#include <string>

namespace perceptrond {

struct BuildInfo {
  // The project's version, "0.1.0".
  std::string version;
  // The output of git describe; "unknown" if built outside of a repository.
  std::string revision;
  // "gcc 12.2.0".
  std::string compiler;
};

const BuildInfo& GetBuildInfo();

// "perceptrond 0.1.0 (revision 8b348cf, gcc 12.2.0)".
std::string VersionLine();

}  // namespace perceptrond
