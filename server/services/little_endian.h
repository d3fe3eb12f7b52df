// Numbers as raw tensor contents have them: little endian, at any address.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <type_traits>

namespace perceptrond {

template <typename T>
T LoadLittleEndian(const char* at) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  return std::bit_cast<T>(bytes);
}

template <typename T>
void AppendLittleEndian(T value, std::string& to) {
  static_assert(std::is_trivially_copyable_v<T>);
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::reverse(bytes, bytes + sizeof(T));
  to.append(bytes, sizeof(T));
}

}  // namespace perceptrond
