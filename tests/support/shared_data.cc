#include "tests/support/shared_data.h"

#include <cstdlib>
#include <filesystem>

namespace perceptrond::testing {

std::optional<std::string> FindSharedData(const std::string& name) {
  const char* const directory = std::getenv("PERCEPTROND_DATA");
  const std::filesystem::path path =
      std::filesystem::path(directory != nullptr ? directory : PERCEPTROND_SHARED_DATA) / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path.string();
}

}  // namespace perceptrond::testing
