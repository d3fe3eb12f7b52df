#include "client/ctl/retained_rows.h"

#include "absl/container/flat_hash_set.h"

namespace perceptrond::client {
namespace {

namespace v1 = ::perceptron::v1;

Row RowOf(const v1::Example& example) {
  Row row;
  row.label = example.label();
  if (example.has_dense()) {
    row.kind = RowKind::kDense;
    row.values.assign(example.dense().values().begin(), example.dense().values().end());
  } else if (example.has_named()) {
    row.kind = RowKind::kNamed;
    row.values.assign(example.named().values().begin(), example.named().values().end());
    for (const std::string& feature : example.named().names()) row.AddName(feature);
  } else {
    row.indices.assign(example.sparse().indices().begin(), example.sparse().indices().end());
    row.values.assign(example.sparse().values().begin(), example.sparse().values().end());
  }
  return row;
}

// Updates come first; the sample, if there is one, holds what is different of them too.
class Collector {
 public:
  explicit Collector(size_t limit) : limit_(limit) {}

  bool Take(const v1::ListRetainedExamplesResponse& page) {
    for (const v1::RetainedExample& retained : page.examples()) {
      if (retained.update_revision() == 0 && !sampled_) {
        sampled_ = true;
        seen_.clear();
        found_ = RetainedRows();
      }
      Add(retained.example());
    }
    return !(sampled_ && found_.limited);
  }
  RetainedRows Found() { return std::move(found_); }

 private:
  void Add(v1::Example example) {
    // The same example may have come with different weights.
    example.clear_weight();
    if (!seen_.insert(example.SerializeAsString()).second) return;
    found_.limited = found_.rows.size() == limit_;
    if (!found_.limited) found_.rows.push_back(RowOf(example));
  }

  const size_t limit_;
  bool sampled_ = false;
  absl::flat_hash_set<std::string> seen_;
  RetainedRows found_;
};

}  // namespace

absl::StatusOr<RetainedRows> ReadRetainedRows(const Client& client, const std::string& name,
                                              size_t limit) {
  Collector collector(limit);
  const absl::Status status = client.ListRetainedExamples(
      name, [&](const v1::ListRetainedExamplesResponse& page) { return collector.Take(page); });
  if (!status.ok()) return status;
  return collector.Found();
}

}  // namespace perceptrond::client
