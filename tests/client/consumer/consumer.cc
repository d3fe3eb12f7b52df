// A program of somebody who uses the installed package: creates a model, learns the logical AND of two inputs until it has
// converged, and predicts. Usage: consumer ADDRESS. Exits with 0 iff all four predictions are right.
#include <cstdio>
#include <string>
#include <utility>

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

// An input of two bits.
Row Input(int bits) {
  Row row;
  row.kind = RowKind::kDense;
  row.values = {static_cast<float>(bits & 1), static_cast<float>(bits >> 1)};
  row.label = bits == 3 ? 1 : -1;
  return row;
}

absl::Status Learn(const Client& client) {
  auto stream = LearnStream::Open(client.connection(), "and");
  if (!stream.ok()) return stream.status();
  for (bool converged = false; !converged;) {
    for (int bits = 0; bits < 4; ++bits) {
      if (absl::Status status = (*stream)->Push(Input(bits)); !status.ok()) return status;
    }
    const auto pass = (*stream)->MarkPass();
    if (!pass.ok()) return pass.status();
    converged = pass->converged();
  }
  const auto totals = (*stream)->Finish();
  if (totals.ok()) std::printf("%d updates\n", static_cast<int>(totals->updates));
  return totals.status();
}

absl::Status Run(const Client& client) {
  perceptron::v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  if (const auto model = client.CreateModel("and", settings); !model.ok()) return model.status();
  if (absl::Status status = Learn(client); !status.ok()) return status;
  BatchBuilder batch;
  for (int bits = 0; bits < 4; ++bits) {
    if (absl::Status status = batch.Add(Input(bits)); !status.ok()) return status;
  }
  perceptron::v1::ExampleColumns columns;
  batch.Build(&columns);
  const auto answer = client.Predict("and", std::move(columns));
  if (!answer.ok()) return answer.status();
  for (int bits = 0; bits < 4; ++bits) {
    if (answer->predicted_labels(bits) != Input(bits).label) return absl::InternalError("wrong");
  }
  return client.DeleteModel("and");
}

}  // namespace

int main(int argc, char** argv) {
  const absl::StatusOr<Client> client = Client::Connect(argv[argc - 1]);
  const absl::Status status = client.ok() ? Run(*client) : client.status();
  if (!status.ok())
    std::fprintf(stderr, "%s (%s)\n", status.ToString().c_str(), ErrorReason(status).c_str());
  return status.ok() ? 0 : 1;
}
