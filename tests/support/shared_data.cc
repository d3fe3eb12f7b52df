#include "tests/support/shared_data.h"

#include <cstdlib>
#include <filesystem>

namespace perceptrond::testing {

std::string SharedDataDirectory() {
  const char* directory = std::getenv("PERCEPTROND_DATA");
  return directory != nullptr ? directory : PERCEPTROND_SHARED_DATA;
}

std::optional<std::string> FindSharedData(const std::string& name) {
  const std::filesystem::path path = std::filesystem::path(SharedDataDirectory()) / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.string();
}

}  // namespace perceptrond::testing
