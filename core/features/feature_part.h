// One feature of a mapped row, with the name a person knows it by.
#pragma once

#include <cstdint>
#include <string>

namespace perceptrond {

// A plain value. See Mapper::Parts.
struct FeaturePart {
  // As it was sent, or derived by Phi: "x1*x2", and in a dense space "0*1" of the factors' indices.
  // Empty where features have numbers only: dense rows and slots, products of slots, Fourier's.
  std::string name;
  // Where its weight lies. In a named space Dictionary::kUnknown for a name that has none.
  uint32_t index = 0;
  float value = 0;
};

}  // namespace perceptrond
