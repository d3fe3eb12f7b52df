#include "client/names.h"

#include <random>

#include "absl/strings/str_cat.h"

namespace perceptrond::client {
namespace {

constexpr std::string_view kCollection = "models/";

}  // namespace

std::string ModelName(std::string_view name) {
  return name.starts_with(kCollection) ? std::string(name) : std::string(kCollection).append(name);
}

std::string_view ModelId(std::string_view name) {
  return name.starts_with(kCollection) ? name.substr(kCollection.size()) : name;
}

std::string RandomId() {
  std::random_device source;
  std::string id;
  for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(source(), absl::kZeroPad8));
  return id;
}

}  // namespace perceptrond::client
