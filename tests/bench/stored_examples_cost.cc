// What storing examples adds to learning, in instructions, which no other load on the machine
// changes:
//
//   valgrind --tool=callgrind --toggle-collect='*Measured*' --callgrind-out-file=/dev/null
//       stored_examples_cost converged|erring UPDATES SAMPLE
//
// A model that stores UPDATES and SAMPLE examples learns rows of 75 of 2^20 features, 100 a
// message, until it errs on none of them, or on every tenth; then they come once more, and
// Model::Learn is measured. Prints how many rows that are.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "core/journal/memory_journal.h"
#include "core/model/model.h"
#include "core/settings/settings.h"
#include "perceptron/v1/model.pb.h"
#include "tests/bench/rows.h"

namespace perceptrond::bench {

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// Callgrind knows it by its name.
[[gnu::noinline]] void Measured(Model& model, const LearnCall& call, LearnOutcome& outcome) {
  Require(model.Learn(call, outcome));
}

[[gnu::noinline]] void Unmeasured(Model& model, const LearnCall& call, LearnOutcome& outcome) {
  Require(model.Learn(call, outcome));
}

class Cost {
 public:
  Cost(const Rows& rows, uint32_t updates, uint32_t sample) {
    for (size_t i = 0; i < rows.size(); i += kRowsAMessage)
      messages_.push_back(rows.Slice(i, i + kRowsAMessage));
    storage::ModelHeader header;
    auto& settings = *header.mutable_model();
    settings.set_name("models/cost");
    settings.mutable_feature_space()->mutable_dense()->set_dimension(kDimension);
    settings.mutable_learner()->set_bias_input(0);
    settings.mutable_stored_examples()->set_max_updates(updates);
    settings.mutable_stored_examples()->set_max_sample(sample);
    FillDefaults(settings);
    Require(journal_.Create(header));
    auto model = Model::Load(header, journal_, Model::Limits());
    Require(model.status());
    model_ = *std::move(model);
  }
  // The mistakes of one time over all rows.
  uint64_t Pass(void (*learn)(Model&, const LearnCall&, LearnOutcome&)) {
    uint64_t mistakes = 0;
    for (const Rows& rows : messages_) {
      LearnCall call;
      call.batch = rows.batch();
      call.producer = &producer_;
      learn(*model_, call, outcome_);
      mistakes += outcome_.mistakes;
      // Nobody commits here: what waits for it is of no use.
      (void)model_->ledger().TakePending();
    }
    return mistakes;
  }

  static constexpr uint32_t kDimension = 1 << 20;

 private:
  static constexpr size_t kRowsAMessage = 100;

  std::vector<Rows> messages_;
  MemoryJournal journal_;
  std::shared_ptr<Model> model_;
  Producer producer_{""};
  LearnOutcome outcome_;
};

int Run(bool erring, uint32_t updates, uint32_t sample) {
  const Rows rows =
      erring ? ErringRows(2000, Cost::kDimension, 1) : SparseRows(4000, Cost::kDimension, 1);
  const uint64_t least = erring ? rows.size() / 10 : 0;
  Cost cost(rows, updates, sample);
  for (int pass = 0; cost.Pass(&Unmeasured) > least; ++pass) {
    if (pass < 1000) continue;
    std::fputs("the rows are not learned\n", stderr);
    return 1;
  }
  const uint64_t mistakes = cost.Pass(&Measured);
  std::printf("%zu rows, %llu mistakes\n", rows.size(), static_cast<unsigned long long>(mistakes));
  return 0;
}

}  // namespace perceptrond::bench

int main(int argc, char** argv) {
  const std::string stream = argc == 4 ? argv[1] : "";
  if (stream != "converged" && stream != "erring") {
    std::fputs("usage: stored_examples_cost converged|erring UPDATES SAMPLE\n", stderr);
    return 2;
  }
  return perceptrond::bench::Run(stream == "erring", static_cast<uint32_t>(std::atoi(argv[2])),
                                 static_cast<uint32_t>(std::atoi(argv[3])));
}
