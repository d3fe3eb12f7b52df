// MessageEncoder: puts the messages of one stream into the form in which they are sent. Messages
// have names of their own until then, so that one that was not answered can be sent again on
// another connection, whose table of names is another.
//
//   MessageEncoder encoder(compact);
//   encoder.StartConnection(opened.name_table_size());
//   encoder.Encode(columns, request.mutable_columns(), request.mutable_examples());
//
// While the connection has a table of names (ExampleColumns.stream_names), a name is sent once, and
// then its number until it has left the table. A message with more names than a quarter of the
// table is sent as nested examples.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "client/feature_sorter.h"
#include "client/name_table.h"
#include "perceptron/v1/example.pb.h"

namespace perceptrond::client {

// The largest table of names that a server grants.
inline constexpr uint32_t kMostTableNames = 1u << 20;

// The size of table to ask for: a power of two, at most `wanted`; 0 if `wanted` is below 4, the
// least that is of use.
uint32_t NameTableSize(uint32_t wanted);

class MessageEncoder {
 public:
  using Examples = google::protobuf::RepeatedPtrField<perceptron::v1::Example>;

  // `compact`: indices as differences, and values in 16 bits where that changes none of a message.
  explicit MessageEncoder(bool compact) : compact_(compact) {}

  // Starts a connection whose table holds `table_size` names; below 4: it has none.
  void StartConnection(uint32_t table_size);
  uint32_t table_size() const { return table_.size(); }
  void set_compact(bool compact) { compact_ = compact; }

  // Whether Encode() changes the rows.
  bool Changes(const perceptron::v1::ExampleColumns& rows) const;

  // Writes `rows`, as BatchBuilder::BuildUnsorted() made them, into *columns or *examples, which are
  // empty. Messages must be sent in the order in which they were encoded. O(features).
  void Encode(const perceptron::v1::ExampleColumns& rows, perceptron::v1::ExampleColumns* columns,
              Examples* examples);

 private:
  // Copies `rows` with the number of each name in place of its position.
  void EncodeNumbers(const perceptron::v1::ExampleColumns& rows,
                     perceptron::v1::ExampleColumns* columns);
  void SortRows(perceptron::v1::ExampleColumns* columns);
  void EncodeNested(const perceptron::v1::ExampleColumns& rows, Examples* examples) const;

  bool compact_;
  NameTable table_;
  FeatureSorter sorter_;
  // The number of each name of a message.
  std::vector<uint32_t> numbers_;
};

}  // namespace perceptrond::client
