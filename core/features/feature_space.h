// Where a model's examples live, how features find their weights, and Phi between the two: which
// map takes examples into the space that the weights live in. docs/adr/0012-feature-maps.md says
// why these maps, and why the journal holds what they map to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/vector/name.h"

namespace perceptrond {

// Two groups of names: each feature of one is multiplied with each of the other. A feature's group
// is its name up to the first '^', as clients name Vowpal Wabbit's namespaces ("user^alice" is of
// group "user"); a name without '^' is of group "", the default namespace.
struct GroupPair {
  std::string first;
  std::string second;
};

// Phi as a setting. A plain value; part of a model's feature space, fixed for its life.
struct FeatureMap {
  enum class Kind : uint8_t {
    // Phi(x) = x.
    kIdentity,
    // All monomials of total degree 1 to `degree`, each with coefficient 1, in any space:
    // core/features/polynomial.h.
    kPolynomial,
    // The features, and products of groups of them: core/features/products.h. Features with names
    // only: a hashed space that is sent names, or a named space.
    kProducts,
    // Random Fourier features of the kernel exp(-gamma ||x - z||^2): core/features/fourier.h. From
    // any space into a dense one.
    kFourier,
  };

  static constexpr uint32_t kMinDegree = 2;
  static constexpr uint32_t kMaxDegree = 4;
  static constexpr uint32_t kMaxPairs = 256;
  // A feature's name is its group, a separator of one byte, and a rest that may be empty.
  static constexpr size_t kMaxGroupBytes = kMaxNameBytes - 1;
  static constexpr uint32_t kMaxFourierDimension = 1U << 20;
  static constexpr double kMaxGamma = 1e12;

  Kind kind = Kind::kIdentity;
  // kPolynomial: kMinDegree to kMaxDegree.
  uint32_t degree = kMinDegree;
  // kPolynomial, kProducts: no feature is multiplied with itself. With it, degree 2 takes (x1, x2)
  // to (x1, x2, x1 x2), and XOR is separable.
  bool interactions_only = false;
  // kProducts: 1 to kMaxPairs, none twice, in either order. A group may be paired with itself: then
  // each two of its features are multiplied once, and each with itself unless interactions_only.
  std::vector<GroupPair> pairs;
  // kFourier: the number of features it maps to, 1 to kMaxFourierDimension. The error in the kernel
  // falls as 1 / sqrt(dimension); time and weights grow with it.
  uint32_t dimension = 0;
  // kFourier: above 0, at most kMaxGamma; the kernel's width is 1 / sqrt(2 gamma).
  double gamma = 0;
  // kFourier: which random features. The same seed gives the same ones.
  uint64_t seed = 0;
};

// How a text becomes features: core/features/text.h. A plain value.
struct TextOptions {
  // The value of an n-gram.
  enum class Value : uint8_t { kPresence, kCount, kLogCount };

  static constexpr uint32_t kMaxWords = 5;
  static constexpr uint32_t kMaxCharacters = 10;
  static constexpr uint32_t kDefaultWords = 2;
  static constexpr uint32_t kDefaultBits = 20;
  // With inverse_document_frequency.
  static constexpr uint32_t kMaxFrequencyBits = 24;

  Value value = Value::kPresence;
  // The most words of an n-gram; 0: no words.
  uint32_t max_words = kDefaultWords;
  // The fewest and the most characters of an n-gram; 0: no characters.
  uint32_t min_characters = 0;
  uint32_t max_characters = 0;
  // A row's values are not scaled to an l2 norm of 1.
  bool keep_norm = false;
  // Rows are multiplied by inverse document frequencies, before the norm. It is the mapper that scales
  // them (core/features/document_frequencies.h).
  bool inverse_document_frequency = false;
  // IcuVersion of the server that created the model.
  std::string icu_version = {};
};

// A space and its map. A plain value.
struct FeatureSpace {
  enum class Kind : uint8_t {
    // Vectors of a fixed dimension, addressed by index.
    kDense,
    // 2^bits slots, addressed by index or by hashed name.
    kHashed,
    // One weight a name, from when an update first needs it.
    kNamed,
  };

  static constexpr uint32_t kMaxBits = 28;
  static constexpr uint32_t kMaxFeatures = 1U << kMaxBits;
  static constexpr uint32_t kDefaultCap = 1U << 20;

  Kind kind = Kind::kDense;
  // kDense: the dimension. kHashed: 2^bits. kNamed: the most names.
  uint32_t size = 0;
  // Phi, applied to every example. CheckFeatureMap says which the space can have.
  FeatureMap map = {};
  // kHashed: not absent: examples are texts, whose n-grams are hashed names.
  std::optional<TextOptions> text = std::nullopt;

  // The space that Phi maps to, where the weights live: the same one, but that a polynomial makes a
  // dense space wider, and that Fourier features are dense whatever they were made from. Its own
  // map is the identity, and its examples are no texts. O(1).
  FeatureSpace mapped() const;

  // How many weights a model has at revision 0. In a named space weight 0 stands for every name
  // that has none yet: it is always zero, so unknown names score nothing without a branch.
  uint32_t initial_weights() const;
};

// A setting that is out of range: its field of FeatureMap, and why in words for a person.
struct MapProblem {
  std::string field;
  std::string description;
};

// Whether space.map is one that the space can have, its weights no more than
// FeatureSpace::kMaxFeatures. O(pairs log pairs).
std::optional<MapProblem> CheckFeatureMap(const FeatureSpace& space);

}  // namespace perceptrond
