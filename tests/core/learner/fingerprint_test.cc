// What every learner of the catalogue makes of fixed rows, to the bit: a change of these figures is
// a change of what journals replay to. The rows come from a generator that is the same everywhere.
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/core/learner/conformance.h"

namespace perceptrond::testing {
namespace {

constexpr size_t kRows = 2000;

class Random {
 public:
  explicit Random(uint64_t seed) : state_(88172645463325252ULL + seed) {}
  uint32_t Next(uint32_t below) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 32) % below;
  }

 private:
  uint64_t state_;
};

class Hash {
 public:
  void Add(uint64_t value) {
    value_ = (value_ ^ value) * 1099511628211ULL;
    value_ ^= value_ >> 29;
  }
  void Add(double value) { Add(std::isnan(value) ? uint64_t{1} : BitsOf(value)); }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 1469598103934665603ULL;
};

// Rows whose label is that of the greatest of fixed random scores, one in twenty wrong.
SvmExample MakeExample(Random& random, bool dense, const std::vector<std::vector<double>>& truth) {
  SvmExample example;
  const auto dimension = static_cast<uint32_t>(truth[0].size());
  for (uint32_t i = dense ? 0 : random.Next(40); i < dimension;
       i += dense ? 1 : 1 + random.Next(40)) {
    example.indices.push_back(i);
    example.values.push_back(static_cast<float>(static_cast<int>(random.Next(2001)) - 1000) / 512);
  }
  double greatest = -1e300;
  for (size_t k = 0; k < truth.size(); ++k) {
    double score = 0;
    for (size_t j = 0; j < example.values.size(); ++j)
      score += truth[k][example.indices[j]] * static_cast<double>(example.values[j]);
    if (score <= greatest) continue;
    greatest = score;
    example.label = static_cast<int>(k);
  }
  const auto classes = static_cast<uint32_t>(truth.size());
  if (classes == 1) example.label = greatest > 0 ? 1 : -1;
  if (random.Next(20) == 0)
    example.label = classes == 1 ? -example.label : static_cast<int>(random.Next(classes));
  return example;
}

LearnerSettings SettingsOf(const CatalogueEntry& entry, uint32_t classes, bool first) {
  LearnerSettings settings = TightSettings(entry);
  settings.bias_input = first ? 1 : 0.3;
  settings.tie_rule = first ? TieRule::kMistake : TieRule::kPositive;
  settings.step_size = first ? 1 : 0.7;
  settings.mini_batch = 50;
  settings.ratchet_examples = first ? 0 : 20;
  settings.update_threshold = first ? 0 : 0.2;
  settings.aggressiveness = first ? 1 : 0.1;
  if (classes > 1) {
    settings.classes = {classes, first ? classes : 0, {}};
  } else if (!first && entry.form != Form::kKernel) {
    settings.start.vectors = {{{1, 4}, {0.25F, -1.5F}, 0.6}};
  }
  return settings;
}

// Evaluations, predictions and the state at the end.
void AddRun(const CatalogueEntry& entry, uint32_t classes, bool dense, bool first, Hash& hash) {
  Random random(classes * 4 + (dense ? 2 : 0) + (first ? 1 : 0));
  const uint32_t dimension = dense ? 20 : 300;
  std::vector<std::vector<double>> truth(classes, std::vector<double>(dimension));
  for (auto& row : truth) {
    for (double& weight : row) weight = static_cast<int>(random.Next(201)) - 100;
  }
  const std::unique_ptr<Learner> learner =
      MakeLearner(SettingsOf(entry, classes, first), dimension);
  constexpr double kWeights[] = {1, 1, 0.5, 2.25};
  for (size_t i = 0; i < kRows; ++i) {
    const SvmExample example = MakeExample(random, dense, truth);
    const Row row{example.indices.empty() ? kNoIndices : example.indices.data(),
                  example.values.data(), example.values.size()};
    const Target target{example.label, kWeights[random.Next(4)] * (example.label > 0 ? 3 : 1), i};
    EndFullBatch(*learner, i);
    const Evaluation evaluation = learner->Evaluate(row, target.label);
    hash.Add(evaluation.score);
    hash.Add(uint64_t{evaluation.update});
    if (evaluation.update && learner->CanUpdate(row, target, evaluation))
      learner->Update(row, target, evaluation);
    if (i % 50 != 0) continue;
    for (const double score : PredictedScores(*learner, row, i + 1)) hash.Add(score);
    hash.Add(learner->predictor().squared_norm(i + 1));
  }
  for (const uint64_t bits : Bits(*learner)) hash.Add(bits);
}

// Two labels, and five classes.
const std::map<std::string, std::pair<uint64_t, uint64_t>> kExpected = {
    {"perceptron", {0x000a09263f136fc4, 0xd1a162e1a6ea9fb6}},
    {"averaged-perceptron", {0x44f2c6f5371bfdb0, 0xac2345c7e1f744a3}},
    {"pocket-perceptron", {0xe73022378a8be9e4, 0x7317fc64b4ed9a05}},
    {"margin-perceptron", {0x0c01fb1df0912024, 0x2558245dc23042dd}},
    {"passive-aggressive", {0xf097e5ba6135eb5c, 0xee65a6bad014a572}},
    {"passive-aggressive-i", {0x29df7c870fc47336, 0x5bb33ccc6031e200}},
    {"passive-aggressive-ii", {0x2004e7a97d85130c, 0x6e0dcc3d75c44943}},
    {"arow", {0x473fdf1cca3f3e07, 0x31f21a34ebe76d32}},
    {"logistic-regression", {0x81cb1d550aa06503, 0x0a5be6667acc1a49}},
    {"batch-perceptron", {0x21273df641d6bae3, 0x679a173d63f9a85a}},
    {"voted-perceptron", {0xefad5db5076c2b41, 0x76a9f97c256b604b}},
    {"kernel-perceptron", {0x97e2240900076772, 0x0000000000000000}},
    {"soft-confidence-weighted", {0xf48eee2665320ca9, 0x53c6a84400f9b58c}},
    {"averaged-passive-aggressive", {0xc17b14a50fe45c31, 0x770c413c8c7a33b2}},
    {"pocket-passive-aggressive", {0x5096782dc8292df9, 0x5aa8cf802edf5d11}},
    {"voted-passive-aggressive", {0x20ba80f8ab731f24, 0xa9450d8c88d298e9}},
    {"averaged-passive-aggressive-i", {0xa5d890a52cba8cc2, 0xdbbc1a4681db3f02}},
    {"pocket-passive-aggressive-i", {0xaa05ca4a725a0193, 0x7041dff92bed5b84}},
    {"voted-passive-aggressive-i", {0xba900e3b989e732b, 0x3f849a90cb0cf0fd}},
    {"averaged-passive-aggressive-ii", {0x016f9aba6ae79b39, 0x4a343b202e0016f5}},
    {"pocket-passive-aggressive-ii", {0xdd84a85020daeb0b, 0xf122db6dcd1a9e3a}},
    {"voted-passive-aggressive-ii", {0x405cae0571dad07f, 0x7d712403d4795c7e}},
    {"pocket-arow", {0x30d59faa5a1c7fbd, 0x8cf96358ab9b72e1}},
    {"averaged-logistic-regression", {0x6ec98fc217cbde53, 0x34c7daa761eda0d4}},
    {"auto", {0x539f811ae4c1785f, 0xb70152c44a2ad4eb}},
    {"pocket-soft-confidence-weighted", {0x80c79161ba2d747b, 0xfb190cbad847b5e6}},
};

TEST(Fingerprint, EveryLearnerLearnsTheSameBits) {
  for (const CatalogueEntry& entry : Catalogue()) {
    uint64_t found[2] = {0, 0};
    for (const uint32_t classes : {1U, 5U}) {
      if (classes > 1 && !entry.has_classes()) continue;
      Hash hash;
      for (const bool dense : {false, true}) {
        for (const bool first : {true, false}) AddRun(entry, classes, dense, first, hash);
      }
      found[classes > 1 ? 1 : 0] = hash.value();
    }
    const auto expected = kExpected.find(entry.name);
    if (expected != kExpected.end() && expected->second == std::pair(found[0], found[1])) continue;
    ADD_FAILURE() << entry.name;
    std::printf("    {\"%s\", {0x%016" PRIx64 ", 0x%016" PRIx64 "}},\n", entry.name.c_str(),
                found[0], found[1]);
  }
}

}  // namespace
}  // namespace perceptrond::testing
