// A program of somebody who uses the installed package: creates a model, learns the logical AND of two inputs until it has
// converged, and predicts. Usage: consumer ADDRESS. Exits with 0 iff all four predictions are right; an error aborts it.
#include <cstdio>
#include <utility>

#include "client/batch_builder.h"
#include "client/client.h"
#include "client/learn_stream.h"

using perceptrond::client::BatchBuilder;
using perceptrond::client::Client;
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

}  // namespace

int main(int, char** argv) {
  const Client client = Client::Connect(argv[1]).value();
  perceptron::v1::Model settings;
  settings.mutable_feature_space()->mutable_dense()->set_dimension(2);
  client.CreateModel("and", settings).value();
  const auto stream = LearnStream::Open(client.connection(), "and").value();
  do {
    for (int bits = 0; bits < 4; ++bits) {
      if (!stream->Push(Input(bits)).ok()) return 1;
    }
  } while (!stream->MarkPass().value().converged());
  std::printf("%d updates\n", static_cast<int>(stream->Finish().value().updates));
  BatchBuilder batch;
  for (int bits = 0; bits < 4; ++bits) {
    if (!batch.Add(Input(bits)).ok()) return 1;
  }
  perceptron::v1::ExampleColumns columns;
  batch.Build(&columns);
  const auto answer = client.Predict("and", std::move(columns)).value();
  for (int bits = 0; bits < 4; ++bits) {
    if (answer.predicted_labels(bits) != Input(bits).label) return 1;
  }
  return client.DeleteModel("and").ok() ? 0 : 1;
}
