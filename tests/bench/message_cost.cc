// How long a multiply-add of a message's estimated cost (core/model/cost.h) really takes, for the
// feature maps and the kernel: about a nanosecond, or the limit of --max-message-cost means another
// time.
//   message_cost
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string>
#include <vector>

#include "core/features/name_table.h"
#include "core/journal/memory_journal.h"
#include "core/model/model.h"
#include "core/settings/settings.h"
#include "perceptron/v1/model.pb.h"

namespace perceptrond::bench {
namespace {

namespace v1 = ::perceptron::v1;

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::abort();
}

// Rows of `features` names each, of `names`.
class NamedRows {
 public:
  NamedRows(size_t rows, uint32_t features, uint32_t names) {
    std::vector<uint32_t> lengths;
    for (uint32_t i = 0; i < names; ++i) {
      const std::string name = "name" + std::to_string(i);
      text_ += name;
      lengths.push_back(static_cast<uint32_t>(name.size()));
    }
    if (table_.Append(text_, lengths)) std::abort();
    for (size_t row = 0; row < rows; ++row) {
      const auto shift = static_cast<uint32_t>(row * 7) % (names - features + 1);
      for (uint32_t i = 0; i < features; ++i) indices_.push_back(shift + i);
      ends_.push_back(static_cast<uint32_t>(indices_.size()));
      labels_.push_back(row % 2 == 0 ? 1 : -1);
    }
  }
  Batch batch() {
    Batch batch;
    batch.indices = indices_;
    batch.row_ends = ends_;
    batch.labels = labels_;
    batch.names = &table_;
    return batch;
  }

 private:
  // The names, one after the other, of which the table has views.
  std::string text_;
  NameTable table_;
  std::vector<uint32_t> indices_;
  std::vector<uint32_t> ends_;
  std::vector<int32_t> labels_;
};

void Measure(const char* what, v1::Model settings, NamedRows&& rows) {
  settings.set_name("models/m");
  FillDefaults(settings);
  MemoryJournal journal;
  storage::ModelHeader header;
  *header.mutable_model() = settings;
  Require(journal.Create(header));
  const auto model = Model::Load(header, journal, {});
  Require(model.status());
  Producer producer("");
  if (settings.learner().has_kernel_perceptron()) {
    LearnCall call;
    call.batch = rows.batch();
    call.producer = &producer;
    LearnOutcome outcome;
    Require((*model)->Learn(call, outcome));
  }
  const uint64_t cost = (*model)->EstimateCost(rows.batch());
  PredictOutcome outcome;
  const std::clock_t start = std::clock();
  Require((*model)->Predict(rows.batch(), {}, 0, outcome));
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("%-28s %12llu multiply-adds  %6.3f s  %5.2f ns each\n", what,
              static_cast<unsigned long long>(cost), seconds,
              seconds * 1e9 / static_cast<double>(cost));
}

v1::Model Polynomial(v1::Model settings, uint32_t degree) {
  settings.mutable_feature_space()->mutable_map()->mutable_polynomial()->set_degree(degree);
  return settings;
}

void MeasureAll() {
  v1::Model named;
  named.mutable_feature_space()->mutable_named();
  v1::Model hashed;
  hashed.mutable_feature_space()->mutable_hashed()->set_bits(22);
  v1::Model fourier = named;
  fourier.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(1 << 20);
  fourier.mutable_feature_space()->mutable_map()->mutable_fourier()->set_gamma(1);
  v1::Model kernel = named;
  kernel.mutable_learner()->mutable_kernel_perceptron();
  Measure("Fourier, new names", fourier, NamedRows(1, 30, 30));
  fourier.mutable_feature_space()->mutable_map()->mutable_fourier()->set_dimension(1 << 10);
  Measure("Fourier, names again", fourier, NamedRows(1000, 30, 100));
  Measure("polynomial 4, named", Polynomial(named, 4), NamedRows(4, 60, 100));
  Measure("polynomial 4, hashed", Polynomial(hashed, 4), NamedRows(4, 60, 100));
  Measure("polynomial 2, hashed", Polynomial(hashed, 2), NamedRows(20, 500, 1000));
  Measure("kernel, short rows", kernel, NamedRows(2000, 20, 2000));
  Measure("kernel, long rows", kernel, NamedRows(300, 1000, 4000));
}

}  // namespace
}  // namespace perceptrond::bench

int main() { perceptrond::bench::MeasureAll(); }
