// Records a journal of every learner, space and feature map, and replays one, each by the vector unit
// that is named, and prints what it comes to: a digest of the weights and one of the answers for each
// model. Equal bits give equal digests, on every unit and machine.
//
//   replay UNIT record FILE    learns fixed rows, writes the journal, and prints the digests
//   replay UNIT replay FILE    rebuilds the models from a journal and prints the digests
//   replay units               prints the units of this machine, the best first
//
// Answers of models with random Fourier features are printed as numbers: std::cos may differ in its
// last bit from one C library to another. Exits with 3 if the machine does not have the unit.
#include <google/protobuf/util/delimited_message_util.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "core/features/names.h"
#include "core/journal/memory_journal.h"
#include "core/learner/catalogue.h"
#include "core/model/model.h"
#include "core/model/snapshot.h"
#include "core/settings/settings.h"
#include "core/vector/kernels.h"
#include "core/vector/simd.h"
#include "tests/support/columns.h"
#include "tests/support/tight.h"

namespace perceptrond::testing {
namespace {

constexpr int kRows = 400;
constexpr int kProbes = 25;
constexpr int kClasses = 4;
constexpr uint32_t kDimension = 37;

void Check(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "replay: %s\n", what.c_str());
  std::exit(1);
}

// xorshift64: the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(88172645463325252ULL + seed) {}
  uint32_t Below(uint32_t end) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<uint32_t>(state_ >> 32) % end;
  }

 private:
  uint64_t state_;
};

// The forms of rows; two of them also with a feature map.
enum class Kind { kDense, kSparse, kSlots, kHashedNames, kNamed, kPolynomial, kProducts, kFourier };
constexpr int kKinds = 8;

v1::Model Settings(const std::string& learner, Kind kind, bool classes) {
  v1::Model model;
  SetLearner(*model.mutable_learner(), learner);
  Tighten(*model.mutable_learner());
  if (classes) model.mutable_learner()->mutable_classes()->set_max_classes(kClasses);
  v1::FeatureSpace& space = *model.mutable_feature_space();
  if (kind == Kind::kDense || kind == Kind::kSparse || kind == Kind::kFourier)
    space.mutable_dense()->set_dimension(kDimension);
  if (kind == Kind::kSlots || kind == Kind::kHashedNames) space.mutable_hashed()->set_bits(6);
  if (kind == Kind::kPolynomial) space.mutable_hashed()->set_bits(9);
  if (kind == Kind::kNamed || kind == Kind::kProducts) space.mutable_named();
  v1::FeatureMap& map = *space.mutable_map();
  if (kind == Kind::kPolynomial) map.mutable_polynomial()->set_degree(2);
  if (kind == Kind::kProducts) {
    map.mutable_products()->add_pairs()->set_first("a");
    map.mutable_products()->mutable_pairs(0)->set_second("b");
  }
  if (kind == Kind::kFourier) {
    map.mutable_fourier()->set_dimension(21);
    map.mutable_fourier()->set_gamma(0.125);
  }
  if (map.map_case() == v1::FeatureMap::MAP_NOT_SET) space.clear_map();
  FillDefaults(model);
  return model;
}

// Rows of a kind as a batch, with magnitudes that differ, so that another order of additions would
// show.
class Rows {
 public:
  Rows(Kind kind, uint64_t seed, int count, bool classes) {
    Random random(seed);
    std::vector<NamedExample> named(static_cast<size_t>(count));
    Columns columns;
    for (NamedExample& example : named) {
      const bool dense = kind == Kind::kDense || kind == Kind::kFourier;
      std::vector<uint32_t> indices;
      std::vector<float> values;
      double score = 0;
      for (uint32_t i = dense ? 0 : random.Below(4); i < kDimension;
           i += dense ? 1 : 1 + random.Below(4)) {
        const auto whole = static_cast<float>(static_cast<int>(random.Below(2001)) - 1000);
        indices.push_back(i);
        values.push_back(whole / static_cast<float>(1U << random.Below(16)) / 64);
        example.features.emplace_back((i % 2 == 0 ? "a^" : "b^") + std::to_string(i),
                                      values.back());
        score += (i % 3 == 0 ? 1 : -1) * static_cast<double>(values.back());
      }
      const auto noise = static_cast<int>(random.Below(kClasses));
      example.label = score > 0 ? 1 : -1;
      if (classes) example.label = static_cast<int>(std::abs(score)) % kClasses;
      if (random.Below(8) == 0) example.label = classes ? noise : (noise % 2 == 0 ? 1 : -1);
      dense ? columns.AddDense(values, example.label) : columns.Add(indices, values, example.label);
    }
    if (kind == Kind::kHashedNames || kind == Kind::kNamed || kind == Kind::kProducts ||
        kind == Kind::kPolynomial) {
      named_ = std::make_unique<NamedColumns>(named);
    } else {
      columns_ = columns;
    }
  }
  Batch batch() const { return named_ != nullptr ? named_->batch() : columns_.batch(); }

 private:
  std::unique_ptr<NamedColumns> named_;
  Columns columns_;
};

std::string Hex(const std::string& bytes) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(HashName({bytes.data(), bytes.size()})));
  return text;
}

std::string Bits(std::span<const float> values) {
  std::string bytes;
  for (const float value : values) {
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(bits >> shift));
  }
  return bytes;
}

void Print(const Model& model, Kind kind, bool classes) {
  storage::Snapshot snapshot = MakeSnapshot(model);
  snapshot.clear_time();
  snapshot.clear_learning_curve();
  const Rows rows(kind, 99, kProbes, classes);
  Batch batch = rows.batch();
  batch.labels = {};
  PredictOutcome outcome;
  Check(model.Predict(batch, {}, 0, outcome, classes).ok(), "predicting with " + model.name());
  std::printf("%s revision=%llu state=%s", model.name().c_str(),
              static_cast<unsigned long long>(outcome.revision),
              Hex(snapshot.SerializeAsString()).c_str());
  if (kind == Kind::kFourier) {
    std::printf(" answers");
    for (const float score : outcome.scores) std::printf(" %.9g", static_cast<double>(score));
    std::printf("\n");
    return;
  }
  std::string answers = Bits(outcome.scores) + Bits(outcome.distances) +
                        Bits(outcome.probabilities) + Bits(outcome.class_scores);
  for (const int32_t label : outcome.labels) answers += std::to_string(label) + ",";
  std::printf(" answers=%s\n", Hex(answers).c_str());
}

// Every half-precision number as float32.
void PrintHalves() {
  std::string halves;
  for (uint32_t bits = 0; bits < 1 << 16; ++bits) {
    // Which NaN a NaN becomes is the processor's choice.
    const bool nan = (bits & 0x7c00) == 0x7c00 && (bits & 0x3ff) != 0;
    halves.push_back(static_cast<char>(nan ? 0 : bits));
    halves.push_back(static_cast<char>(nan ? 0 : bits >> 8));
  }
  std::vector<float> floats(1 << 16);
  HalvesToFloats(halves.data(), floats);
  std::printf("halves %s\n", Hex(Bits(floats)).c_str());
}

// One model of the recorded journal.
struct Case {
  std::string name;
  // For SetLearner.
  std::string learner;
  Kind kind;
  bool classes;
};

void AddCases(const std::string& learner, bool has_classes, std::vector<Case>& cases) {
  for (const bool classes : {false, true}) {
    if (classes && !has_classes) continue;
    // Two of the kinds each, of which the next learner has others.
    for (int i = 0; i < 2; ++i) {
      const auto kind = static_cast<Kind>(cases.size() * 3 % kKinds);
      cases.push_back({"models/" + absl::StrReplaceAll(learner, {{"/", "-"}}) +
                           (classes ? "-classes-" : "-") + std::to_string(static_cast<int>(kind)),
                       learner, kind, classes});
    }
  }
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const CatalogueEntry& entry : Catalogue()) AddCases(entry.name, entry.has_classes(), cases);
  for (const std::string& learner : LogisticWithSteps()) AddCases(learner, true, cases);
  return cases;
}

std::shared_ptr<Model> Load(const storage::ModelHeader& header, MemoryJournal& journal) {
  auto model = Model::Load(header, journal, {});
  Check(model.ok(), header.model().name() + ": " + std::string(model.status().message()));
  return *model;
}

// The model's part of the journal after it has learned its rows.
JournalEntry Record(const Case& one, const storage::ModelHeader& header, MemoryJournal& journal) {
  const std::shared_ptr<Model> model = Load(header, journal);
  const Rows rows(one.kind, 7, kRows, one.classes);
  Producer producer("");
  LearnCall call;
  call.batch = rows.batch();
  call.producer = &producer;
  call.completed_pass = 1;
  LearnOutcome outcome;
  Check(model->Learn(call, outcome).ok() && outcome.row_errors.empty(), "learning " + one.name);
  Print(*model, one.kind, one.classes);
  return model->ledger().TakePending().entry;
}

void RecordAll(std::ostream& file) {
  using google::protobuf::util::SerializeDelimitedToOstream;
  MemoryJournal journal;
  for (const Case& one : Cases()) {
    storage::ModelHeader header;
    *header.mutable_model() = Settings(one.learner, one.kind, one.classes);
    header.mutable_model()->set_name(one.name);
    Check(journal.Create(header).ok(), "creating " + one.name);
    JournalEntry entry = Record(one, header, journal);
    SerializeDelimitedToOstream(header, &file);
    SerializeDelimitedToOstream(entry.counters, &file);
    for (storage::UpdateRecord& record : entry.records) {
      // Its points have times.
      record.clear_learning_curve();
      SerializeDelimitedToOstream(record, &file);
    }
    // One without rows is the last.
    SerializeDelimitedToOstream(storage::UpdateRecord(), &file);
  }
}

void ReplayAll(std::istream& file) {
  using google::protobuf::util::ParseDelimitedFromZeroCopyStream;
  google::protobuf::io::IstreamInputStream in(&file);
  MemoryJournal journal;
  for (const Case& one : Cases()) {
    storage::ModelHeader header;
    JournalEntry entry;
    Check(ParseDelimitedFromZeroCopyStream(&header, &in, nullptr) &&
              ParseDelimitedFromZeroCopyStream(&entry.counters, &in, nullptr) &&
              header.model().name() == one.name,
          "the file is not a journal of this program");
    do {
      Check(ParseDelimitedFromZeroCopyStream(&entry.records.emplace_back(), &in, nullptr),
            "the file ends early");
    } while (!entry.records.back().labels().empty());
    entry.records.pop_back();
    Check(journal.Create(header).ok(), "creating " + one.name);
    entry.model_id = header.id();
    Check(journal.Commit({&entry, 1}, {.sync = false}).ok(), "committing " + one.name);
    Print(*Load(header, journal), one.kind, one.classes);
  }
}

int Main(const std::vector<std::string>& args) {
  if (args.size() == 1 && args[0] == "units") {
    for (const simd::Loops* unit : simd::Units()) std::printf("%s\n", unit->unit);
    return 0;
  }
  Check(args.size() == 3 && (args[1] == "record" || args[1] == "replay"),
        "usage: replay UNIT record|replay FILE, or replay units");
  if (!simd::PreferUnit(args[0])) {
    std::fprintf(stderr, "replay: this machine has no %s\n", args[0].c_str());
    return 3;
  }
  PrintHalves();
  if (args[1] == "record") {
    std::ofstream file(args[2], std::ios::binary);
    RecordAll(file);
    file.close();
    Check(file.good(), "cannot write " + args[2]);
  } else {
    std::ifstream file(args[2], std::ios::binary);
    ReplayAll(file);
  }
  return 0;
}

}  // namespace
}  // namespace perceptrond::testing

int main(int argc, char** argv) { return perceptrond::testing::Main({argv + 1, argv + argc}); }
