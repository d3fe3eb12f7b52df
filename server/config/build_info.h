// What this binary was built from.
#pragma once

#include <string>

namespace perceptrond {

struct BuildInfo {
  // The project's version, "0.1.0".
  std::string version;
  // The source's revision, as git describes it; "unknown" if built outside of a repository.
  std::string revision;
  // "gcc 12.2.0".
  std::string compiler;
};

const BuildInfo& GetBuildInfo();

// "perceptrond 0.1.0 (revision 8b348cf, gcc 12.2.0)".
std::string VersionLine();

}  // namespace perceptrond
