// A program of somebody who uses the installed package: creates a model, learns the logical AND of
// two inputs until it has converged, predicts, deletes the model. Usage: consumer ADDRESS [MODEL].
// Exits with 0 iff all four predictions are right.
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "client/batch_builder.h"
#include "client/client.h"
#include "client/learn_stream.h"

using perceptrond::client::BatchBuilder;
using perceptrond::client::Client;
using perceptrond::client::ErrorReason;
using perceptrond::client::LearnStream;
using perceptrond::client::Row;
using perceptrond::client::RowKind;

namespace {

std::vector<Row> LogicalAnd() {
  std::vector<Row> rows;
  for (int i = 0; i < 4; ++i) {
    Row row;
    row.kind = RowKind::kDense;
    row.values = {static_cast<float>(i & 1), static_cast<float>(i >> 1)};
    row.label = i == 3 ? 1 : -1;
    rows.push_back(std::move(row));
  }
  return rows;
}

int Fail(const char* what, const absl::Status& status) {
  std::fprintf(stderr, "%s: %s (%s)\n", what, status.ToString().c_str(),
               ErrorReason(status).c_str());
  return 1;
}

int Learn(const Client& client, const std::string& name) {
  auto stream = LearnStream::Open(client.connection(), name);
  if (!stream.ok()) return Fail("open", stream.status());
  for (int pass = 0; pass < 100; ++pass) {
    for (const Row& row : LogicalAnd()) {
      if (absl::Status status = (*stream)->Push(row); !status.ok()) return Fail("push", status);
    }
    const auto summary = (*stream)->MarkPass();
    if (!summary.ok()) return Fail("mark", summary.status());
    if (summary->converged()) break;
  }
  const auto totals = (*stream)->Finish();
  if (!totals.ok()) return Fail("finish", totals.status());
  std::printf("%d examples, %d updates\n", static_cast<int>(totals->examples),
              static_cast<int>(totals->updates));
  return 0;
}

int Predict(const Client& client, const std::string& name) {
  BatchBuilder batch;
  const std::vector<Row> rows = LogicalAnd();
  for (const Row& row : rows) {
    if (absl::Status status = batch.Add(row); !status.ok()) return Fail("add", status);
  }
  perceptron::v1::ExampleColumns columns;
  batch.Build(&columns);
  const auto answer = client.Predict(name, std::move(columns));
  if (!answer.ok()) return Fail("predict", answer.status());
  for (int i = 0; i < 4; ++i) {
    if (answer->predicted_labels(i) != rows[static_cast<size_t>(i)].label) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: consumer ADDRESS [MODEL]\n");
    return 2;
  }
  const std::string name = argc > 2 ? argv[2] : "consumer";
  const Client client = Client::Connect(argv[1]);
  perceptron::v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  const auto model = client.CreateModel(name, settings);
  if (!model.ok()) return Fail("create", model.status());
  int code = Learn(client, name);
  if (code == 0) code = Predict(client, name);
  if (absl::Status status = client.DeleteModel(name); !status.ok()) return Fail("delete", status);
  return code;
}
